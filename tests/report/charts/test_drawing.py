"""What a chart shows, in which order and under which names; and no text of a record is more than text."""

from __future__ import annotations

import itertools
import math
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from report.charts import style
from report.charts.costs import Input, Tornado
from report.charts.drawing import Chart, as_png, draw
from report.charts.intervals import Intervals, Mark
from report.charts.lines import Curve, Curves
from report.charts.rows import MarkRow, MarkRows
from report.charts.sheet import DPI, PNG_SCALE, Sheet
from report.charts.style import DESK, NARROW, Layout, cut, width_of, wrapped
from tests.helpers.charts import BOTH_LAYOUTS, BY_BATCH, CHARTS, EACH_CHART, HOSTILE, MARKS, MATH, RATIO_MARKS
from tests.helpers.page_reader import read

FINITE = st.floats(min_value=1e-6, max_value=1e9, allow_nan=False, allow_infinity=False)
RATIOS = st.floats(min_value=0.02, max_value=50.0, allow_nan=False)


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


@pytest.mark.parametrize("value", [118.0, 11193.0, 0.002])
def test_rows_of_ratios_reach_the_furthest_figure_but_not_the_furthest_end_of_an_interval(value: float):
    marks = (Mark("a", "", "1.00", 1.0), Mark("b", "", "", value, value / 1e5, value * 1e5))
    axes = MarkRows((MarkRow("row", marks),), "").sheet(DESK).figure.axes[0]
    low, high = axes.get_xlim()
    assert low < value < high and high / low < 1.1 * max(value, 1 / value) * 1e4


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
