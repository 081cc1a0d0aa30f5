"""Lines over a number, an epoch or time, each named at its end."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from report.charts.marks import uprights
from report.charts.sheet import Sheet
from report.charts.style import (
    AXIS,
    HATCH,
    INK,
    LINE,
    NOTE,
    PAPER,
    RULE,
    SOFT,
    Form,
    apart,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    written,
)

HEIGHT, FOOT, STEP, TOP = 150.0, 22.0, 15.0, 6.0
"""Of a panel at least, below its axis, from one name to the next, and above the highest value, px."""
LEADER = 12.0
"""From the end of a line to its name, px."""
STROKES: tuple[object, ...] = ("-", (0, (5, 4)), (0, (1.5, 2.5)), (0, (8, 3, 2, 3)))
DENSE = 120
"""Points of a line that is drawn thin."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One line in a system's colour and one of four strokes; lines of one label are named once.

    `ranges` has an entry for each point, null where there is none. A `published` line is grey and thin; one
    that is `marked` has a dot at every point, for between them nothing was measured.
    """

    label: str
    points: Points
    slot: int = 0
    stroke: int = 0
    published: bool = False
    marked: bool = False
    ranges: tuple[tuple[float, float] | None, ...] = ()

    @property
    def colour(self) -> str:
        """Its system's, or grey."""
        return HATCH if self.published else system_colour(self.slot)

    def finite(self) -> Points:
        """The points that can be drawn."""
        return tuple(point for point in self.points if all(map(math.isfinite, point)))


@dataclass(frozen=True, slots=True)
class Curves:
    """A panel of lines; `ticks` across may be given with their labels, else they are round or `doubling`."""

    title: str
    note: str
    lines: tuple[Line, ...]
    form: Form = "number"
    zero: bool = True
    doubling: bool = False
    ticks: tuple[tuple[float, str], ...] = ()
    between: tuple[tuple[str, ...], ...] = ()
    """What happened from each of these ticks to the next, below them."""

    def height(self, width: float) -> float:
        """Higher where many lines have to be named."""
        named = max(HEIGHT, STEP * len({line.label for line in self.lines}) + FOOT + 2 * TOP)
        return named + self._below

    @property
    def _below(self) -> float:
        return LINE * max(map(len, self.between), default=0)

    def draw(self, sheet: Sheet, left: float, top: float, width: float, height: float) -> None:
        """The names stand at the right in the order of the ends, and lead to them."""
        height -= self._below
        lines = [line for line in self.lines if line.finite()]
        values = [y for line in lines for _, y in line.finite()]
        values += [end for line in lines for pair in line.ranges if pair for end in pair]
        if not lines:
            return
        up = linear_ticks(values, zero=self.zero, most=4)
        names = max(width_of(line.label, NOTE) for line in lines)
        room = min(names + LEADER + 4, 0.45 * width) if names else 8.0
        start = left + max(width_of(written(tick, self.form), NOTE) for tick in up) + 8
        plot = _Plot(
            (start, left + width - room),
            (top + TOP, top + height - FOOT),
            self._across(lines),
            (up[0], up[-1]),
        )
        for tick in up:
            y = plot.y(tick)
            sheet.text(start - 8, y + 4.5, written(tick, self.form), align="right")
            sheet.line([(start, y), (plot.across[1], y)], {"color": RULE, "lw": 1.0, "zorder": 0.5})
        self._foot(sheet, plot, lines, top + height - 5, left + width)
        self._events(sheet, plot, top + height)
        for line in sorted(lines, key=lambda line: not line.published):
            _draw(sheet, plot, line)
        if names:
            _name(sheet, plot, lines, left + width)

    def _across(self, lines: Sequence[Line]) -> tuple[float, float, bool]:
        xs = [x for line in lines for x, _ in line.finite()] + [x for x, _ in self.ticks]
        if self.doubling:
            return min(xs) / 1.12, max(xs) * 1.12, True
        low, high = min(xs), max(xs)
        return low, high if high > low else low + 1.0, False

    def _foot(self, sheet: Sheet, plot: _Plot, lines: Sequence[Line], y: float, right: float) -> None:
        """The ticks across whose labels do not touch: the first, and from it those that have room."""
        xs = [x for line in lines for x, _ in line.finite()]
        low, high, _ = plot.values
        found = sorted(set(xs)) if self.doubling else linear_ticks(xs, zero=False, most=5)
        ticks = self.ticks or [(tick, written(tick, "number")) for tick in found if low <= tick <= high]
        last = -math.inf
        for tick, text in ticks:
            half = width_of(text, NOTE) / 2
            x = min(max(plot.x(tick), plot.across[0] - 8 + half), right - half)
            if x - half > last:
                sheet.text(x, y, text, align="center")
                last = x + half + 8

    def _events(self, sheet: Sheet, plot: _Plot, top: float) -> None:
        """Each below a stroke from its tick to the next, as much as fits there."""
        for words, ((begin, _), (end, _)) in zip(self.between, pairwise(self.ticks), strict=False):
            left, right = plot.x(begin) + 6, plot.x(end) - 6
            if words:
                sheet.line([(left, top), (right, top)], {"color": AXIS, "lw": 1.0})
            for place, word in enumerate(words, 1):
                sheet.text(left, top + LINE * place - 3, cut(word, right - left, NOTE), colour=INK)


