"""One of each chart, with long names and hostile texts; and where its texts stand."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.lines import Line2D

from report.charts.curves import CurveLine, CurvePanel, Curves
from report.charts.drawing import DPI, Chart, Drawing, Sheet, draw_chart
from report.charts.rows import KeyEntry, Mark, RowGroup, ScaleRow, ScaleRows
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
    KeyEntry("this machine", "measured"),
    KeyEntry("other machine, measured", "measured", 1),
    KeyEntry("this machine, projected", "projected"),
    KeyEntry("published, one run, no range", "published"),
    KeyEntry("failed", "failed"),
)
TIMES = (
    ScaleRow("Card B", (Mark(1.0, 0.98, 1.02, slot=1),), "fp32", "28 min", "1.00"),
    ScaleRow("Card B", (Mark(1.01, 0.99, 1.04, slot=1),), "fp16", "28 min", "1.01"),
    ScaleRow("Card A", (Mark(1.43, 1.38, 1.47),), "fp32", "40 min", "1.43"),
    ScaleRow("RTX 2080 Ti", (Mark(1.71, look="published"),), "fp16", "48 min", "1.71"),
    ScaleRow("Card A", (Mark(2.75, 2.1, 3.4, "projected"),), "bf16", "77 min", "2.75"),
    ScaleRow("Card A", (), "pure-fp16", "does not fit", "5 of 5"),
)
GROUPS = (
    RowGroup("ResNet-50", TIMES, ("CIFAR-100, 30 epochs",)),
    RowGroup("LSTM", TIMES[2:4], ("WikiText-2, 6 epochs", "each bar from zero, and a note that is long")),
)
Box = tuple[float, float, float, float]


def many_rows(count: int) -> ScaleRows:
    """So many rows in groups of four."""
    rows = [replace(TIMES[n % 5], marks=(Mark(1 + n / 10),)) for n in range(count)]
    groups = [RowGroup(f"workload {n}", tuple(rows[n : n + 4]), ("a note",)) for n in range(0, count, 4)]
    return ScaleRows(tuple(groups), "fastest = 1.00", KEY)


def many_machines(count: int, spread: float = 2.0) -> ScaleRows:
    """So many machines in two rows, of which the sixth, or the last, is this one."""
    own = min(5, count - 1)
    values = [1 + spread * (n * 37 % count) / count for n in range(count)]
    marks = tuple(
        Mark(
            value,
            0.98 * value if n % 2 else None,
            1.02 * value if n % 2 else None,
            "projected" if n % 7 == 6 else "measured",
            0 if n == own else 4,
            small=n != own,
        )
        for n, value in enumerate(values)
    )
    named = (replace(mark, label=f"Core i7-{n}" if n in (0, own) else "") for n, mark in enumerate(marks))
    rows = ScaleRow("Both works", tuple(named)), ScaleRow("LSTM", marks)
    return ScaleRows((RowGroup("", rows),), "fastest = 1.00", dots=True)


CHECK = ScaleRows(
    (
        RowGroup(
            "",
            (
                ScaleRow("Product, bf16", (Mark(0.8, slot=1),), "3 cards", "80 %", "12 TFLOP/s", (0.9, 1.1)),
                ScaleRow(LONG_CARD, (Mark(1.0),), "of what is known", "100 %"),
                ScaleRow("Copy", text="20 GB/s", small="too little is known"),
            ),
        ),
    ),
    "share of the peak",
    (*KEY, KeyEntry("a sound card lies there", "band")),
    ticks=((0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")),
)
STAGES = ScaleRows(
    (
        RowGroup(
            "",
            (
                ScaleRow("ResNets", (Mark(3.0, look="failed"),), "fp32", "driver too old", "5 of 5"),
                ScaleRow("Small CNN", (Mark(0.0, look="failed"),), "", "no image", "2 of 2"),
                ScaleRow("LSTM", (Mark(5.0),), "fp16", "", "2 of 2"),
            ),
        ),
    ),
    "reached",
    KEY,
    reference=None,
    ticks=((1.0, "image"), (2.0, "data"), (3.0, "card"), (4.0, "first step"), (5.0, "speed")),
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
    ticks=((16.0, "16"), (32.0, "32"), (128.0, "128")),
)


CHARTS: dict[str, Chart] = {
    "rows": ScaleRows(GROUPS, "fastest = 1.00", KEY),
    "rows on scales of their own": ScaleRows(
        (*GROUPS, RowGroup("one", (replace(TIMES[2], marks=(Mark(45.0, 44.0, 47.0),)), TIMES[0]))), key=KEY
    ),
    "rows of long names": ScaleRows(
        (RowGroup(LONG_CARD, tuple(replace(row, label=LONG_CARD) for row in TIMES), (LONG_CARD,)),),
        LONG_CARD,
        KEY,
    ),
    "24 rows": many_rows(24),
    "dots": many_machines(18),
    "dots of three": many_machines(3),
    "dots of forty": many_machines(40, 0.1),
    "a check": CHECK,
    "stages": STAGES,
    "curves": Curves((GAIN, BY_BATCH)),
    "curves of two": Curves((many_lines(20), GAIN)),
    "a panel of twenty lines": Curves((many_lines(20),)),
    "costs": ScaleRows((RowGroup("", TIMES[2:4]),), "EUR a year", KEY, reference=None),
    "nothing": ScaleRows(()),
}
EACH_CHART = pytest.mark.parametrize("chart", CHARTS.values(), ids=CHARTS)
EACH_LAYOUT = pytest.mark.parametrize("layout", [DESK, NARROW], ids=["desk", "narrow"])


@cache
def drawing_of(chart: Chart) -> Drawing:
    """A chart as a page and a file have it."""
    return draw_chart(chart, "name", "title", "unit", "description")


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
