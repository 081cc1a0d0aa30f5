"""Figures with their intervals in rows, several to a row, and shares of a whole."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.sheet import FOOT, KEY_LINE, Key, Sheet, bar, interval, key_rows, legend, stroke, ticks
from report.charts.style import (
    COMPUTE,
    INK,
    INPUT_WAIT,
    LABEL,
    LINE,
    MARKER_SIZES,
    NOTE,
    OTHER,
    PAPER,
    RULE,
    SOFT,
    Form,
    Layout,
    Style,
    cut,
    linear_ticks,
    look_of,
    ratio_ticks,
    width_of,
    wrapped,
    written,
)

GAP, EDGE = 16.0, 14.0
TICKS = 22.0
"""Room for the labels of ticks."""
PLOT, LANE = 34.0, 10.0
"""Height of an interval with its runs, and how far these stand below it."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One figure. `value` is drawn large with the interval from `low` to `high`, `runs` small below it."""

    label: str
    note: str
    text: str
    """The figure in words; where there is none, why."""
    value: float | None
    low: float | None = None
    high: float | None = None
    runs: tuple[float, ...] = ()
    left_out: tuple[float, ...] = ()
    """Runs that take no part in the figure: crosses."""
    precision: str = "fp32-ieee"
    card: str = ""
    published: bool = False
    """Hollow: it has no spread of its own."""
    unranked: bool = False
    """Its interval is dashed."""
    other_units: tuple[float, float] | None = None
    """Where other units of the card may lie: a pale band."""

    def extent(self) -> tuple[float, ...]:
        """All finite values that are drawn."""
        given = (self.value, self.low, self.high, *self.runs, *self.left_out, *(self.other_units or ()))
        return tuple(value for value in given if value is not None and math.isfinite(value))


@dataclass(frozen=True, slots=True)
class Intervals:
    """A mark to a row over one axis: from zero, or logarithmic around 1 for ratios."""

    marks: tuple[Mark, ...]
    form: Form = "number"
    ratio: bool = False

    def sheet(self, layout: Layout) -> Sheet:
        """Labels beside the axis, or above it; figures on the right."""
        names = [_name(mark.label, mark.note, layout) for mark in self.marks]
        left = _name_width(names, layout)
        texts = [width_of(mark.text, LABEL, True) for mark in self.marks if mark.extent()]
        # No wider figure is written beside a mark than there is room for, or it lies under the mark.
        widest = layout.width * (0.35 if layout.beside else 0.5)
        room = layout.width - left - min(max(texts, default=0.0), widest) - GAP
        above = [0.0 if layout.beside else LINE * len(name) + 6 for name in names]
        heights = [
            max(PLOT, LINE * len(name) + 8) if layout.beside else PLOT + LINE * len(name) + 10
            for name in names
        ]
        sheet = Sheet(layout.width, sum(heights) + TICKS)
        axes = sheet.axes(left, 0, room, sum(heights))
        axes.set_ylim(sum(heights), 0)
        values = [value for mark in self.marks for value in mark.extent()] or [1.0]
        across = _across(axes, values, self.form, room, ratio=self.ratio)
        top = 0.0
        for mark, name, height, plot in zip(self.marks, names, heights, above, strict=True):
            part = sheet.part(mark.card, mark.precision, height)
            _write_name(sheet, name, top, part)
            y = top + plot + 12
            text = cut(mark.text, widest if mark.extent() else layout.width / 2, LABEL, True)
            sheet.text(layout.width, y + 4, text, size=LABEL, bold=True, colour=INK, align="right", part=part)
            if mark.extent():
                ends = (top, top + height) if layout.beside else (y - 9, y + LANE + 8)
                grid_beside(axes, across, 1.0 if self.ratio else 0.0, ends, part)
                _reach(axes, mark, y, 1.0 if self.ratio else 0.0, part)
                _interval(axes, mark, y, part)
                _runs(axes, mark, y + LANE, part)
            top += height
        return sheet


