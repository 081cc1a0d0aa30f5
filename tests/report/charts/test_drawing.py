"""What a chart shows, in which order and under which names; and no text of a record is more than text."""

from __future__ import annotations

import hashlib
import itertools
import math
import os
import re
import subprocess
import sys
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import image as images
from matplotlib.backends.backend_agg import FigureCanvasAgg

from report.charts import style
from report.charts.costs import CardCost, CostAgainstTime, Input, OfferPrice, PriceLine, Tornado
from report.charts.drawing import Chart, as_png, draw
from report.charts.intervals import GroupedIntervals, Intervals, Mark, Share, Shares
from report.charts.lines import Curve, Curves, Wall
from report.charts.roofline import Bandwidth, Roof, Roofline, RooflineMark
from report.charts.rows import MarkRow, MarkRows
from report.charts.sheet import DPI, MARGIN, PNG_SCALE, Sheet, stroke
from report.charts.style import DESK, NARROW, PRECISION_LOOKS, Layout, cut, width_of, wrapped
from report.charts.trial import Quantity, StepTimes, Timelines, TrialTimeline
from report.charts.utilization import DeviceUse, Phase, UseRow, UseRows
from tests.helpers import ROOT, records_hostile
from tests.helpers.page_reader import read

REPOSITORY = ROOT
FINITE = st.floats(min_value=1e-6, max_value=1e9, allow_nan=False, allow_infinity=False)
RATIOS = st.floats(min_value=0.02, max_value=50.0, allow_nan=False)
LONG_CARD = "Constructed Card B with a very long name 80GB HBM3"
MATH = r"$\frac{1}{0}$ and $unfinished"
HOSTILE = (
    records_hostile.SCRIPT,
    records_hostile.BREAKOUT,
    records_hostile.RIGHT_TO_LEFT,
    records_hostile.LONG,
    MATH,
    "\x00\x1b[31m\ud800",
    "显卡 ‮",
    "",
)
MARKS = (
    Mark(
        "fp32-ieee",
        "batch 98 · 3 runs",
        "4,578 s",
        4578.0,
        4400.0,
        4700.0,
        (4500.0, 4578.0, 4650.0),
        (5000.0,),
    ),
    Mark(
        f"{LONG_CARD} amp-fp16",
        "batch 164 · 3 runs · projected · unproven · 2026-01-30 · somewhere else",
        "2,227 s",
        2227.0,
        2100.0,
        2300.0,
        precision="amp-fp16",
        card="b",
        unranked=True,
        other_units=(2000.0, 2500.0),
    ),
    Mark("pure-fp16", "study 004", "1,900 s", 1900.0, precision="pure-fp16", published=True),
    Mark("fp32-tf32", "1 trial", "does not fit", None, precision="fp32-tf32", card="a"),
)
RATIO_MARKS = tuple(
    Mark(mark.label, mark.note, "1.23, tied", ratio, ratio * 0.9, ratio * 1.1, precision=mark.precision)
    for mark, ratio in zip(MARKS, (1.0, 1.62, 0.4, 2.5), strict=True)
)
BY_BATCH = Curves(
    (
        Curve("fp32-ieee", ((16.0, 1200.0), (32.0, 2000.0)), intervals=((1100.0, 1300.0), None), marked=True),
        Curve("amp-fp16", ((16.0, 1500.0), (64.0, 4100.0)), "amp-fp16", marked=True),
    ),
    "batch",
    zero=True,
    doubling=True,
    walls=(Wall(64.0, "64 does not fit", "fp32-ieee"), Wall(128.0, "128 does not fit", "amp-fp16")),
)
TRIAL = TrialTimeline(
    False,
    StepTimes((0.3, 0.2, 0.2, 0.21), 100, 100, (100,)),
    (0.0, 20.0, 40.0),
    ((5.0, 35.0),),
    (
        Quantity("clock", "MHz", (1200.0, None, 1350.0)),
        Quantity("at work", "%", (10.0, 98.0, 97.0), 0.0, 100.0),
    ),
    ((0, 65536.0), (120, 32768.0)),
)
USE = UseRow(
    f"{LONG_CARD} (DistributedDataParallel)",
    "GPU 0 did 31 % of the work of four",
    (0.0, 20.0, 40.0),
    (
        DeviceUse("GPU 0", (2.0, None, 98.0), (0.5, 10.0, 10.0)),
        DeviceUse("GPU 1", (2.0, 70.0, 71.0), (0.5, None, None)),
    ),
    (
        Phase("setup", "setup", 0.0, 3.0),
        Phase("compiling", "first step: compiles, autotunes", 3.0, 19.0),
        Phase("training", "training, synthetic data", 19.0, 40.0),
        Phase("test", "test", 40.0, 40.001),
    ),
)
COSTS = (CardCost("Card A: 12 (11 to 14) EUR", (40.0, 50.0, 55.0), (11.0, 12.0, 14.0)),) * 3
CHARTS: dict[str, Chart] = {
    "intervals": Intervals(MARKS),
    "ratios": Intervals(RATIO_MARKS, "times", ratio=True),
    "grouped": GroupedIntervals(
        (("ResNet-50", RATIO_MARKS), ("EfficientNet-B0", RATIO_MARKS[:2])), (0.3, 3.0)
    ),
    "rows": MarkRows(
        (MarkRow("ResNet-50", RATIO_MARKS, RATIO_MARKS[:1]), MarkRow(LONG_CARD * 3, RATIO_MARKS[2:])),
        "not in one row with these: what differs is in brackets",
    ),
    "shares": Shares(
        (Share(f"{LONG_CARD} fp32-ieee", "", "fp32-ieee", (("compute", 0.93), ("other", 0.07))),)
    ),
    "by batch": BY_BATCH,
    "crowded": Curves(
        tuple(Curve(f"{LONG_CARD} {n}", ((1.0, 0.7), (30.0, 0.9 + n / 1000))) for n in range(4)),
        "epoch",
        "percent",
    ),
    "close": Curves(
        tuple(Curve(f"line {n}", ((0.0, 0.5), (1500.0, 0.9))) for n in range(5)), "step", "number"
    ),
    "roofline": Roofline(
        (RooflineMark("ResNet-50, batch 64, cached data", "amp-bf16", 990.0, 4e14),),
        (
            Roof("fp32-ieee, on paper", "fp32-ieee", 67e12, False),
            Roof("bf16, measured", "pure-bf16", 7e14, True),
        ),
        (Bandwidth(2.8e12, True), Bandwidth(3.3e12, False)),
    ),
    "costs": CostAgainstTime(COSTS, "hours a year", "cost, EUR"),
    "sensitivity": Tornado(1.4, (Input(f"price, {LONG_CARD}, 2,000 to 3,000 EUR", 0.9, 1.8),) * 3),
    "price line": PriceLine(
        f"left of it: the {LONG_CARD}",
        "right of it: B",
        (3e3, 4e3, 5e3),
        "4,000 EUR (3,000 to 5,000)",
        (OfferPrice(f"{LONG_CARD}: 2,000 EUR", (1e3, 2e3, 3e3), 0), OfferPrice("B", (1e5,) * 3, 1)),
        "price, EUR",
    ),
    "timelines": Timelines((TRIAL, TRIAL), "a", "amp-fp16"),
    "use": UseRows((USE, USE)),
    "nothing": Curves((), "epoch"),
}
EACH_CHART = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
BOTH_LAYOUTS = pytest.mark.parametrize("layout", [DESK, NARROW], ids=["desk", "narrow"])


