"""Bars from zero in groups, with ranges, and figures at their ends."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from report.charts.marks import (
    KeyEntry,
    Look,
    draw_bar,
    draw_key,
    draw_range,
    key_height,
    rule,
    uprights,
)
from report.charts.sheet import Sheet, StyledText, fitted, run_width
from report.charts.style import (
    AXIS,
    INK,
    LABEL,
    NOTE,
    RED,
    RULE,
    SOFT,
    Layout,
    cut,
    linear_ticks,
    width_of,
    wrapped,
    written,
)

FAR_APART = 10.0
"""Over so many times the least of a group, the greatest leaves the others no length."""
LONGEST_RANGE = 1.5
"""A range that reaches further than so many times the greatest value is cut there."""

PAD, GAP = 5.0, 9.0
"""Above and below a group; before the figure at a bar's end, px."""
ROW, BAR = 25.0, 15.0
STACKED_ROW, STACKED_BAR = 39.0, 9.0
"""Heights of a row and its bar, where names are beside the bars and above them, px."""
NAME_LINE, NOTE_LINE, AXIS_ROW = 20.0, 17.0, 20.0


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a value and its range; `text` and `small` follow it, or replace it without a value.

    `note` follows the name, `slot` is its colour's.
    """

    label: str
    look: Look
    value: float | None = None
    low: float | None = None
    high: float | None = None
    text: str = ""
    small: str = ""
    note: str = ""
    slot: int = 0

    @property
    def shown(self) -> float | None:
        """The value, where it can be drawn."""
        return self.value if self.value is not None and math.isfinite(self.value) else None


@dataclass(frozen=True, slots=True)
class Group:
    """Bars under one name; each of `notes` is a line below it."""

    label: str
    bars: tuple[Bar, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Bars:
    """Groups of bars on one scale from zero, whose `axis` says what it shows.

    The line at `reference` is firm; `ticks` may be given with their labels. Each group has its own scale,
    without ticks, where a time is over FAR_APART times another.
    """

    groups: tuple[Group, ...]
    axis: str = ""
    key: tuple[KeyEntry, ...] = ()
    reference: float | None = 1.0
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def each_from_zero(self) -> bool:
        """Whether each group has a scale of its own."""
        if self.reference is None:
            return False
        spans = [[bar.shown for bar in group.bars if bar.shown] for group in self.groups]
        return any(max(values) > FAR_APART * min(values) for values in spans if values)

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the bars and figures at their ends, or both above the bars."""
        return _Picture(self, layout).drawn()


@dataclass(frozen=True, slots=True)
class _BarRow:
    """A bar and the top of its row, px."""

    bar: Bar
    top: float


