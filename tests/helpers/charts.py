"""One of each chart, with long names and hostile texts; and where its texts stand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D

from report.charts.bars import Bar, Bars, Group
from report.charts.dots import OTHERS, Dot, DotRow, DotRows
from report.charts.drawing import Chart, Drawing, as_png, draw
from report.charts.marks import KeyEntry
from report.charts.panels import BarPanel, CurveLine, CurvePanel, PanelBar, Panels, SharePanel
from report.charts.sheet import DPI, Sheet
from report.charts.style import DESK, NARROW
from tests.helpers import records_hostile

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
KEY = (
    KeyEntry("this machine", "own"),
    KeyEntry("other machine, measured", "other", 1),
    KeyEntry("this machine, too short to rank", "unranked"),
    KeyEntry("published, one run, no range", "published"),
    KeyEntry("failed", "failed"),
)
TIMES = (
    Bar("Card B", "other", 1.0, 0.98, 1.02, "28 min", "1.00", "fp32", 1),
    Bar("Card B", "other", 1.01, 0.99, 1.04, "28 min", "1.01", "fp16", 1),
    Bar("Card A", "own", 1.43, 1.38, 1.47, "40 min", "1.43", "fp32"),
    Bar("RTX 2080 Ti", "published", 1.71, None, None, "48 min", "1.71", "fp16"),
    Bar("Card A", "unranked", 2.75, 2.1, 3.4, "77 min", "2.75", "bf16"),
    Bar("Card A", "failed", text="out of memory", small="5 of 5", note="pure-fp16"),
)
GROUPS = (
    Group("ResNet-50", TIMES, ("CIFAR-100, 30 epochs",)),
    Group("LSTM", TIMES[2:4], ("WikiText-2, 6 epochs", "each bar from zero, and a note that is long")),
)


def many_bars(count: int) -> Bars:
    """So many bars in groups of four."""
    bars = [replace(TIMES[n % 5], value=1 + n / 10, high=None, low=None) for n in range(count)]
    groups = [Group(f"workload {n}", tuple(bars[n : n + 4]), ("a note",)) for n in range(0, count, 4)]
    return Bars(tuple(groups), "fastest = 1.00", KEY)


def many_machines(count: int, spread: float = 2.0) -> DotRows:
    """So many machines in two rows, of which the sixth, or the last, is this one."""
    own = min(5, count - 1)
    values = [1 + spread * (n * 37 % count) / count for n in range(count)]
    dots = tuple(
        Dot(value, slot=0 if n == own else OTHERS, large=n == own, hollow=n % 7 == 6)
        for n, value in enumerate(values)
    )
    named = tuple(replace(dot, label=f"Core i7-{n}" if n in (0, own) else "") for n, dot in enumerate(dots))
    return DotRows((DotRow("Both works", named), DotRow("LSTM", dots)), "fastest = 1.00")


CHECK = DotRows(
    (
        DotRow("Product, bf16", (Dot(0.8, slot=1, large=True),), "3 cards", "0.80", (0.9, 1.1), 1.3),
        DotRow(LONG_CARD, (Dot(1.0, slot=0, large=True),), "of the paper", "1.00", paper=1.2),
        DotRow("Copy", (), "too little known", "20 GB/s"),
    ),
    "middle of what is known = 1",
    most=2.0,
    key=("this card", "too slow", "a sound card lies there", "paper"),
)
RATIOS = (0.95, 0.97, 0.96)
TWINS = DotRows(
    (
        DotRow(
            "a work",
            (
                *(Dot(one, level=3 - n) for n, one in enumerate(RATIOS)),
                Dot(0.96, slot=0, large=True, level=0),
            ),
            span=(0.94, 0.98),
        ),
    ),
    "times as fast",
    zero=False,
)


STAGES = Bars(
    (
        Group(
            "",
            (
                Bar("ResNets", "failed", 3.0, text="driver too old", small="5 of 5", note="fp32"),
                Bar("Small CNN", "failed", 0.0, text="no image", small="2 of 2"),
                Bar("LSTM", "own", 5.0, small="2 of 2", note="fp16"),
            ),
        ),
    ),
    "reached",
    KEY,
    None,
    ticks=((1.0, "image"), (2.0, "data"), (3.0, "card"), (4.0, "first step"), (5.0, "speed")),
)
MEMORY = BarPanel(
    "Peak memory",
    "ResNet-152; outline: the card's memory",
    (
        PanelBar("RTX 4070 fp32", 9.8, "9.8 GiB", capacity=12.0),
        PanelBar(LONG_CARD, 7.4, "7.4 GiB", "published", capacity=11.0),
    ),
)
GAIN = CurvePanel(
    "Gain of fp16 over fp32",
    "times as fast, by millions of weights",
    (
        CurveLine(
            "this machine", ((12.0, 1.06), (26.0, 1.47), (60.0, 1.78)), 0, 0, False, True, ((1.0, 1.1), None)
        ),
        CurveLine("published", ((12.0, 0.99), (26.0, math.nan), (60.0, 1.6)), published=True, stroke=1),
    ),
    ticks=((12.0, "12"), (26.0, "26"), (60.0, "60")),
)
SHARES = SharePanel(
    "Where the time goes",
    "share of a step",
    ("input", "copy", "forward", "backward", "optimiser"),
    (("fp32, ResNet-152", (0.01, 0.02, 0.32, 0.58, 0.07)), (LONG_CARD, (0.22, 0.04, 0.24, 0.43, 0.07))),
)


def many_lines(count: int) -> CurvePanel:
    """So many lines that end close to each other."""
    lines = (
        CurveLine(f"trial {n}", ((0.0, 3.0), (900.0, 0.5 + n / 500)), n % 5, n // 5) for n in range(count)
    )
    return CurvePanel("Loss", "by step", tuple(lines))


BY_BATCH = CurvePanel(
    "Throughput",
    "images/s, by batch",
    (
        CurveLine("fp32", ((16.0, 1200.0), (32.0, 2000.0)), 0),
        CurveLine("fp16", ((16.0, 1500.0), (128.0, 4100.0)), 1),
    ),
    doubling=True,
)


ROOFLINE = CurvePanel(
    "",
    "TFLOP/s",
    (
        CurveLine("fp32, on paper", ((20.0, 67.0), (2000.0, 67.0)), published=True, stroke=1),
        CurveLine("ResNet-50, amp-bf16", ((990.0, 40.0),), marked=True),
    ),
    decades=True,
)
OFFERS = CurvePanel(
    "",
    "times as fast, by EUR a year",
    (
        CurveLine(
            "Card A",
            ((500.0, 2.1),),
            0,
            marked=True,
            hollow=True,
            ranges=((1.4, 3.1),),
            spans=((300.0, 900.0),),
        ),
        CurveLine(LONG_CARD, ((2900.0, 1.0),), 1, marked=True, ranges=(None,), spans=((1700.0, 5600.0),)),
    ),
    ticks=((0.0, "0"), (6000.0, "6,000")),
)
CHARTS: dict[str, Chart] = {
    "bars": Bars(GROUPS, "fastest = 1.00", KEY),
    "bars on scales of their own": Bars(
        (*GROUPS, Group("one", (replace(TIMES[2], value=45.0, high=47.0), TIMES[0]))), key=KEY
    ),
    "bars of long names": Bars(
        (Group(LONG_CARD, tuple(replace(bar, label=LONG_CARD) for bar in TIMES), (LONG_CARD,)),),
        LONG_CARD,
        KEY,
    ),
    "24 bars": many_bars(24),
    "dots": many_machines(18),
    "dots of three": many_machines(3),
    "dots of forty": many_machines(40, 0.1),
    "a check": CHECK,
    "twins": TWINS,
    "stages": STAGES,
    "panels": Panels((MEMORY, GAIN, SHARES, BY_BATCH)),
    "panels of two": Panels((many_lines(20), GAIN)),
    "a panel of twenty lines": Panels((many_lines(20),)),
    "memory": Bars((Group("", TIMES[2:4]),), "GiB", KEY, None),
    "roofline": Panels((ROOFLINE,)),
    "offers": Panels((OFFERS,)),
    "nothing": Bars(()),
}
EACH_CHART = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
EACH_LAYOUT = pytest.mark.parametrize("layout", [DESK, NARROW], ids=["desk", "narrow"])


@cache
def drawing_of(chart: Chart) -> Drawing:
    """A chart as a page and a file have it."""
    return draw(chart, "name", "title", "unit", "description")


@cache
def pixels_of(chart: Chart) -> bytes:
    """A chart as PNG."""
    return as_png(chart, "title", "unit")


def drawn_texts(sheet: Sheet) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Each text of a sheet with its left, low, right and high end, px."""
    # In a few pixels to a px, for each letter is as wide as whole pixels.
    sheet.figure.set_dpi(DPI * 4)
    renderer = FigureCanvasAgg(sheet.figure).get_renderer()
    texts = [text for text in sheet.figure.texts if text.get_text().strip()]
    return [(text.get_text(), text.get_window_extent(renderer).extents / 4) for text in texts]


def lines_of(sheet: Sheet) -> list[tuple[Line2D, list[tuple[float, float]]]]:
    """The lines and marks of a sheet, each with its places from the left and from the top, px."""
    found = [line for line in sheet.figure.artists if isinstance(line, Line2D)]
    return [
        (line, [(sheet.width * x, sheet.height * (1 - y)) for x, y in line.get_xydata()]) for line in found
    ]


def dots_of(sheet: Sheet) -> list[tuple[Line2D, list[tuple[float, float]]]]:
    """Each mark, with the line that it is drawn by."""
    marked = [(line, places) for line, places in lines_of(sheet) if line.get_marker() in ("o", "s")]
    return [(line, [place]) for line, places in marked for place in places]
