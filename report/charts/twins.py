"""Two software stacks pair by pair: how many times as fast one is, a dot each pair, and the range of all."""

from __future__ import annotations

from dataclasses import dataclass

from report.charts.marks import draw_range, rule, uprights
from report.charts.sheet import Sheet
from report.charts.style import (
    AXIS,
    GREY,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RULE,
    Layout,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    written,
)

DOT, MEAN, EACH, PAD, NAME_ROW, AXIS_ROW = 7.0, 12.0, 9.0, 14.0, 18.0, 20.0


@dataclass(frozen=True, slots=True)
class TwinRow:
    """One work: the ratio of each pair in their order, and of all with its range, where that is known."""

    label: str
    ratios: tuple[float, ...]
    low: float
    middle: float
    high: float


@dataclass(frozen=True, slots=True)
class TwinRatios:
    """Rows on one scale around 1, which need not begin at zero."""

    rows: tuple[TwinRow, ...]
    axis: str

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the rows, or above them."""
        names = max(width_of(row.label, LABEL, True) for row in self.rows) + 24
        left = min(names, 0.4 * layout.width) if layout.beside else 0.0
        values = [each for row in self.rows for each in (*row.ratios, row.low, row.high, 1.0)]
        ticks = linear_ticks(values, zero=False, most=8 if left else 4)
        unit = (layout.width - left - MEAN) / (ticks[-1] - ticks[0])
        places = {tick: left + MEAN / 2 + unit * (tick - ticks[0]) for tick in ticks}
        above = 0.0 if left else NAME_ROW
        heights = [above + EACH * len(row.ratios) + 3 * PAD for row in self.rows]
        sheet, y = Sheet(layout.width, sum(heights) + AXIS_ROW), 0.0
        for row, height in zip(self.rows, heights, strict=True):
            rule(sheet, y, firm=not y)
            label = cut(row.label, left - 10 if left else layout.width, LABEL, True)
            sheet.text(0, y + (18 if left else 14), label, size=LABEL, bold=True, colour=INK)
            for tick, x in places.items():
                uprights(sheet, [x], [(y + above, y + height)], AXIS if tick == 1.0 else RULE)

            def x_of(value: float) -> float:
                return left + MEAN / 2 + unit * (value - ticks[0])

            for at, ratio in enumerate(row.ratios):
                _dot(sheet, x_of(ratio), y + above + PAD + EACH * at, DOT, GREY)
            bottom = y + height - PAD
            draw_range(sheet, x_of(row.low), x_of(row.high), bottom, 5.0)
            _dot(sheet, x_of(row.middle), bottom, MEAN, system_colour(0))
            y += height
        rule(sheet, y)
        for tick, x in places.items():
            half = width_of(written(tick, "number"), NOTE) / 2
            across = min(max(x, half), layout.width - half)
            sheet.text(across, y + 15, written(tick, "number"), align="center")
        if left:
            sheet.text(0, y + 15, cut(self.axis, left - 10, NOTE))
        return sheet


def _dot(sheet: Sheet, x: float, y: float, size: float, colour: str) -> None:
    look = {"ls": "none", "marker": "o", "ms": size, "mew": 1.0, "mfc": colour, "mec": PAPER, "zorder": 4}
    sheet.line([(x, y)], look)