@dataclass(frozen=True, slots=True)
class _Plot:
    """From where to where a panel's plot reaches, px, and which values stand at its edges."""

    across: tuple[float, float]
    down: tuple[float, float]
    values: tuple[float, float, bool]
    """Of both edges across, and whether equal steps multiply."""
    ends: tuple[float, float]

    def x(self, value: float) -> float:
        low, high, multiplies = self.values
        part = math.log(value / low) / math.log(high / low) if multiplies else (value - low) / (high - low)
        return self.across[0] + part * (self.across[1] - self.across[0])

    def y(self, value: float) -> float:
        low, high = self.ends
        return self.down[1] - (value - low) / (high - low) * (self.down[1] - self.down[0])


def _draw(sheet: Sheet, plot: _Plot, line: Line) -> None:
    places = [
        (plot.x(x), plot.y(y)) if math.isfinite(x) and math.isfinite(y) else (math.nan, math.nan)
        for x, y in line.points
    ]
    width = 1.4 if line.published or len(line.points) > DENSE else 2.0
    style = {"color": line.colour, "lw": width, "ls": STROKES[line.stroke % len(STROKES)]}
    sheet.line(places, {**style, "zorder": 2.0 if line.published else 2.5})
    for (x, _), pair in zip(places, line.ranges, strict=False):
        if pair:
            uprights(sheet, [x], [(plot.y(pair[1]), plot.y(pair[0]))], INK, lw=1.5, zorder=3)
    if line.marked:
        mark = {"marker": "o", "ms": 7.5, "mew": 1.5, "mec": PAPER, "mfc": line.colour, "zorder": 4}
        sheet.line(places, {"ls": "none", **mark})


def _name(sheet: Sheet, plot: _Plot, lines: Sequence[Line], right: float) -> None:
    """Each name once, beside the end of the last line that has it."""
    named = {line.label: line for line in lines if line.label}
    ends = [plot.y(line.finite()[-1][1]) for line in named.values()]
    low, high = plot.down[0], plot.down[1]
    for line, end, y in zip(named.values(), ends, apart(ends, STEP, low, high), strict=True):
        x = plot.across[1]
        begin = plot.x(line.finite()[-1][0])
        sheet.line([(begin + 3, end), (x + LEADER - 3, y)], {"color": line.colour, "lw": 0.8, "zorder": 1.0})
        colour = SOFT if line.published else INK
        sheet.text(x + LEADER, y + 4.5, cut(line.label, right - x - LEADER, NOTE), colour=colour)