@dataclass(frozen=True, slots=True)
class GroupedIntervals:
    """Several ratios to a row on one logarithmic axis over `span`, which other charts may share."""

    rows: tuple[tuple[str, tuple[Mark, ...]], ...]
    span: tuple[float, float]

    def sheet(self, layout: Layout) -> Sheet:
        """A lane for each mark of a row; the looks of the precisions below."""
        names = [wrapped(label, max(0.3 * layout.width, 120.0), LABEL, True) for label, _ in self.rows]
        left = max((width_of(line, LABEL, True) for name in names for line in name), default=0.0) + GAP
        room = layout.width - left - GAP
        precisions = dict.fromkeys(mark.precision for _, marks in self.rows for mark in marks)
        keys = key_rows([Key(precision, mark_style(precision)) for precision in precisions], layout.width)
        heights = [
            max(14.0 * len(marks), LINE * len(name)) + 14
            for name, (_, marks) in zip(names, self.rows, strict=True)
        ]
        foot = sum(heights) + TICKS
        sheet = Sheet(layout.width, foot + 4 + KEY_LINE * len(keys))
        axes = sheet.axes(left, 0, room, sum(heights))
        axes.set_ylim(sum(heights), 0)
        across = _across(axes, self.span, "times", room, ratio=True)
        grid_beside(axes, across, 1.0, (0, sum(heights)), None)
        top = 0.0
        for name, (_, marks), height in zip(names, self.rows, heights, strict=True):
            middle = top + height / 2
            for place, line in enumerate(name):
                y = middle + 4 + LINE * (place - (len(name) - 1) / 2)
                sheet.text(0, y, line, size=LABEL, bold=True, colour=INK)
            for lane, mark in enumerate(marks):
                part = sheet.part(mark.card, mark.precision)
                _interval(axes, mark, middle + 14.0 * (lane - (len(marks) - 1) / 2), part)
            top += height
        legend(sheet, foot + 4, keys)
        return sheet


SHARE_COLOURS = {
    "input wait": INPUT_WAIT,
    "compute": COMPUTE,
    "other": OTHER,
    "compute and all else": COMPUTE,
}


