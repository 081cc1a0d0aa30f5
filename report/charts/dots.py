"""Rows of dots on one scale; a row may have the band of others, what the paper says, and a range."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from report.charts.marks import BETWEEN, draw_range, rule, uprights
from report.charts.sheet import KEY_LINE, Sheet
from report.charts.style import (
    AXIS,
    HATCH,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RULE,
    SOFT,
    Layout,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    written,
)

OTHERS = 4
"""The colour's slot of small dots."""
DOT, LARGE, APART = 8.0, 13.0, 10.0
"""Diameters of dots, and from dot to dot at least, px."""
LEAST, PAD, BAND, MARK = 28.0, 6.0, 12.0, 22.0
NAME_ROW, LABEL_LINE, AXIS_ROW = 20.0, 16.0, 20.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A value with its `label` above it; it is hollow where it cannot be ranked.

    Dots that would touch are stacked; a dot with a `level` is that far above the row's lowest.
    """

    value: float
    label: str = ""
    slot: int = OTHERS
    large: bool = False
    hollow: bool = False
    level: int | None = None


@dataclass(frozen=True, slots=True)
class DotRow:
    """Dots under one name, in any order."""

    label: str
    dots: tuple[Dot, ...]
    note: str = ""
    text: str = ""
    """The figure at the right end, in the colour of the large dot."""
    band: tuple[float, float] | None = None
    """The range of other values."""
    paper: float | None = None
    span: tuple[float, float] | None = None
    """The range of the large dot."""


@dataclass(frozen=True, slots=True)
class DotRows:
    """Rows on one scale, from zero where that is asked; a value beyond `most` is drawn at `most`.

    The `key` names a dot, one of another colour, the band, and what the paper says.
    """

    rows: tuple[DotRow, ...]
    axis: str = ""
    zero: bool = True
    most: float = math.inf
    key: tuple[str, ...] = ()

    def sheet(self, layout: Layout) -> Sheet:
        """Return the sheet of the chart, with the names left of the rows or above them."""
        names = max(width_of(row.label, LABEL, True) + width_of(row.note, NOTE) for row in self.rows)
        left = min(max(names, width_of(self.axis, NOTE)) + 24, 0.42 * layout.width) if layout.beside else 0.0
        texts = max(width_of(row.text, NOTE, True) for row in self.rows)
        right = layout.width - (texts + 16.0 if left and texts else 0.0)
        values = [min(value, self.most) for row in self.rows for value in _values(row)] + [1.0]
        ticks = linear_ticks(values, zero=self.zero, most=8 if left else 5)
        low, high = (0.0, max(values)) if self.zero else (ticks[0], ticks[-1])
        unit = (right - left - LARGE) / (high - low)

        def x_of(value: float) -> float:
            return left + LARGE / 2 + unit * (min(value, self.most) - low)

        top = KEY_LINE * (1 if left else 2) if self.key else 0.0
        rows: list[_PlacedRow] = []
        for row in self.rows:
            rows.append(_placed(row, x_of, rows[-1].bottom if rows else top, (left, right)))
        bottom = rows[-1].bottom
        sheet = Sheet(layout.width, bottom + AXIS_ROW)
        self._key(sheet)
        places = {tick: x_of(tick) for tick in ticks if tick <= high}
        for at, placed in enumerate(rows):
            rule(sheet, placed.top, firm=not at)
            _names(sheet, placed, left)
            span = [(placed.plot, placed.bottom)]
            uprights(sheet, [x for tick, x in places.items() if tick != 1.0], span, RULE)
            uprights(sheet, [x_of(1.0)], span, AXIS)
            _draw(sheet, placed, x_of)
        rule(sheet, bottom)
        for tick, x in places.items():
            half = width_of(written(tick, "number"), NOTE) / 2
            across = min(max(x, half), layout.width - half)
            sheet.text(across, bottom + 15, written(tick, "number"), align="center")
        if left:
            sheet.text(0, bottom + 15, cut(self.axis, left - 10, NOTE))
        return sheet

    def _key(self, sheet: Sheet) -> None:
        x, y = 0.0, 11.0
        for place, name in enumerate(self.key):
            wide = MARK + width_of(name, NOTE) + BETWEEN
            if x + wide > sheet.width:
                x, y = 0.0, y + KEY_LINE
            if place == 2:
                sheet.rectangle((x, y - 10, MARK - 6, BAND), HATCH, alpha=0.4)
            elif place == 3:
                uprights(sheet, [x + 8], [(y - 11, y + 3)], INK, lw=2.0)
            else:
                _dots(sheet, Dot(0.0, slot=place, large=True), [(x + 8, y - 4)])
            sheet.text(x + MARK, y, name)
            x += wide


@dataclass(frozen=True, slots=True)
class _PlacedRow:
    """A row, px, with its names' and its plot's top, dots around a middle level, and labels by line."""

    row: DotRow
    top: float
    plot: float
    bottom: float
    middle: float
    dots: tuple[tuple[Dot, float, int], ...]
    labels: tuple[tuple[Dot, float, int], ...]

    def y(self, level: float) -> float:
        """Return the height of a level: all levels together are in the middle of the plot."""
        return (self.plot + self.bottom) / 2 + APART * (self.middle - level)


def _values(row: DotRow) -> list[float]:
    ends = (*(row.band or ()), *(row.span or ()), row.paper)
    return [*(dot.value for dot in row.dots), *(end for end in ends if end is not None)]


def _placed(
    row: DotRow, x_of: Callable[[float], float], top: float, edges: tuple[float, float]
) -> _PlacedRow:
    dots, labels = _stacked(row.dots, x_of), _labels(row.dots, x_of, edges)
    levels = [level for *_, level in dots] or [0]
    plot = top + (0.0 if edges[0] else NAME_ROW) + LABEL_LINE * (1 + max((n for *_, n in labels), default=-1))
    bottom = plot + max(LEAST, APART * (max(levels) - min(levels)) + LARGE + 2 * PAD)
    middle = (max(levels) + min(levels)) / 2
    return _PlacedRow(row, top, plot, bottom, middle, tuple(dots), tuple(labels))


def _names(sheet: Sheet, placed: _PlacedRow, left: float) -> None:
    row, base = placed.row, placed.top + (18.5 if left else 15.0)
    room = left - 10 if left else sheet.width - width_of(row.text, NOTE, True) - 10
    label = cut(row.label, room, LABEL, True)
    sheet.text(0, base, label, size=LABEL, bold=True, colour=INK)
    begin = width_of(label, LABEL, True) + 8
    if row.note and room - begin > 30:
        sheet.text(begin, base, cut(row.note, room - begin, NOTE), colour=SOFT)
    colour = next((system_colour(dot.slot) for dot in row.dots if dot.large and dot.slot), INK)
    sheet.text(sheet.width, base, row.text, bold=True, align="right", colour=colour)


def _draw(sheet: Sheet, placed: _PlacedRow, x_of: Callable[[float], float]) -> None:
    row, middle = placed.row, placed.y(0)
    if row.band:
        begin, end = map(x_of, row.band)
        sheet.rectangle((begin, middle - BAND / 2, end - begin, BAND), HATCH, alpha=0.4)
    if row.paper is not None:
        uprights(sheet, [x_of(row.paper)], [(middle - 10, middle + 10)], INK, lw=2.0, zorder=2.5)
    if row.span:
        draw_range(sheet, x_of(row.span[0]), x_of(row.span[1]), middle, 5.0)
    for dot, x, line in placed.labels:
        y = placed.plot - LABEL_LINE * line - 3
        sheet.text(x, y, dot.label, bold=dot.large, colour=INK if dot.large else SOFT)
    alike: dict[Dot, list[tuple[float, float]]] = {}
    for dot, x, level in placed.dots:
        look = Dot(0.0, slot=dot.slot, large=dot.large, hollow=dot.hollow)
        alike.setdefault(look, []).append((x, placed.y(level)))
    for look, places in alike.items():
        _dots(sheet, look, places)


def _dots(sheet: Sheet, look: Dot, places: Sequence[tuple[float, float]]) -> None:
    colour = system_colour(look.slot)
    ring = {"mfc": PAPER, "mec": colour} if look.hollow else {"mfc": colour, "mec": PAPER}
    size, order = (LARGE, 4) if look.large else (DOT, 3)
    sheet.line(places, {"ls": "none", "marker": "o", "ms": size, "mew": 1.5, "zorder": order, **ring})


def _stacked(dots: Sequence[Dot], x_of: Callable[[float], float]) -> list[tuple[Dot, float, int]]:
    """Return each dot with its place across and its level."""
    placed: list[tuple[Dot, float, int]] = []
    large: list[tuple[float, int]] = []
    last: dict[int, float] = {}
    # From left to right, so that of the small ones on a level only the last one can be near.
    for dot in sorted(dots, key=lambda dot: (not dot.large, dot.value, dot.label)):
        x, level = x_of(dot.value), dot.level or 0
        while dot.level is None and (
            x - last.get(level, -math.inf) < APART - 0.1
            or any(math.hypot(x - other, APART * (level - taken)) < APART + 2.0 for other, taken in large)
        ):
            level = -level if level > 0 else 1 - level
        placed.append((dot, x, level))
        if dot.large:
            large.append((x, level))
        else:
            last[level] = x
    return placed


def _labels(
    dots: Sequence[Dot], x_of: Callable[[float], float], edges: tuple[float, float]
) -> list[tuple[Dot, float, int]]:
    """Return where each label begins, and in which line from below."""
    placed: list[tuple[Dot, float, int]] = []
    taken: list[tuple[float, float, int]] = []
    for dot in (dot for dot in dots if dot.label):
        wide, line = width_of(dot.label, NOTE, dot.large), 0
        x = min(max(x_of(dot.value) - wide / 2, edges[0]), edges[1] - wide)
        while any(line == other and x < high + 10 and low - 10 < x + wide for low, high, other in taken):
            line += 1
        placed.append((dot, x, line))
        taken.append((x, x + wide, line))
    return placed
