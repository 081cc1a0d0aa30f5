"""Rows on one scale: bars from zero or dots with their ranges, names at the left and figures at the right."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from report.charts.drawing import KEY_LINE, SPACE, Box, Scale, Sheet, StyledText, fit_words, run_width
from report.charts.style import (
    AXIS,
    HATCH,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RED,
    RULE,
    SOFT,
    Layout,
    cut_text,
    linear_ticks,
    system_colour,
    tick_text,
    times_ticks,
    width_of,
    wrap_text,
)

FAR_APART = 10.0
"""Over so many times the least of a group, the greatest leaves the others no length."""
WIDE_SCALE = 3.0
"""A scale on which equal steps multiply has other ticks where it is so many times as wide."""
LONGEST_RANGE = 1.5
"""What reaches further than so many times the greatest value is cut there."""
BAR, BAND, DOT, LARGE, APART = (15.0, 9.0), 21.0, 8.0, 13.0, 10.0
"""Heights of a bar, where names are beside it and above it, and of a band; diameters of dots, and from one
level of dots to the next, px."""
PAD, ROW, NAME_LINE, NOTE_LINE, AXIS_ROW, GAP = 5.0, (25.0, 19.0), 20.0, 17.0, 20.0, 14.0


Look = Literal["measured", "projected", "published", "failed", "band"]
"""What was measured, what is projected or expected, what was published, what failed at once or so far, and
where others lie. Each is read in grey by its fill, its hatch or its outline."""

SWATCH = (22.0, 12.0)
"""Width and height of a sample in a key, px."""
KEY_GAP = 16.0
"""Between two entries of a key, px."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What a look means; it is drawn where something has the look and the colour's slot."""

    text: str
    look: Look
    slot: int = 0

    @property
    def width(self) -> float:
        """With its sample, px."""
        return SWATCH[0] + SPACE + width_of(self.text, NOTE)


@dataclass(frozen=True, slots=True)
class Mark:
    """A value with its range, in a system's colour; `label` is written above it, `small` is one of many."""

    value: float
    low: float | None = None
    high: float | None = None
    look: Look = "measured"
    slot: int = 0
    small: bool = False
    label: str = ""


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """Marks under one name, and the `band` where others lie; `text` is its figure, or why it has none."""

    label: str
    marks: tuple[Mark, ...] = ()
    note: str = ""
    text: str = ""
    small: str = ""
    band: tuple[float, float] | None = None

    @property
    def firm(self) -> bool:
        """Whether it was measured or tried here: its words are bold."""
        return bool(self.marks) and any(mark.look != "published" for mark in self.marks)


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Rows under one name; each of `notes` is a line below it."""

    label: str
    rows: tuple[ScaleRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScaleRows:
    """Groups of rows on one scale, of bars from zero or of `dots`; `axis` says what it shows.

    The line at `reference` is firm. Of dots equal steps multiply. `ticks` may be given with their labels.
    Each group of bars has a scale of its own, without ticks, where one bar is over FAR_APART times another,
    and where they share neither `axis` nor `reference`.
    """

    groups: tuple[RowGroup, ...]
    axis: str = ""
    key: tuple[KeyEntry, ...] = ()
    dots: bool = False
    reference: float | None = 1.0
    ticks: tuple[tuple[float, str], ...] = ()

    @property
    def each_from_zero(self) -> bool:
        """Whether each group has a scale of its own."""
        if self.dots or self.ticks or len(self.groups) < 2:
            return False
        if self.reference is None:
            return not self.axis
        values = [[mark.value for mark in _all_marks((group,)) if mark.value > 0] for group in self.groups]
        return any(max(of) > FAR_APART * min(of) for of in values if of)

    @property
    def ranged(self) -> bool:
        """Whether a mark has a range."""
        return any(mark.low is not None for mark in _all_marks(self.groups))

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the marks, or above them where the layout is narrow."""
        return _Picture(self, layout).draw_sheet()


@dataclass(frozen=True, slots=True)
class _PlacedRow:
    """A row with the ends of its plot, px, each mark's level, and the line of each label above them."""

    row: ScaleRow
    top: float
    plot: float
    bottom: float
    levels: tuple[int, ...]
    labels: tuple[tuple[Mark, float, int], ...]

    def y(self, level: int) -> float:
        """All levels together are in the middle of the plot."""
        return (self.plot + self.bottom) / 2 + APART * (max(self.levels, default=0) / 2 - level)


