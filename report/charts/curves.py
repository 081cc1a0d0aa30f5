"""Curves in panels: up to two in a row on a wide page, one below another on a phone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from report.charts.drawing import Scale, Sheet, StyledText
from report.charts.style import (
    HATCH,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RULE,
    SOFT,
    Form,
    Layout,
    linear_ticks,
    move_apart,
    system_colour,
    tick_text,
    width_of,
    wrap_text,
)

HEIGHT, FOOT, STEP, TOP = 150.0, 22.0, 15.0, 6.0
"""Least height of a panel; below its axis, from one name to the next, and above the highest value, px."""
LEADER, NAMES = 12.0, 0.45
"""From the end of a line to its name, px; the share of a panel that names may take."""
STROKES: tuple[object, ...] = ("-", (0, (5, 4)), (0, (1.5, 2.5)), (0, (8, 3, 2, 3)))
DENSE = 120
"""Points of a line that is drawn thin."""

CurvePoints = tuple[tuple[float, float], ...]
ACROSS = 2
"""Panels in a row on a wide page, at most."""
BETWEEN, BELOW = 28.0, 22.0
"""From one panel to the next at its side and below it, px."""
HEAD_LINE = 17.0


@dataclass(frozen=True, slots=True)
class CurveLine:
    """One line in a system's colour and one of four strokes; lines of one label are named once.

    `ranges` has an entry for each point, null where there is none. A `published` line is grey and thin; one
    that is `marked` has a dot at every point, for between them nothing was measured.
    """

    label: str
    points: CurvePoints
    slot: int = 0
    stroke: int = 0
    published: bool = False
    marked: bool = False
    ranges: tuple[tuple[float, float] | None, ...] = ()

    @property
    def colour(self) -> str:
        """Its system's, or grey."""
        return HATCH if self.published else system_colour(self.slot)

    def finite_points(self) -> CurvePoints:
        """The points that can be drawn."""
        return tuple(point for point in self.points if all(map(math.isfinite, point)))


@dataclass(frozen=True, slots=True)
class CurvePanel:
    """A panel of lines; where `ticks` across are given with their labels, equal steps multiply."""

    title: str
    note: str
    lines: tuple[CurveLine, ...]
    form: Form = "number"
    zero: bool = True
    ticks: tuple[tuple[float, str], ...] = ()

    def height(self, width: float) -> float:
        """Higher where many lines have to be named."""
        names = self._names(width).values()
        return max(HEIGHT, STEP * len(names) * max(map(len, names), default=0) + FOOT + 2 * TOP)

    def _names(self, width: float) -> dict[str, tuple[str, ...]]:
        """Each label on as many lines as it needs at the right."""
        return {line.label: wrap_text(line.label, NAMES * width - LEADER - 4, NOTE) for line in self.lines}

    def draw(self, sheet: Sheet, left: float, top: float, width: float, height: float) -> None:
        """Write the names at the right in the order of the lines' ends, with a leader to each."""
        lines = [line for line in self.lines if line.finite_points()]
        values = [y for line in lines for _, y in line.finite_points()]
        values += [end for line in lines for pair in line.ranges if pair for end in pair]
        if not lines:
            return
        up = linear_ticks(values, zero=self.zero, most=4)
        names = self._names(width)
        widest = max(width_of(words, NOTE) for name in names.values() for words in name or ("",))
        room = widest + LEADER + 4 if widest else 8.0
        start = left + max(width_of(tick_text(tick, self.form), NOTE) for tick in up) + 8
        plot = _Plot(
            Scale(start, left + width - room, *self._ends_across(lines), multiplies=bool(self.ticks)),
            Scale(top + height - FOOT, top + TOP, up[0], up[-1]),
        )
        for tick in up:
            y = plot.up.place(tick)
            sheet.text(start - 8, y + 4.5, tick_text(tick, self.form), align="right")
            sheet.line([(start, y), (plot.across.end, y)], {"color": RULE, "lw": 1.0, "zorder": 0.5})
        self._draw_ticks(sheet, plot, lines, top + height - 5, left + width)
        for line in sorted(lines, key=lambda line: not line.published):
            _draw_line(sheet, plot, line)
        if widest:
            _name_lines(sheet, plot, lines, names)

    def _ends_across(self, lines: Sequence[CurveLine]) -> tuple[float, float]:
        xs = [x for line in lines for x, _ in line.finite_points()] + [x for x, _ in self.ticks]
        low, high = min(xs), max(xs)
        if self.ticks:
            return low / 1.12, high * 1.12
        return low, high if high > low else low + 1.0

    def _draw_ticks(
        self, sheet: Sheet, plot: _Plot, lines: Sequence[CurveLine], y: float, right: float
    ) -> None:
        """The ticks across whose labels do not touch: the first, and after it as many as have room."""
        xs = [x for line in lines for x, _ in line.finite_points()]
        low, high = plot.across.low, plot.across.high
        found = linear_ticks(xs, zero=False, most=5)
        ticks = self.ticks or [(tick, tick_text(tick, "number")) for tick in found if low <= tick <= high]
        last = -math.inf
        for tick, text in ticks:
            half = width_of(text, NOTE) / 2
            x = min(max(plot.across.place(tick), plot.across.begin - 8 + half), right - half)
            if x - half > last:
                sheet.text(x, y, text, align="center")
                last = x + half + 8