@dataclass(frozen=True, slots=True)
class Share:
    """One whole, divided: each part's kind, of SHARE_COLOURS, with its share of 1."""

    label: str
    card: str
    precision: str
    parts: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """A bar to a row, divided; the kinds of its parts are named below."""

    rows: tuple[Share, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Labels beside the bars, or above them."""
        names = [_name(row.label, "", layout) for row in self.rows]
        left = _name_width(names, layout) if layout.beside else 0.0
        room = layout.width - left
        above = [0.0 if layout.beside else LINE * len(name) + 6 for name in names]
        heights = [
            max(28.0, LINE * len(name) + 8) if layout.beside else 34 + LINE * len(name) for name in names
        ]
        bars = sum(heights)
        kinds = [kind for kind in SHARE_COLOURS if any(kind in dict(row.parts) for row in self.rows)]
        keys = key_rows([Key(kind, _square(kind), FOOT) for kind in kinds], layout.width)
        sheet = Sheet(layout.width, bars + 4 + KEY_LINE * len(keys))
        axes = sheet.axes(left, 0, room, bars)
        axes.set(xlim=(0, 1), ylim=(bars, 0))
        top = 0.0
        for row, name, height, plot in zip(self.rows, names, heights, above, strict=True):
            part = sheet.part(row.card, row.precision, height)
            _write_name(sheet, name, top, part)
            y, before = top + plot + 12, 0.0
            for kind, share in row.parts:
                ends = [before, before + max(share - 1 / room, 0.0)]
                stroke(axes, ends, [y, y], bar(SHARE_COLOURS[kind], 18), part)
                label = written(round(share, 2), "percent")
                if share * room > width_of(label, NOTE, True) + 8:
                    x = left + before * room + 5
                    sheet.text(x, y + 4, label, bold=True, colour=PAPER, part=part)
                before += share
            top += height
        legend(sheet, bars + 4, keys)
        return sheet


def mark_style(precision: str, *, hollow: bool = False) -> Style:
    """A precision's mark without a line, as of a Line2D."""
    look = look_of(precision)
    return {
        "ls": "none",
        "marker": look.marker,
        "ms": MARKER_SIZES[look.marker],
        "mec": look.colour,
        "mfc": PAPER if hollow else look.colour,
        "mew": 1.6,
    }


def _square(kind: str) -> Style:
    return {
        "ls": "none",
        "marker": "s",
        "ms": 10,
        "mec": SHARE_COLOURS[kind],
        "mew": 0,
        "mfc": SHARE_COLOURS[kind],
    }


Name = tuple[tuple[str, bool], ...]
"""The lines of a row's name, each with whether it is bold."""


def _name(label: str, note: str, layout: Layout) -> Name:
    room = 0.42 * layout.width if layout.beside else layout.width
    bold = [(line, True) for line in wrapped(label, room, LABEL, True)]
    return (*bold, *((line, False) for line in wrapped(note, room, NOTE)))


def _name_width(names: Sequence[Name], layout: Layout) -> float:
    if not layout.beside:
        return EDGE
    lines = [line for name in names for line in name]
    return max((width_of(text, LABEL if bold else NOTE, bold) for text, bold in lines), default=0.0) + GAP


def _write_name(sheet: Sheet, name: Name, top: float, part: str) -> None:
    for place, (line, bold) in enumerate(name, 1):
        size, colour = (LABEL, INK) if bold else (NOTE, SOFT)
        sheet.text(0, top + LINE * place + 1, line, size=size, bold=bold, colour=colour, part=part)


def _across(
    axes: Axes, values: Sequence[float], form: Form, room: float, *, ratio: bool
) -> tuple[float, ...]:
    """Sets the axis across; returns where its ticks are."""
    if ratio:
        ends, places = ratio_ticks(values, room)
        axes.set_xscale("log")
    else:
        places = linear_ticks(values, zero=True, most=max(2, int(room // 70)))
        ends = (places[0], places[-1])
    axes.set_xlim(*ends)
    ticks(axes, [(place, written(place, form)) for place in places])
    return places


def grid_beside(
    axes: Axes, places: Sequence[float], origin: float, ends: tuple[float, float], part: str | None
) -> None:
    """A pale line at each tick, and a dark one where nothing is, or nothing differs."""
    xs = [x for place in places for x in (place, place, math.nan)]
    stroke(axes, xs, [*ends, math.nan] * len(places), {"color": RULE, "lw": 1, "zorder": 0}, part)
    stroke(axes, [origin, origin], ends, {"color": SOFT, "lw": 1.2, "zorder": 1}, part)


def _held(axes: Axes, value: float) -> float:
    low, high = axes.get_xlim()
    return min(max(value, low), high)


def _reach(axes: Axes, mark: Mark, y: float, origin: float, part: str) -> None:
    """A pale bar from where nothing is, or nothing differs, to the value."""
    if mark.value is not None and not mark.published:
        ends = [origin, _held(axes, mark.value)]
        stroke(axes, ends, [y, y], bar(look_of(mark.precision).colour, 6, alpha=0.22), part)


def _interval(axes: Axes, mark: Mark, y: float, part: str) -> None:
    if mark.other_units is not None:
        stroke(axes, [_held(axes, end) for end in mark.other_units], [y, y], bar(SOFT, 15, alpha=0.2), part)
    if mark.value is None or not math.isfinite(mark.value):
        return
    if mark.low is not None and mark.high is not None:
        ends = [_held(axes, mark.low), _held(axes, mark.high)]
        dash = "--" if mark.unranked else "-"
        stroke(axes, ends, [y, y], interval(look_of(mark.precision).colour, 2, 4, ls=dash), part)
    mean = mark_style(mark.precision, hollow=mark.published)
    stroke(axes, [_held(axes, mark.value)], [y], {**mean, "zorder": 3}, part)


def _runs(axes: Axes, mark: Mark, y: float, part: str) -> None:
    look = look_of(mark.precision)
    for values, marker, size in ((mark.runs, look.marker, 0.6), (mark.left_out, "x", 0.8)):
        places = [_held(axes, value) for value in values if math.isfinite(value)]
        if places:
            style = {"ls": "none", "marker": marker, "ms": MARKER_SIZES[marker] * size, "mec": look.colour}
            stroke(axes, places, [y] * len(places), {**style, "mfc": "none", "mew": 1.1, "alpha": 0.8}, part)