class _Picture:
    """The place of everything of a picture in one layout."""

    def __init__(self, chart: ScaleRows, layout: Layout) -> None:
        self.chart, self.width, self.beside = chart, layout.width, layout.beside
        rows = [row for group in chart.groups for row in group.rows]
        used = {(mark.look, mark.slot) for mark in _all_marks(chart.groups)}
        used |= {("band", 0) for row in rows if row.band}
        self.key = [entry for entry in chart.key if (entry.look, entry.slot) in used]
        named = max((_group_width(group) for group in chart.groups), default=0.0) if self.beside else 0.0
        self.named = min(named + 16.0, 0.16 * self.width) if named else 0.0
        names = max((run_width(_name_words(row)) for row in rows), default=0.0) + 14.0
        names = max(names, width_of(chart.axis, NOTE) + 24.0 - self.named)
        self.left = self.named + (min(names, 0.36 * self.width) if self.beside else 0.0)
        figures = max((run_width(_figure_words(row)) for row in rows if row.marks), default=0.0)
        self.right = self.width - (figures + GAP if self.beside and figures else 1.0)
        self.top = KEY_LINE * len(_key_rows(self.key, self.width)) + (4.0 if self.key else 0.0)
        self.ticks = self._ticks()
        together = self._scale(chart.groups)
        self.scales = [self._scale((group,)) if chart.each_from_zero else together for group in chart.groups]

    def draw_sheet(self) -> Sheet:
        """The whole picture."""
        placed, top = [], self.top
        for group, scale in zip(self.chart.groups, self.scales, strict=True):
            begin, rows = top, []
            top += PAD + (0.0 if self.named or not group.label else self._heading(group))
            for row in group.rows:
                rows.append(self._place_row(row, top, scale))
                top = rows[-1].bottom
            top = max(top, begin + PAD + (self._heading(group) if self.named else 0.0)) + PAD
            placed.append((group, begin, rows, scale))
        sheet = Sheet(self.width, top + (AXIS_ROW if self.ticks else 2.0))
        _draw_key(sheet, self.key)
        for group, begin, rows, scale in placed:
            sheet.rule(begin, AXIS if begin == self.top else RULE)
            self._name_group(sheet, group, begin + PAD + 14)
            self._draw_grid(sheet, [(row.plot, row.bottom) for row in rows], scale)
            for placed_row in rows:
                self._draw_row(sheet, placed_row, scale)
        if placed:
            sheet.rule(top, RULE)
            self._draw_axis(sheet, top + 15)
        return sheet

    # Places

    def _scale(self, groups: Sequence[RowGroup]) -> Scale:
        """From zero or from the first tick to the greatest value, or what else is to be seen beside it."""
        values = [mark.value for mark in _all_marks(groups) if math.isfinite(mark.value)] or [1.0]
        ends = _range_ends(groups, LONGEST_RANGE * max(values))
        at = [tick for tick, _ in self.ticks]
        room = LARGE / 2 if self.chart.dots else 0.0
        edges = self.left + room, self.right - room
        if not self.chart.dots:
            return Scale(*edges, 0.0, max([*values, *ends, *(t for t, _ in self.chart.ticks)]) or 1.0)
        both = [*values, *ends, *at]
        low, high = min(both), max(both)
        return Scale(*edges, low, high if high > low else 2 * low, multiplies=True)

    def _ticks(self) -> tuple[tuple[float, str], ...]:
        chart = self.chart
        values = [mark.value for mark in _all_marks(chart.groups) if math.isfinite(mark.value)]
        if chart.ticks or chart.each_from_zero or not values or max(values) <= 0:
            return chart.ticks
        values += _range_ends(chart.groups, LONGEST_RANGE * max(values))
        values += [chart.reference] if chart.dots and chart.reference else []
        most = 6 if self.beside else 4
        wide = chart.dots and max(values) > WIDE_SCALE * min(values)
        found = times_ticks(values) if wide else linear_ticks(values, zero=not chart.dots, most=most)
        kept = [tick for tick in found if chart.dots or tick <= 1.001 * max(values)]
        return tuple((tick, tick_text(tick, "number")) for tick in kept)

    def _heading(self, group: RowGroup) -> float:
        return NAME_LINE + NOTE_LINE * len(self._notes(group)) if group.label else 0.0

    def _notes(self, group: RowGroup) -> list[str]:
        """The lines below a group's name; none where they follow it."""
        room = self.named - 10 if self.named else self.width
        if not self.named and run_width(_heading_words(group)) <= room:
            return []
        most = 4 if self.named else 2
        return [line for note in group.notes for line in wrap_text(note, room, NOTE, lines=most)]

    def _place_row(self, row: ScaleRow, top: float, scale: Scale) -> _PlacedRow:
        levels = _mark_levels([self._extent(mark, scale) for mark in row.marks])
        labels = _place_labels(row.marks, scale, self.width)
        above = NOTE_LINE * (1 + max((line for *_, line in labels), default=-1))
        plot = top + (0.0 if self.beside else NAME_LINE) + above
        least = ROW[0 if self.beside else 1]
        return _PlacedRow(
            row, top, plot, plot + max(least, APART * max(levels, default=0) + 2 * LARGE), levels, labels
        )

    def _extent(self, mark: Mark, scale: Scale) -> tuple[float, float]:
        half = (DOT if mark.small else LARGE) / 2 + 1
        x = scale.place(mark.value)
        low, high = (scale.place(end) if end is not None else x for end in (mark.low, mark.high))
        return min(low, x - half), max(high, x + half)

    # Drawing

    def _name_group(self, sheet: Sheet, group: RowGroup, y: float) -> None:
        if not group.label:
            return
        notes = self._notes(group)
        words = [_heading_words(group)[0]] if self.named or notes else _heading_words(group)
        sheet.run(0, y, fit_words(words, self.named - 10 if self.named else self.width))
        for place, note in enumerate(notes, 1):
            sheet.text(0, y + NOTE_LINE * place, note)

    def _draw_grid(self, sheet: Sheet, spans: Sequence[tuple[float, float]], scale: Scale) -> None:
        firm = self.chart.reference
        ticks = [tick for tick, _ in self.ticks]
        sheet.uprights([scale.place(tick) for tick in ticks if tick != firm], spans, RULE)
        if firm is not None and scale.low < firm <= scale.high and not self.chart.each_from_zero:
            sheet.uprights([scale.place(firm)], spans, AXIS)
        if not ticks:
            sheet.uprights([scale.begin], spans, RULE)

    def _draw_row(self, sheet: Sheet, placed: _PlacedRow, scale: Scale) -> None:
        row, figure, middle = placed.row, _figure_words(placed.row), placed.y(0)
        line = (placed.plot + placed.bottom) / 2 + 5 if self.beside else placed.top + 15
        taken = run_width(figure) + 12 if row.marks else 0.0
        room = self.left - self.named - 8 if self.beside else self.width - taken
        sheet.run(self.named, line, fit_words(_name_words(row), room))
        if row.marks:
            sheet.run(self.width, line, figure, "right")
        else:
            in_place_of_bar = line if self.beside else middle + 5
            sheet.run(self.left, in_place_of_bar, fit_words(figure, self.width - self.left))
        if row.band:
            begin, end = map(scale.place, row.band)
            _draw_box(sheet, "band", 0, (begin, middle - BAND / 2, max(end - begin, 1.0), BAND))
        for mark, level in zip(row.marks, placed.levels, strict=True):
            self._draw_mark(sheet, mark, placed.y(level), scale)
        for mark, x, above in placed.labels:
            y, colour = placed.plot - NOTE_LINE * above - 3, SOFT if mark.small else INK
            sheet.text(x, y, mark.label, bold=not mark.small, colour=colour)

    def _draw_mark(self, sheet: Sheet, mark: Mark, y: float, scale: Scale) -> None:
        x, height = scale.place(mark.value), BAR[0 if self.beside else 1]
        if not self.chart.dots:
            _draw_box(
                sheet, mark.look, mark.slot, (scale.begin, y - height / 2, max(x - scale.begin, 1.0), height)
            )
        if mark.low is not None and mark.high is not None:
            closed = mark.high <= scale.high * 1.001
            _draw_range(sheet, scale.place(mark.low), scale.place(mark.high), y, 4.0, closed=closed)
        if self.chart.dots:
            colour = system_colour(mark.slot)
            hollow = mark.look == "projected"
            ring = {"mfc": PAPER, "mec": colour} if hollow else {"mfc": colour, "mec": PAPER}
            size, order = (DOT, 3.5) if mark.small else (LARGE, 4)
            sheet.line(
                [(x, y)], {"ls": "none", "marker": "o", "ms": size, "mew": 1.5, "zorder": order, **ring}
            )

    def _draw_axis(self, sheet: Sheet, y: float) -> None:
        for tick, said in self.ticks:
            half = width_of(said, NOTE) / 2
            x = min(max(self.scales[0].place(tick), half), self.width - half)
            sheet.text(x, y, said, align="center")
        if self.ticks and self.beside:
            sheet.text(0, y, cut_text(self.chart.axis, self.left - 20, NOTE))