class _Plot(NamedTuple):
    """The scales of a panel: from its left to its right, and from its foot to its top."""

    across: Scale
    up: Scale


def _draw_line(sheet: Sheet, plot: _Plot, line: CurveLine) -> None:
    places = [
        (plot.across.place(x), plot.up.place(y))
        if math.isfinite(x) and math.isfinite(y)
        else (math.nan, math.nan)
        for x, y in line.points
    ]
    width = 1.4 if line.published or len(line.points) > DENSE else 2.0
    style = {"color": line.colour, "lw": width, "ls": STROKES[line.stroke % len(STROKES)]}
    sheet.line(places, {**style, "zorder": 2.0 if line.published else 2.5})
    for (x, _), pair in zip(places, line.ranges, strict=False):
        if pair:
            sheet.uprights([x], [(plot.up.place(pair[1]), plot.up.place(pair[0]))], INK, lw=1.5, zorder=3)
    if line.marked:
        dots = {"ls": "none", "marker": "o", "ms": 7.5, "mew": 1.5, "mec": PAPER, "mfc": line.colour}
        sheet.line(places, {**dots, "zorder": 4})


def _name_lines(
    sheet: Sheet, plot: _Plot, lines: Sequence[CurveLine], names: Mapping[str, tuple[str, ...]]
) -> None:
    """Each name once, beside the end of the last line that has it."""
    named = {line.label: line for line in lines if line.label}
    ends = [plot.up.place(line.finite_points()[-1][1]) for line in named.values()]
    step = STEP * max(len(names[label]) for label in named)
    low, high = plot.up.end, plot.up.begin + STEP - step
    for line, end, y in zip(named.values(), ends, move_apart(ends, step, low, high), strict=True):
        x = plot.across.end
        begin = plot.across.place(line.finite_points()[-1][0])
        leader = {"color": line.colour, "lw": 0.8, "ls": (0, (1, 3)), "zorder": 1.0}
        sheet.line([(begin + 3, end), (x + LEADER - 3, y)], leader)
        colour = SOFT if line.published else INK
        for n, words in enumerate(names[line.label]):
            sheet.text(x + LEADER, y + 4.5 + STEP * n, words, colour=colour)


@dataclass(frozen=True, slots=True)
class Curves:
    """Panels in rows of equal length, as many beside each other as the layout has room for."""

    panels: tuple[CurvePanel, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Each row is as high as its highest panel."""
        lines = math.ceil(len(self.panels) / (ACROSS if layout.beside else 1)) or 1
        count = max(math.ceil(len(self.panels) / lines), 1)
        width = (layout.width - BETWEEN * (count - 1)) / count
        rows = [self.panels[at : at + count] for at in range(0, len(self.panels), count)]
        heads = [max(HEAD_LINE * len(_head_words(panel, width)) + 6 for panel in row) for row in rows]
        heights = [max(panel.height(width) for panel in row) for row in rows]
        total = sum(heads) + sum(heights) + BELOW * max(len(rows) - 1, 0)
        sheet, top = Sheet(layout.width, total), 0.0
        for row, head, height in zip(rows, heads, heights, strict=True):
            for place, panel in enumerate(row):
                left = (width + BETWEEN) * place
                for n, words in enumerate(_head_words(panel, width)):
                    sheet.run(left, top + HEAD_LINE * n + 13, [words])
                panel.draw(sheet, left, top + head, width, height)
            top += head + height + BELOW
        return sheet


def _head_words(panel: CurvePanel, width: float) -> list[StyledText]:
    title = wrap_text(panel.title, width, LABEL, True)
    return [
        *(StyledText(line, LABEL, True, INK) for line in title),
        *(StyledText(line) for line in wrap_text(panel.note, width, NOTE)),
    ]
