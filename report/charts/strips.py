"""Many machines on one line for each workload: a dot each, this one large."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from report.charts.marks import KeyEntry, draw_key, key_height, rule, uprights
from report.charts.sheet import Sheet
from report.charts.style import (
    AXIS,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RULE,
    SOFT,
    Layout,
    Style,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    written,
)

DOT, OWN = 8.0, 13.0
"""Diameters of the others' dots and this machine's, px."""
APART = 10.0
"""From dot to dot at least, px."""
LEAST, PAD, LABEL_LINE, NAME_LINE, AXIS_ROW = 34.0, 6.0, 16.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class Dot:
    """A machine's value on a strip; it is hollow where it is not `ranked`."""

    label: str
    value: float
    own: bool = False
    ranked: bool = True


@dataclass(frozen=True, slots=True)
class Strip:
    """The machines of one workload, in any order."""

    label: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True, slots=True)
class Strips:
    """Strips on one scale from zero; on the first, the ends and this machine have their names."""

    strips: tuple[Strip, ...]
    axis: str = ""
    key: tuple[KeyEntry, ...] = ()

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the strips, or above them."""
        names = [width_of(strip.label, LABEL, True) for strip in self.strips]
        aside = max([*names, width_of(self.axis, NOTE)])
        left = min(aside + 24.0, 0.26 * layout.width) if layout.beside else 0.0
        most = max((dot.value for strip in self.strips for dot in strip.dots), default=1.0) or 1.0
        scale = _Scale(left + OWN / 2, (layout.width - left - OWN) / most)
        top = key_height(self.key, layout.width)
        rows: list[_StripRow] = []
        for strip in self.strips:
            labels = [] if rows else _labels(strip.dots, scale, left, layout.width)
            rows.append(_row(strip, top, labels, scale, left))
            top += rows[-1].height
        sheet = Sheet(layout.width, top + AXIS_ROW)
        draw_key(sheet, self.key)
        ticks = [tick for tick in linear_ticks([0.0, most], zero=True, most=8 if left else 5) if tick <= most]
        for row in rows:
            rule(sheet, row.top, firm=row is rows[0])
            label = cut(row.strip.label, left - 10 if left else sheet.width, LABEL, True)
            sheet.text(0, row.top + (18 if left else 16), label, size=LABEL, bold=True, colour=INK)
            span = [(row.plot + LABEL_LINE * row.label_rows, row.top + row.height)]
            uprights(sheet, [scale.x(tick) for tick in ticks if tick != 1.0], span, RULE)
            if most >= 1.0:
                uprights(sheet, [scale.x(1.0)], span, AXIS)
            _draw(sheet, row)
        rule(sheet, top)
        for tick in ticks:
            text = written(tick, "number")
            half = width_of(text, NOTE) / 2
            sheet.text(min(max(scale.x(tick), half), layout.width - half), top + 15, text, align="center")
        if left:
            sheet.text(0, top + 15, cut(self.axis, left - 10, NOTE))
        return sheet


@dataclass(frozen=True, slots=True)
class _Scale:
    """The place of zero, and the px of a unit."""

    zero: float
    unit: float

    def x(self, value: float) -> float:
        return self.zero + value * self.unit


@dataclass(frozen=True, slots=True)
class _StripRow:
    """A strip in its place: where it and its plot begin, px; dots with their level, names with their row."""

    strip: Strip
    top: float
    plot: float
    height: float
    dots: tuple[tuple[Dot, float, int], ...]
    labels: tuple[tuple[Dot, float, int], ...]

    @property
    def label_rows(self) -> int:
        return 1 + max((row for *_, row in self.labels), default=-1)


def _row(
    strip: Strip, top: float, labels: Sequence[tuple[Dot, float, int]], scale: _Scale, left: float
) -> _StripRow:
    dots = _stacked(strip.dots, scale)
    levels = [level for *_, level in dots] or [0]
    row = _StripRow(strip, top, top + (0.0 if left else NAME_LINE), 0.0, tuple(dots), tuple(labels))
    plot = max(LEAST, APART * (max(levels) - min(levels)) + OWN + 2 * PAD) + LABEL_LINE * row.label_rows
    return replace(row, height=plot if left else plot + NAME_LINE)


def _draw(sheet: Sheet, row: _StripRow) -> None:
    """The dots around the middle of a strip, below the names of some."""
    for dot, x, place in row.labels:
        y = row.plot + LABEL_LINE * (row.label_rows - place) - 3
        sheet.text(x, y, dot.label, bold=dot.own, colour=INK if dot.own else SOFT)
    levels = [level for *_, level in row.dots] or [0]
    middle = (row.plot + LABEL_LINE * row.label_rows + row.top + row.height) / 2
    middle += APART * (max(levels) + min(levels)) / 2
    alike: dict[tuple[bool, bool], list[tuple[float, float]]] = {}
    for dot, x, level in row.dots:
        alike.setdefault((dot.own, dot.ranked), []).append((x, middle - APART * level))
    for (own, ranked), places in alike.items():
        sheet.line(places, _dot_style(own=own, ranked=ranked))


def _dot_style(*, own: bool, ranked: bool) -> Style:
    colour = system_colour(0 if own else 4)
    ring = {"mfc": colour, "mec": PAPER} if ranked else {"mfc": PAPER, "mec": colour}
    size = OWN if own else DOT
    return {"ls": "none", "marker": "o", "ms": size, "mew": 1.5, "zorder": 4 if own else 3, **ring}


def _stacked(dots: Sequence[Dot], scale: _Scale) -> list[tuple[Dot, float, int]]:
    """Each dot with its place across and its level; dots that would touch are stacked."""
    placed: list[tuple[Dot, float, int]] = []
    own: list[tuple[float, int]] = []
    last: dict[int, float] = {}
    # From left to right, so that of the others on a level only the last one can be near.
    for dot in sorted(dots, key=lambda dot: (not dot.own, dot.value, dot.label)):
        x, level = scale.x(dot.value), 0
        while x - last.get(level, -math.inf) < APART - 0.1 or any(
            math.hypot(x - other, APART * (level - taken)) < APART + 2.0 for other, taken in own
        ):
            level = -level if level > 0 else 1 - level
        placed.append((dot, x, level))
        if dot.own:
            own.append((x, level))
        else:
            last[level] = x
    return placed


def _labels(dots: Sequence[Dot], scale: _Scale, left: float, right: float) -> list[tuple[Dot, float, int]]:
    """Return where the names of this machine and of both ends begin, and in which row from below."""
    ends = sorted((dot for dot in dots if dot.ranked), key=lambda dot: dot.value)
    named = dict.fromkeys([*(dot for dot in dots if dot.own), *ends[:1], *ends[-1:]])
    placed: list[tuple[Dot, float, int]] = []
    taken: list[tuple[float, float, int]] = []
    for dot in named:
        wide, x, row = width_of(dot.label, NOTE, dot.own), scale.x(dot.value), 0
        x = min(max(x - wide / 2, left), right - wide)
        while any(row == other and x < high + 10 and low - 10 < x + wide for low, high, other in taken):
            row += 1
        placed.append((dot, x, row))
        taken.append((x, x + wide, row))
    return placed