def _all_marks(groups: Sequence[RowGroup]) -> list[Mark]:
    return [mark for group in groups for row in group.rows for mark in row.marks]


def _range_ends(groups: Sequence[RowGroup], most: float) -> list[float]:
    """The ends of ranges and bands, at most so far."""
    bands = [end for group in groups for row in group.rows for end in row.band or ()]
    ends = [end for mark in _all_marks(groups) for end in (mark.low, mark.high) if end is not None]
    return [min(end, most) for end in (*bands, *ends)]


def _mark_levels(extents: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """The lowest level for each on which it touches none before it, from the left."""
    taken: list[float] = []
    levels = [0] * len(extents)
    for place in sorted(range(len(extents)), key=lambda place: extents[place]):
        left, right = extents[place]
        level = next((level for level, end in enumerate(taken) if end < left), len(taken))
        taken[level : level + 1] = [right]
        levels[place] = level
    return tuple(levels)


def _place_labels(marks: Sequence[Mark], scale: Scale, width: float) -> tuple[tuple[Mark, float, int], ...]:
    """Where each label begins, and in which line from below."""
    placed: list[tuple[Mark, float, int]] = []
    taken: list[tuple[float, float, int]] = []
    for mark in (mark for mark in marks if mark.label):
        wide, line = width_of(mark.label, NOTE, not mark.small), 0
        x = min(max(scale.place(mark.value) - wide / 2, scale.begin), width - wide)
        while any(line == other and x < high + 10 and low - 10 < x + wide for low, high, other in taken):
            line += 1
        placed.append((mark, x, line))
        taken.append((x, x + wide, line))
    return tuple(placed)


def _name_words(row: ScaleRow) -> list[StyledText]:
    words = [StyledText(row.label, LABEL, row.firm, INK if row.firm else SOFT)]
    return [*words, *([StyledText(row.note)] if row.note else [])]


def _figure_words(row: ScaleRow) -> list[StyledText]:
    failed = any(mark.look == "failed" for mark in row.marks)
    words = [StyledText("✕", LABEL, False, RED)] if failed else []
    words += [StyledText(row.text, LABEL, row.firm, INK if row.marks else SOFT)] if row.text else []
    return [*words, *([StyledText(row.small)] if row.small else [])]


def _heading_words(group: RowGroup) -> list[StyledText]:
    return [StyledText(group.label, LABEL, True, INK), *map(StyledText, group.notes)]


def _group_width(group: RowGroup) -> float:
    return max([width_of(group.label, LABEL, True), *(width_of(note, NOTE) for note in group.notes)])


def _draw_box(sheet: Sheet, look: Look, slot: int, box: Box) -> None:
    """A filled box in one of the looks."""
    colour = system_colour(slot)
    if look == "published":
        sheet.rectangle(box, PAPER, edge=HATCH, hatch="///", hatch_linewidth=1.7)
    elif look == "band":
        sheet.rectangle(box, HATCH, alpha=0.3)
    elif look == "measured":
        sheet.rectangle(box, colour)
    else:
        sheet.rectangle(box, colour, alpha=0.2, edge=colour, lw=1.5)


def _draw_range(sheet: Sheet, low: float, high: float, y: float, cap: float, *, closed: bool = True) -> None:
    """A whisker between two places, px, with caps of `cap` px on either side; an open high end points on."""
    if low < high:
        sheet.line([(low, y), (high, y)], {"color": PAPER, "lw": 4.0, "zorder": 2.5})
    sheet.line([(low, y), (high, y)], {"color": INK, "lw": 1.5, "zorder": 3})
    sheet.uprights((low, high) if closed else (low,), [(y - cap, y + cap)], INK, lw=1.5, zorder=3)
    if not closed:
        points = [(high - cap, y - cap), (high, y), (high - cap, y + cap)]
        sheet.line(points, {"color": INK, "lw": 1.5, "zorder": 3})


def _key_rows(entries: Iterable[KeyEntry], width: float) -> list[list[KeyEntry]]:
    """The entries of a key in as many rows of this width as they need, px."""
    rows: list[list[KeyEntry]] = []
    used = width + 1.0
    for entry in entries:
        if used + entry.width > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += entry.width + KEY_GAP
    return rows


def _draw_key(sheet: Sheet, entries: Sequence[KeyEntry]) -> None:
    """The key, in the first rows of a picture."""
    for place, row in enumerate(_key_rows(entries, sheet.width)):
        x, y = 0.0, KEY_LINE * place + 12.0
        for entry in row:
            _draw_box(sheet, entry.look, entry.slot, (x, y - 10.0, *SWATCH))
            sheet.text(
                x + SWATCH[0] + SPACE, y, cut_text(entry.text, sheet.width - x - SWATCH[0] - SPACE, NOTE)
            )
            x += entry.width + KEY_GAP