def luminance(colour: str) -> float:
    """Relative luminance by WCAG 2.2."""
    return float(np.array((0.2126, 0.7152, 0.0722)) @ linear(colour))


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


SEEN_BY = {
    "everybody": np.eye(3),
    "protanopes": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopes": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopes": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
"""Machado, Oliveira and Fernandes 2009, severity 1."""


def lab(light: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    xyz = to_xyz @ np.clip(light, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("reader", SEEN_BY)
def test_the_colours_of_precisions_stay_apart_for_every_reader(reader: str, dark: bool):
    drawn = (style.BLUE, style.GREEN, style.ORANGE, style.PURPLE)
    colours = [style.DARK[colour] if dark else colour for colour in drawn]
    seen = [lab(SEEN_BY[reader] @ linear(colour)) for colour in colours]
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(seen, 2)) > 15


def test_every_colour_that_carries_meaning_stands_out_from_the_paper():
    for colour in (style.BLUE, style.GREEN, style.ORANGE, style.PURPLE):
        assert contrast(colour, style.PAPER) >= 3
    for colour in (style.INK, style.SOFT, style.INPUT_WAIT, style.COMPUTE, style.OTHER):
        assert contrast(colour, style.PAPER) >= 4.5


def test_on_a_dark_page_every_colour_stands_out_as_far():
    paper = style.DARK[style.PAPER]
    for colour in (style.INK, style.SOFT, style.INPUT_WAIT, style.COMPUTE, style.OTHER):
        assert contrast(style.DARK[colour], paper) >= 4.5
    for colour in (style.BLUE, style.GREEN, style.ORANGE, style.PURPLE):
        assert contrast(style.DARK[colour], paper) >= 3


@EACH_CHART
def test_no_colour_is_drawn_that_a_dark_page_would_not_change(chart: Chart):
    drawn = set(re.findall(r'(?:fill|stroke)="(#[0-9a-f]{6})"', draw(chart, "name", "t", "u", "d").page))
    assert drawn <= set(style.DARK)


def test_precisions_of_one_chart_differ_in_mark_where_their_colour_is_one():
    common = ("fp32-ieee", "fp32-tf32", "fp16-master", "amp-bf16")
    assert len({PRECISION_LOOKS[name].marker for name in common}) == len(common)
    assert len({PRECISION_LOOKS[name] for name in common}) == len(common)


@given(st.lists(FINITE, min_size=1, max_size=20))
def test_an_axis_from_zero_holds_every_value_between_round_ticks(values: list[float]):
    ticks = style.linear_ticks(values, zero=True)
    assert ticks[0] == 0 and 2 <= len(ticks) <= 7
    assert max(values) <= ticks[-1] * (1 + 1e-9)
    assert {round((b - a) / ticks[1], 6) for a, b in itertools.pairwise(ticks)} == {1.0}


@given(st.lists(RATIOS, min_size=1, max_size=20))
def test_a_ratio_axis_shows_one_and_keeps_its_labels_apart(values: list[float]):
    (low, high), ticks = style.ratio_ticks(values, 300.0)
    assert 1.0 in ticks and all(low <= value <= high for value in [*values, *ticks])
    places = [300 * math.log(tick / low) / math.log(high / low) for tick in ticks]
    assert all(b - a >= 39.9 for a, b in itertools.pairwise(places))


@pytest.mark.parametrize("layout", [DESK, NARROW])
def test_no_figure_in_words_lies_under_its_mark(layout):
    marks = (Mark("a", "", "1.01 (1.00 to 1.03), tied", 1.01, 1.0, 1.03), Mark("b", "", "1.00", 1.0))
    sheet = Intervals(marks, "times", ratio=True).sheet(layout)
    right = sheet.figure.axes[0].get_position().x1 * layout.width
    words = [text.get_text() for text in sheet.figure.texts if text.get_text().startswith("1.01 ")]
    assert len(words) == 1 and right < layout.width - style.width_of(words[0], style.LABEL, True)


def test_a_ratio_whose_interval_reaches_to_nothing_still_has_an_axis_and_ends_at_its_edge():
    mark = Mark("a", "", "1.00", 1.0, 0.0, 1e9)
    axes = Intervals((mark,), "times", ratio=True).sheet(DESK).figure.axes[0]
    low, high = axes.get_xlim()
    assert (low, high) == pytest.approx((0.01, 100.0))
    assert [low, high] in [list(line.get_xdata()) for line in axes.lines]


@given(st.lists(st.floats(0, 100), min_size=1, max_size=6))
def test_labels_that_would_touch_are_moved_apart_and_keep_their_order(places: list[float]):
    moved = style.apart(places, 14.0, 0.0, 100.0)
    order = sorted(range(len(places)), key=lambda at: places[at])
    assert all(moved[b] - moved[a] >= 13.99 for a, b in itertools.pairwise(order))
    assert max(moved) <= 100


@pytest.mark.parametrize("said", HOSTILE)
def test_a_text_is_cut_or_broken_to_what_fits(said: str):
    assert width_of(cut(said, 80.0), style.LABEL) <= 80
    lines = wrapped(said, 80.0, lines=3)
    assert len(lines) <= 3 and all(width_of(line) <= 80 for line in lines)


def drawn_texts(sheet: Sheet) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Each text of a sheet with its left, low, right and high end, px, as it stands in a PNG."""
    sheet.figure.set_dpi(DPI * PNG_SCALE)
    renderer = FigureCanvasAgg(sheet.figure).get_renderer()
    sheet.figure.draw(renderer)
    labels = [
        label for axes in sheet.figure.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())
    ]
    texts = [text for text in (*sheet.figure.texts, *labels) if text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer).extents / PNG_SCALE) for text in texts]


@EACH_CHART
@BOTH_LAYOUTS
def test_no_text_of_a_chart_overlaps_another_or_is_cut_by_an_edge(chart: Chart, layout: Layout):
    sheet = chart.sheet(layout)
    sheet.head(
        "A title that is long enough to be broken into two lines of the drawing", "less is better; " * 9
    )
    texts = drawn_texts(sheet)
    for said, (left, low, right, high) in texts:
        assert left >= -1 and right <= sheet.width + 1 and low >= -1 and high <= sheet.height + 2, said
    for (said, one), (other, two) in itertools.combinations(texts, 2):
        across = min(one[2], two[2]) - max(one[0], two[0])
        up = min(one[3], two[3]) - max(one[1], two[1])
        assert across <= 0.5 or up <= 2.5, f"'{said}' lies on '{other}'"


@EACH_CHART
def test_a_drawing_is_well_formed_and_holds_no_more_than_a_page_may_take(chart: Chart):
    drawing = draw(chart, "name", "title", "unit", "description")
    for text in (*drawing.page.replace("</svg><svg", "</svg>\n<svg").splitlines(), drawing.file):
        for element in ElementTree.fromstring(text).iter():
            tag = element.tag.rpartition("}")[2]
            assert tag in {"svg", "title", "desc", "g", "defs", "clipPath", "path", "use", "text", "rect"}
            assert element.get("style") is None
            assert element.get("id", "name").startswith("name")
            assert element.get("href", "#name").startswith("#name")


@pytest.mark.parametrize("said", HOSTILE)
def test_no_text_of_a_record_becomes_markup_or_mathematics(said: str):
    marks = (Mark(said, said, said, 1.0, card=said, precision=said),)
    drawing = draw(Intervals(marks), "name", said, said, said)
    assert {element.tag for element in read(drawing.page).elements} <= {
        *("svg", "title", "desc", "g", "defs", "clippath", "path", "use", "rect", "text")
    }
    assert not set(drawing.page) & {"\x00", "\x1b", "\u202e", "\ud800"}
    if said is MATH:
        assert r"$\frac{1}{0}$ and $unfinished" in read(drawing.page).text("text")
    assert as_png(Intervals(marks), said, said)


@settings(max_examples=25)
@given(st.text(max_size=300))
def test_any_text_in_a_drawing_leaves_it_well_formed(said: str):
    drawing = draw(Intervals((Mark(said, "", "1", 1.0),)), "name", said, "", said)
    assert len(list(ElementTree.fromstring(drawing.file).iter("{http://www.w3.org/2000/svg}desc"))) == 1


def rows_of(sheet: Sheet) -> list[list[tuple[str, list[float]]]]:
    """What stands in each row of a chart of intervals: markers with their values, grid and bars left out."""
    rows = []
    for part in sheet.parts:
        lines = [line for line in sheet.figure.axes[0].lines if line.get_gid() == part]
        shown = [(line.get_marker(), [float(x) for x in line.get_xdata()]) for line in lines]
        rows += [[(marker, xs) for marker, xs in shown if marker != "None"]] if lines else []
    return rows


@BOTH_LAYOUTS
def test_a_row_of_intervals_shows_mean_interval_runs_and_what_was_left_out(layout: Layout):
    sheet = Intervals(MARKS).sheet(layout)
    first, second, published = rows_of(sheet)
    assert first == [("|", [4400, 4700]), ("o", [4578]), ("o", [4500, 4578, 4650]), ("x", [5000])]
    assert second == [("|", [2100, 2300]), ("s", [2227])]
    assert published == [("D", [1900])]
    said = [text.get_text() for text in sheet.figure.texts]
    assert [text for text in said if text in ("4,578 s", "2,227 s", "1,900 s", "does not fit")] == [
        mark.text for mark in MARKS
    ]
    (axes,) = sheet.figure.axes
    figures = [text.get_window_extent().x0 for text in sheet.figure.texts if text.get_text().endswith(" s")]
    assert figures and min(figures) > axes.get_window_extent().x1, "a figure lies on its mark"


@BOTH_LAYOUTS
def test_a_row_shows_each_figure_from_one_to_its_value_and_what_stands_behind_its_line_below(layout: Layout):
    marks = (
        Mark("a", "batch 98", "100 s · 1.00", 1.0, 0.98, 1.02, precision="amp-fp16", card="a"),
        Mark("b", "batch 98 [a]", "150 s · 1.50", 1.5, precision="fp32-ieee", published=True),
    )
    behind = (Mark("c", "(batch 48)", "90 s · 0.90", 0.9, precision="fp32-tf32", published=True),)
    sheet = MarkRows((MarkRow("ResNet-50", marks, behind),), "unlike").sheet(layout)
    assert [row for row in rows_of(sheet) if row] == [
        [("|", [0.98, 1.02]), ("s", [1.0])],
        [("o", [1.5])],
        [("^", [0.9])],
    ]
    heights = {text.get_text(): text.get_window_extent().y0 for text in sheet.figure.texts}
    order = ("ResNet-50", "100 s · 1.00", "150 s · 1.50", "unlike", "90 s · 0.90")
    assert sorted(order, key=lambda said: -heights[said]) == list(order)


def test_names_and_lines_between_rows_close_up_with_them_and_are_never_hidden():
    chart = MarkRows(
        (MarkRow("first", RATIO_MARKS[:1], RATIO_MARKS[1:2]), MarkRow("second", RATIO_MARKS[2:3])), ""
    )
    found = read(draw(chart, "name", "t", "u", "d").page)
    groups = [element.attributes for element in found.all("g") if "data-step" in element.attributes]
    kinds = [group["class"] for group in groups]
    assert kinds == ["label", "series", "label", "series", "label", "series"] * 2
    assert all(("data-precision" in group) == (group["class"] == "series") for group in groups)


def test_a_row_can_be_hidden_and_says_how_far_the_rows_below_it_close_up():
    found = read(draw(Intervals(MARKS), "name", "t", "u", "d").page)
    rows = [element.attributes for element in found.all("g") if element.attributes["class"] == "series"]
    desk, narrow = rows[: len(MARKS)], rows[len(MARKS) :]
    assert [row["data-precision"] for row in desk] == [mark.precision for mark in MARKS]
    assert [row["data-card"] for row in narrow] == [mark.card for mark in MARKS]
    boxes = [element.attributes["viewbox"].split() for element in found.all("svg")]
    for parts, box in zip((desk, narrow), boxes, strict=True):
        assert sum(float(part["data-step"]) for part in parts) == pytest.approx(float(box[3]) - 22)
    assert [element.attributes["class"] for element in found.all("g")].count("foot") == 2


def test_shares_are_drawn_end_to_end():
    axes = CHARTS["shares"].sheet(DESK).figure.axes[0]
    (start, first), (second, end) = (line.get_xdata() for line in axes.lines)
    assert (start, second, end) == pytest.approx((0.0, 0.93, 1.0), abs=0.01) and first <= second


def test_curves_of_one_name_are_one_line_and_published_ones_lie_behind_it():
    curves = (
        Curve("ours", ((1.0, 1.0), (2.0, 0.5))),
        Curve("published", ((1.0, 1.1), (2.0, 0.6)), published=True),
        Curve("ours", ((1.0, 1.2), (2.0, float("nan")), (3.0, 0.7))),
    )
    axes = Curves(curves, "epoch").sheet(DESK).figure.axes[0]
    _, behind, ours = axes.lines
    assert behind.get_linestyle() == ":" or behind.is_dashed()
    points = [(x, y) for x, y in ours.get_xydata() if not math.isnan(x)]
    assert points == [(1.0, 1.0), (2.0, 0.5), (1.0, 1.2), (3.0, 0.7)]
    assert not ours.is_dashed()


def test_throughput_stands_over_batches_that_double_with_its_intervals_and_walls():
    sheet = BY_BATCH.sheet(DESK)
    axes = sheet.figure.axes[0]
    assert axes.get_xscale() == "log" and [tick for tick in axes.get_xticks()] == [16, 32, 64, 128]
    lines = [[(float(x), float(y)) for x, y in line.get_xydata()] for line in axes.lines]
    assert [(16.0, 1100.0), (16.0, 1300.0)] in lines
    assert [(64.0, 0.0), (64.0, axes.get_ylim()[1])] in lines
    said = [text.get_text() for text in sheet.figure.texts]
    assert {"64 does not fit", "128 does not fit", "fp32-ieee", "amp-fp16", "batch"} <= set(said)


def test_costs_stand_where_hours_and_money_meet_with_the_ranges_of_both():
    axes = CHARTS["costs"].sheet(DESK).figure.axes[0]
    lines = [(list(line.get_xdata()), list(line.get_ydata())) for line in axes.lines]
    assert {"hours": ([40.0, 55.0], [12.0, 12.0]), "cost": ([50.0, 50.0], [11.0, 14.0])}["hours"] in lines
    assert ([50.0, 50.0], [11.0, 14.0]) in lines and ([50.0], [12.0]) in lines


def test_an_input_moves_the_ratio_from_its_low_to_its_high_end():
    axes = Tornado(1.4, (Input("price", 0.9, 1.8),)).sheet(DESK).figure.axes[0]
    *_, span, low, high = (list(line.get_xdata()) for line in axes.lines)
    assert (span, low, high) == ([0.9, 1.4, 1.8], [0.9], [1.8])


def test_nothing_to_draw_is_said_in_words():
    assert "nothing to draw" in draw(Curves((), "epoch"), "name", "Loss", "", "none").page


HASHES = """
import sys
from tests.report.charts.test_drawing import hashes
print(*hashes(), sep="\\n")
"""


def hashes() -> list[str]:
    """Of each chart as it stands in a page, in a file, and in pixels."""
    drawn = {name: draw(chart, "name", name, "unit", "description") for name, chart in CHARTS.items()}
    return [
        hashlib.sha256(
            (drawn[name].page + drawn[name].file).encode() + as_png(chart, name, "unit")
        ).hexdigest()
        for name, chart in CHARTS.items()
    ]


def test_one_matplotlib_draws_the_same_bytes_in_every_process():
    seed = "1" if os.environ.get("PYTHONHASHSEED") == "2" else "2"
    elsewhere = subprocess.run(
        [sys.executable, "-c", HASHES],
        env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    here = hashes()
    assert elsewhere.stdout.split() == here and len(set(here)) == len(CHARTS)


def test_matplotlib_is_loaded_when_the_first_chart_is_drawn():
    line = "import sys, report.page; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", line], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


def test_nothing_but_the_charts_draws():
    drawing = [path for path in (REPOSITORY / "report").rglob("*.py") if "matplotlib" in path.read_text()]
    assert {path.parent.name for path in drawing} == {"charts"}


def test_a_mark_stands_beside_its_name_in_pixels_too_with_a_margin_around_both():
    sheet = Sheet(300.0, 100.0)
    axes = sheet.axes(100.0, 0.0, 200.0, 100.0)
    axes.set(xlim=(0, 1), ylim=(100, 0))
    name = {"ls": "none", "marker": "s", "ms": 8, "mec": "none", "mfc": "#ff0000"}
    sheet.line([(8.0, 50.0)], name)
    stroke(axes, [0.5], [50.0], {**name, "mfc": "#0000ff"})
    sheet.head("Title", "unit")
    pixels = images.imread(BytesIO(sheet.png()))[..., :3]
    height = (pixels.shape[0] / PNG_SCALE) - 2 * MARGIN
    below = MARGIN + height - 100 + 50
    for colour, x in (((1, 0, 0), 8), ((0, 0, 1), 200)):
        rows, columns = np.nonzero((pixels == colour).all(axis=2))
        assert rows.mean() / PNG_SCALE == pytest.approx(below, abs=1)
        assert columns.mean() / PNG_SCALE == pytest.approx(MARGIN + x, abs=1)


def test_the_first_tick_of_a_narrow_drawing_is_not_cut():
    marks = (Mark("a", "", "1.00", 1.0), Mark("b", "", "1.09", 1.09))
    sheet = Intervals(marks, "times", True).sheet(NARROW)
    (axes,) = sheet.figure.axes
    ends = [sheet.place(axes, tick, 0.0)[0] for tick in axes.get_xticks()]
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert labels[0] == "0.95"
    assert all(x - width_of(text, style.NOTE) / 2 >= 0 for x, text in zip(ends, labels, strict=True))
