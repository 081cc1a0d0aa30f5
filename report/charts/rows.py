"""Figures in rows, each over the best of its row; behind a row's line stands what is no part of it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.intervals import EDGE, GAP, TICKS, Mark, grid_beside, mark_style
from report.charts.sheet import Sheet, bar, interval, stroke, ticks
from report.charts.style import (
    INK,
    LABEL,
    LINE,
    NARROW,
    NOTE,
    SOFT,
    Layout,
    cut,
    look_of,
    ratio_ticks,
    width_of,
    wrapped,
    written,
)

HEAD, APART, BAR = 26.0, 20.0, 17.0
"""Heights of a row's name, of the line behind it, and of a figure whose name takes one line, px."""
BELOW = 9.0
"""What a figure takes more where its bar is below its name, px."""
BETWEEN = 6.0
"""Between a figure's name and its note, px."""


@dataclass(frozen=True, slots=True)
class MarkRow:
    """Figures that may stand in one row, and those behind its line."""

    label: str
    marks: tuple[Mark, ...]
    behind: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True)
class _Part:
    """A row's name, the line behind it, or a figure, in its place from the top."""

    top: float
    height: float
    shown: MarkRow | Mark | None
    apart: bool = False
    """Whether it stands behind the line: no bar leads to it from the row's best."""


@dataclass(frozen=True, slots=True)
class MarkRows:
    """Rows of ratios below each other, on one logarithmic axis around 1 whose ticks stand above them."""

    rows: tuple[MarkRow, ...]
    apart: str
    """What is said of the figures behind a line."""
    narrow: bool = False
    """Whether it has the narrow layout everywhere: half the size of a page that has many of them."""

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the axis, or above each figure; values on the right."""
        layout = NARROW if self.narrow else layout
        marks = [mark for row in self.rows for mark in (*row.marks, *row.behind)]
        values = min(
            max((width_of(mark.text, NOTE, True) for mark in marks), default=0.0), 0.34 * layout.width
        )
        if layout.beside:
            left = min(max(map(_name_width, marks), default=0.0) + GAP, 0.46 * layout.width)
            names, room = left - GAP, layout.width - left - values - GAP
        else:
            left, room = EDGE, layout.width - 2 * EDGE
            names = layout.width - values - GAP
        parts = list(self._parts(names, layout))
        height = sum(part.height for part in parts)
        sheet = Sheet(layout.width, TICKS + height)
        axes = sheet.axes(left, TICKS, room, height)
        axes.set_ylim(height, 0)
        across = _scale(sheet, axes, marks, room)
        for part in parts:
            if isinstance(part.shown, Mark):
                name = sheet.part(part.shown.card, part.shown.precision, part.height)
                grid_beside(axes, across, 1.0, _beside_bar(part, layout), name)
                _draw_mark(sheet, axes, part, part.shown, names, layout, name)
            else:
                self._draw_words(sheet, axes, part)
        return sheet

    def _parts(self, names: float, layout: Layout) -> Iterator[_Part]:
        top = 0.0
        for row in self.rows:
            apart = (None,) if row.behind else ()
            shown = (row, *row.marks, *apart, *row.behind)
            for place, each in enumerate(shown):
                height = _height(each, names, layout)
                yield _Part(top, height, each, place > len(row.marks) + 1)
                top += height

    def _draw_words(self, sheet: Sheet, axes: Axes, part: _Part) -> None:
        name = sheet.label(part.height)
        y = TICKS + part.top
        # Draws nothing: parts come in the order in which the axes have something of them.
        stroke(axes, [1.0, 1.0], [part.top, part.top], {"lw": 0, "zorder": 0}, name)
        if isinstance(part.shown, MarkRow):
            label = cut(part.shown.label, sheet.width, LABEL, True)
            sheet.text(0, y + 19, label, size=LABEL, bold=True, colour=INK, part=name)
            return
        dashes = {"color": SOFT, "lw": 1, "ls": (0, (4, 3))}
        sheet.line([(0, y + 4), (sheet.width, y + 4)], dashes, name)
        sheet.text(0, y + 16, cut(self.apart, sheet.width, NOTE), part=name)


def _name_width(mark: Mark) -> float:
    return width_of(mark.label, NOTE, not mark.published) + BETWEEN + width_of(mark.note, NOTE)


def _below(mark: Mark, names: float) -> tuple[str, ...]:
    """The lines of a note that has no room beside its name."""
    return () if _name_width(mark) <= names else wrapped(mark.note, names, NOTE)


def _height(shown: MarkRow | Mark | None, names: float, layout: Layout) -> float:
    if not isinstance(shown, Mark):
        return HEAD if shown else APART
    return BAR + LINE * len(_below(shown, names)) + (0.0 if layout.beside else BELOW)


def _scale(sheet: Sheet, axes: Axes, marks: Sequence[Mark], room: float) -> tuple[float, ...]:
    """Sets the axis and returns its ticks, which stand above, where rows that are hidden move nothing."""
    values = [value for mark in marks for value in mark.extent()] or [1.0]
    shown = [value for mark in marks if (value := mark.value) and math.isfinite(value)]
    ends, places = ratio_ticks(values, room, shown)
    axes.set_xscale("log")
    axes.set_xlim(*ends)
    ticks(axes)
    for place in places:
        across, _ = sheet.place(axes, place, 0.0)
        sheet.text(across, TICKS - 8, written(place, "times"), align="center")
    return places


def _beside_bar(part: _Part, layout: Layout) -> tuple[float, float]:
    """From where to where a figure's grid reaches: on a phone not through its name."""
    bottom = part.top + part.height
    return (part.top if layout.beside else bottom - BELOW - 2, bottom)


def _draw_mark(
    sheet: Sheet, axes: Axes, part: _Part, mark: Mark, names: float, layout: Layout, name: str
) -> None:
    bold = not mark.published
    line = TICKS + part.top + 12
    y = part.top + (BAR / 2 if layout.beside else part.height - BELOW / 2 - 1)
    sheet.text(0, line, cut(mark.label, names, NOTE, bold), bold=bold, colour=INK, part=name)
    below = _below(mark, names)
    if not below:
        sheet.text(width_of(mark.label, NOTE, bold) + BETWEEN, line, mark.note, part=name)
    for place, words in enumerate(below, 1):
        sheet.text(0, line + LINE * place, words, part=name)
    value = cut(mark.text, 0.34 * layout.width, NOTE, bold)
    sheet.text(layout.width, line, value, bold=bold, colour=INK, align="right", part=name)
    _draw_value(axes, mark, y, name, bar_to=not part.apart)


def _draw_value(axes: Axes, mark: Mark, y: float, name: str, *, bar_to: bool) -> None:
    if mark.value is None or not math.isfinite(mark.value):
        return
    low, high = axes.get_xlim()
    value, *ends = (min(max(x, low), high) for x in (mark.value, mark.low, mark.high) if x is not None)
    colour = look_of(mark.precision).colour
    if bar_to:
        stroke(axes, [1.0, value], [y, y], bar(colour, 7, alpha=0.12 if mark.published else 0.4), name)
    if len(ends) == 2:
        dash = "--" if mark.unranked else "-"
        stroke(axes, ends, [y, y], interval(colour, 1.6, 3, ls=dash), name)
    shape = mark_style(mark.precision, hollow=mark.published)
    stroke(axes, [value], [y], {**shape, "ms": 0.85 * shape["ms"], "zorder": 3}, name)