class _Picture:
    """The place of everything of a picture in one layout."""

    def __init__(self, chart: Bars, layout: Layout) -> None:
        self.chart, self.layout, self.beside = chart, layout, layout.beside
        bars = [bar for group in chart.groups for bar in group.bars]
        used = {(bar.look, bar.slot) for bar in bars} | {("published", 0)}
        published = any(bar.look == "published" for bar in bars)
        self.key = [
            entry
            for entry in chart.key
            if (published if entry.look == "published" else (entry.look, entry.slot) in used)
        ]
        self.row, self.bar = (ROW, BAR) if self.beside else (STACKED_ROW, STACKED_BAR)
        named = max((_group_width(group) for group in chart.groups), default=0.0) if self.beside else 0.0
        self.named = min(named + 16.0, 0.16 * layout.width) if named else 0.0
        widest = max((run_width(_name_words(bar)) for bar in bars), default=0.0)
        widest = max(widest + 14.0, width_of(chart.axis, NOTE) + 24.0 - self.named)
        label = min(widest, 0.36 * layout.width) if self.beside else 0.0
        self.left = self.named + label
        self.room = layout.width - self.left - (0.0 if self.beside else 1.0)
        self.top = key_height(self.key, layout.width)
        self.each = chart.each_from_zero
        together = self._px_per_unit(chart.groups)
        self.units = [self._px_per_unit((group,)) if self.each else together for group in chart.groups]

    def drawn(self) -> Sheet:
        """The whole picture."""
        placed, top = [], self.top
        for group in self.chart.groups:
            rows, bottom = self._placed(group, top)
            placed.append((group, top, rows, bottom))
            top = bottom
        labels = () if self.each or not placed else self._ticks(self.units[0])
        ticks = [tick for tick, _ in labels]
        sheet = Sheet(self.layout.width, top + (AXIS_ROW if ticks else 2.0))
        draw_key(sheet, self.key)
        for (group, begin, rows, _), unit in zip(placed, self.units, strict=True):
            rule(sheet, begin, firm=begin == self.top)
            self._group_name(sheet, group, begin)
            self._grid(sheet, rows, ticks, unit)
            for row in rows:
                self._draw(sheet, row, unit)
        if placed:
            rule(sheet, top)
        self._axis(sheet, labels, top)
        return sheet

    # Places

    def _placed(self, group: Group, top: float) -> tuple[list[_BarRow], float]:
        """The rows of a group that begins at `top`, and where it ends."""
        y = top + PAD
        if not self.named and group.label:
            y += NAME_LINE + NOTE_LINE * len(self._notes(group))
        rows = [_BarRow(bar, y + self.row * n) for n, bar in enumerate(group.bars)]
        least = NAME_LINE + NOTE_LINE * len(self._notes(group)) if self.named else 0.0
        return rows, y + max(self.row * len(rows), least) + (PAD if self.beside else 2.0)

    def _notes(self, group: Group) -> list[str]:
        """The lines below a group's name; none where they follow it."""
        if self.named:
            return [line for note in group.notes for line in wrapped(note, self.named - 10, NOTE, lines=4)]
        if run_width(_heading_words(group)) <= self.layout.width:
            return []
        return [line for note in group.notes for line in wrapped(note, self.layout.width, NOTE)]

    def _px_per_unit(self, groups: Sequence[Group]) -> float:
        """As many px as leave every bar room for the text at its end."""
        values = [bar.shown for group in groups for bar in group.bars if bar.shown]
        most = LONGEST_RANGE * max(values, default=1.0)
        units = [self.room / max([*values, *(tick for tick, _ in self.chart.ticks)])] if values else []
        for bar in (bar for group in groups for bar in group.bars if bar.shown):
            units.append((self.room - self._after(bar)) / _reach(bar, most))
        return max(min(units, default=self.room), 0.0)

    def _after(self, bar: Bar) -> float:
        """The room of the text at a bar's end, px."""
        words = _figure_words(bar) if self.beside else []
        return GAP + run_width(words) if words else 2.0

    def _ticks(self, unit: float) -> tuple[tuple[float, str], ...]:
        if self.chart.ticks:
            return self.chart.ticks
        bars = [bar for group in self.chart.groups for bar in group.bars]
        values = [bar.shown for bar in bars if bar.shown is not None]
        if not values or max(values) <= 0:
            return ()
        most = max(_reach(bar, LONGEST_RANGE * max(values)) for bar in bars if bar.shown is not None)
        found = linear_ticks([0.0, most], zero=True, most=6 if self.beside else 4)
        return tuple(
            (tick, written(tick, "number"))
            for tick in found
            if tick <= most * 1.001 and tick * unit <= self.room + 1
        )

    # Drawing

    def _group_name(self, sheet: Sheet, group: Group, top: float) -> None:
        if not group.label:
            return
        y, notes = top + PAD + 14, self._notes(group)
        if self.named:
            sheet.text(
                0, y, cut(group.label, self.named - 10, LABEL, True), size=LABEL, bold=True, colour=INK
            )
        else:
            sheet.run(0, y, fitted(_heading_words(group)[: 1 if notes else None], sheet.width))
        for place, note in enumerate(notes, 1):
            sheet.text(0, y + NOTE_LINE * place, note)

    def _grid(self, sheet: Sheet, rows: Sequence[_BarRow], ticks: Sequence[float], unit: float) -> None:
        if self.beside:
            spans = [(rows[0].top, rows[-1].top + self.row)] if rows else []
        else:
            spans = [(row.top + NAME_LINE, row.top + NAME_LINE + 16) for row in rows]
        firm = self.chart.reference
        uprights(sheet, [self.left + t * unit for t in ticks if t != firm], spans, RULE)
        if firm is not None and not self.each and 0 < firm * unit <= self.room:
            uprights(sheet, [self.left + firm * unit], spans, AXIS)
        if not ticks:
            uprights(sheet, [self.left], spans, RULE)

    def _draw(self, sheet: Sheet, row: _BarRow, unit: float) -> None:
        bar, figure = row.bar, _figure_words(row.bar)
        middle = row.top + (self.row / 2 if self.beside else NAME_LINE + 8)
        line = row.top + (self.row / 2 + 5 if self.beside else 15)
        name = _name_words(bar)
        if self.beside:
            room = self.left - self.named - 8
        else:
            room = sheet.width - run_width(figure) - 12
            sheet.run(sheet.width, line, figure, "right")
        sheet.run(self.named, line, fitted(name, room))
        if bar.shown is None:
            if self.beside:
                sheet.run(self.left, line, fitted(figure, self.room))
        else:
            self._length(sheet, bar, middle, line, unit)

    def _length(self, sheet: Sheet, bar: Bar, middle: float, line: float, unit: float) -> None:
        value = bar.shown or 0.0
        length = max(value * unit, 1.0)
        draw_bar(sheet, bar.look, bar.slot, (self.left, middle - self.bar / 2, length, self.bar))
        if bar.low is not None and bar.high is not None:
            most = self.room - self._after(bar)
            low, high = max(bar.low, 0.0) * unit, min(bar.high * unit, most)
            whole = bar.high * unit <= most + 1
            draw_range(sheet, self.left + low, self.left + high, middle, self.bar * 0.28, closed=whole)
            length = max(length, high)
        if self.beside:
            sheet.run(self.left + length + GAP, line, _figure_words(bar))

    def _axis(self, sheet: Sheet, ticks: Sequence[tuple[float, str]], top: float) -> None:
        for tick, text in ticks:
            x, half = self.left + tick * self.units[0], width_of(text, NOTE) / 2
            sheet.text(min(max(x, half), sheet.width - half), top + 15, text, align="center")
        if ticks and self.beside:
            sheet.text(0, top + 15, cut(self.chart.axis, self.left - 20, NOTE))


