"""Points with ranges both ways, as speed against cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.charts.marks import uprights
from report.charts.sheet import Sheet
from report.charts.style import (
    AXIS,
    LABEL,
    NOTE,
    PAPER,
    RULE,
    Layout,
    apart,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    written,
)

HEIGHT, DOT, ROW = 280.0, 11.0, 18.0
"""The heights of the plot and of a point, and the step from one name to the next, px."""
FOOT, HEAD = 40.0, 22.0
MOST = 2.5
"""A range that reaches further than so many times the greatest value is cut there."""

Ends = tuple[float, float, float]
"""Low, value, high."""


@dataclass(frozen=True, slots=True)
class OfferPoint:
    """One thing with its ranges; what was not measured is `hollow`."""

    label: str
    across: Ends
    up: Ends
    slot: int = 0
    hollow: bool = False


@dataclass(frozen=True, slots=True)
class Scatter:
    """Points on two scales from zero, each with its name."""

    points: tuple[OfferPoint, ...]
    across: str
    up: str

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the points, each in a row of its own."""
        sheet = Sheet(layout.width, HEAD + HEIGHT + FOOT)
        most = _most([point.across for point in self.points]), _most([point.up for point in self.points])
        ups = [tick for tick in linear_ticks([0.0, most[1]], zero=True, most=5) if tick <= most[1]]
        left = max(width_of(written(tick, "number"), NOTE) for tick in ups) + 10.0
        names = max(width_of(point.label, LABEL, True) for point in self.points) + 16.0
        unit = (layout.width - left - DOT) / most[0], (HEIGHT - DOT) / most[1]
        bottom = HEAD + HEIGHT
        sheet.text(0, 12, cut(self.up, layout.width, NOTE))
        for tick in ups:
            y = bottom - tick * unit[1]
            sheet.line(
                [(left, y), (layout.width, y)], {"color": RULE if tick else AXIS, "lw": 1.0, "zorder": 0.5}
            )
            sheet.text(left - 8, y + 4, written(tick, "number"), align="right")
        for tick in linear_ticks([0.0, most[0]], zero=True, most=8 if layout.beside else 4):
            text, x = written(tick, "number"), left + tick * unit[0]
            if tick <= most[0]:
                uprights(sheet, [x], [(bottom, bottom + 4)], AXIS)
                sheet.text(min(x, layout.width - width_of(text, NOTE) / 2), bottom + 18, text, align="center")
        sheet.text(layout.width, bottom + 35, cut(self.across, layout.width, NOTE), align="right")
        places = [(left + p.across[1] * unit[0], bottom - p.up[1] * unit[1]) for p in self.points]
        rows = apart([y - 8 for _, y in places], ROW, HEAD + 10, bottom - 6)
        for point, (x, y), row in zip(self.points, places, rows, strict=True):
            ends = [(left + min(e, most[0]) * unit[0], y) for e in point.across[::2]]
            _draw(
                sheet, point, (x, y), ends, [(x, bottom - min(e, most[1]) * unit[1]) for e in point.up[::2]]
            )
            beside = x + 10 if x + names < layout.width else x - 10
            align = "left" if beside > x else "right"
            sheet.text(
                beside, row, point.label, size=LABEL, bold=True, colour=system_colour(point.slot), align=align
            )
        return sheet


def _most(ends: Sequence[Ends]) -> float:
    """Where a scale ends."""
    greatest = max(value for _, value, _ in ends)
    return 1.04 * min(max(high for *_, high in ends), MOST * greatest)


def _draw(
    sheet: Sheet,
    point: OfferPoint,
    place: tuple[float, float],
    across: Sequence[tuple[float, float]],
    up: Sequence[tuple[float, float]],
) -> None:
    colour = system_colour(point.slot)
    for line in (across, up):
        sheet.line(line, {"color": colour, "lw": 2.0, "zorder": 3})
    fill = {"mfc": PAPER if point.hollow else colour, "mec": colour}
    sheet.line([place], {"ls": "none", "marker": "o", "ms": DOT, "mew": 2.0, "zorder": 4, **fill})