def _reach(bar: Bar, most: float) -> float:
    """How far a bar and its range reach, at most so far."""
    value = bar.shown or 0.0
    return max(value, min(bar.high, most)) if bar.high is not None else value


def _is_firm(bar: Bar) -> bool:
    """Whether it was measured: its words are bold."""
    return bar.look != "published"


def _name_words(bar: Bar) -> list[StyledText]:
    """Its name and note."""
    colour = INK if _is_firm(bar) else SOFT
    return [
        StyledText(bar.label, LABEL, _is_firm(bar), colour),
        *([StyledText(bar.note)] if bar.note else []),
    ]


def _figure_words(bar: Bar) -> list[StyledText]:
    """The text at a bar's end, or in its place."""
    if bar.look == "failed":
        return [
            StyledText("✕", LABEL, False, RED),
            StyledText(bar.text, LABEL, True, INK),
            StyledText(bar.small),
        ]
    words = [StyledText(bar.text, LABEL, _is_firm(bar), INK)] if bar.text else []
    return [*words, *([StyledText(bar.small)] if bar.small else [])]


def _heading_words(group: Group) -> list[StyledText]:
    """Its name and notes on one line."""
    return [StyledText(group.label, LABEL, True, INK), *map(StyledText, group.notes)]


def _group_width(group: Group) -> float:
    """The width of its name and notes below each other, px."""
    return max([width_of(group.label, LABEL, True), *(width_of(note, NOTE) for note in group.notes)])
