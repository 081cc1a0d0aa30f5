"""What devices did while trials ran: one row a trial over the same seconds, its phases marked by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.sheet import KEY_LINE, Key, Sheet, bar, key_rows, legend, stroke
from report.charts.style import (
    BLUE,
    INK,
    LABEL,
    NOTE,
    PHASE_COLOURS,
    RULE,
    SOFT,
    Layout,
    Style,
    cut,
    linear_ticks,
    width_of,
    wrapped,
)
from report.charts.trial import thinned

NAME, LINE, BAND = 20.0, 16.0, 18.0
CAPTION, BUSY, MEMORY, BETWEEN = 16.0, 44.0, 28.0, 20.0
"""Heights of a row's name, a line of its note, its phases, a caption, both axes, and between two rows, px."""
UNDER, EDGE = 28.0, 14.0
HEADROOM = 1.06
"""Times the most that a line reaches, so that it does not run through the words above it."""
THINNEST = 1.0
"""Px of a phase, so that a short one is seen."""
MOST_VALUES = 120
FIRST: Style = {"color": BLUE, "lw": 1.8}
OTHERS: Style = {"color": SOFT, "lw": 1.0}

Trace = tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """One device over a row's times: how busy, in percent, and its memory in GiB; null leaves a gap."""

    name: str
    busy: Trace
    memory: Trace


@dataclass(frozen=True, slots=True)
class Phase:
    """What a trial did from one second to another; `kind` is one of PHASE_COLOURS, `name` is what is read."""

    kind: str
    name: str
    begin: float
    end: float


@dataclass(frozen=True, slots=True)
class UseRow:
    """One trial. Its first device is drawn over the others."""

    label: str
    note: str
    times: tuple[float, ...]
    devices: tuple[DeviceUse, ...]
    phases: tuple[Phase, ...]
    card: str = ""
    precision: str = ""

    @property
    def seconds(self) -> float:
        """Until when something is known."""
        return max((*self.times, *(phase.end for phase in self.phases)), default=0.0)

    @property
    def most_memory(self) -> float:
        """Of any device, GiB."""
        return max((v for device in self.devices for v in device.memory if v is not None), default=0.0)


@dataclass(frozen=True, slots=True)
class UseRows:
    """Rows below each other that share seconds and memory; on each its phases, how busy, and the memory."""

    rows: tuple[UseRow, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Names stand above; the legend has each phase and each kind of device once."""
        notes = [wrapped(row.note, layout.width, NOTE, lines=3) if row.note else () for row in self.rows]
        each = BAND + CAPTION + BUSY + CAPTION + MEMORY + BETWEEN
        heights = [NAME + LINE * len(note) + each for note in notes]
        keys = key_rows(self._keys(), layout.width)
        sheet = Sheet(layout.width, sum(heights) + UNDER + KEY_LINE * len(keys))
        most = max((row.seconds for row in self.rows), default=0.0) or 1.0
        memory = max((row.most_memory for row in self.rows), default=0.0) or 1.0
        top = 0.0
        for row, note, height in zip(self.rows, notes, heights, strict=True):
            _Row(sheet, row, sheet.part(row.card, row.precision), most).draw(top, note, memory)
            top += height
        _seconds(sheet, top, most)
        legend(sheet, top + UNDER, keys)
        return sheet

    def _keys(self) -> list[Key]:
        phases = {phase.name: phase.kind for row in self.rows for phase in row.phases}
        keys = [Key(name, bar(PHASE_COLOURS[kind], 9, alpha=0.45)) for name, kind in phases.items()]
        first = dict.fromkeys(row.devices[0].name for row in self.rows if row.devices)
        keys += [Key(name, FIRST) for name in first]
        return keys + ([Key("each other GPU", OTHERS)] if any(len(r.devices) > 1 for r in self.rows) else [])


@dataclass(frozen=True, slots=True)
class _Row:
    """A row on its sheet, over as many seconds as all have."""

    sheet: Sheet
    row: UseRow
    part: str
    seconds: float

    def draw(self, top: float, note: Sequence[str], memory: float) -> None:
        """From the top: its name and note, its phases, how busy, and the memory of at most so many GiB."""
        sheet, part = self.sheet, self.part
        label = cut(self.row.label, sheet.width, LABEL, True)
        sheet.text(0, top + 13, label, size=LABEL, bold=True, colour=INK, part=part)
        for place, line in enumerate(note):
            sheet.text(0, top + NAME + LINE * place + 8, line, part=part)
        top += NAME + LINE * len(note)
        band = self._axes(top, BAND - 4, 1.0)
        for phase in self.row.phases:
            self._mark(band, phase, 0.45)
        for phase in self.row.phases:
            self._named(band, phase, top)
        busy = self._strip(top + BAND, BUSY, "at work", "0 to 100 %", 100.0)
        reach = f"0 to {memory:.3g} GiB"
        below = self._strip(top + BAND + CAPTION + BUSY, MEMORY, "memory", reach, memory)
        for device in (*self.row.devices[1:], *self.row.devices[:1]):
            style = FIRST if device is self.row.devices[0] else OTHERS
            for axes, trace in ((busy, device.busy), (below, device.memory)):
                stroke(axes, *thinned(self.row.times, trace, MOST_VALUES), style, part)

    def _axes(self, top: float, height: float, most: float) -> Axes:
        axes = self.sheet.axes(0, top, self.sheet.width, height)
        axes.set(xlim=(0, self.seconds), ylim=(0, HEADROOM * most))
        return axes

    def _strip(self, top: float, height: float, name: str, reach: str, most: float) -> Axes:
        width = self.sheet.width
        self.sheet.text(0, top + NOTE, name, part=self.part)
        self.sheet.text(width, top + NOTE, reach, align="right", part=self.part)
        axes = self._axes(top + CAPTION, height, most)
        stroke(axes, [0, 1], [0, 0], {"color": RULE, "lw": 1, "transform": axes.transAxes}, self.part)
        for phase in self.row.phases:
            self._mark(axes, phase, 0.12)
        return axes

    def _mark(self, axes: Axes, phase: Phase, alpha: float) -> None:
        least = THINNEST * self.seconds / self.sheet.width
        end = max(phase.end, phase.begin + least)
        shade = axes.axvspan(phase.begin, end, color=PHASE_COLOURS[phase.kind], alpha=alpha, lw=0)
        shade.set_gid(self.part)

    def _named(self, axes: Axes, phase: Phase, top: float) -> None:
        """As much of its name as its time has room for: the whole, what is before a comma, or nothing."""
        begin, end = (self.sheet.place(axes, at, 0.0)[0] for at in (phase.begin, phase.end))
        names = (phase.name, phase.name.split(",")[0].split(":")[0])
        shown = next((name for name in names if width_of(name, NOTE) + 6 <= end - begin), None)
        if shown:
            middle = (begin + end) / 2
            self.sheet.text(middle, top + 11, shown, colour=INK, align="center", part=self.part)


def _seconds(sheet: Sheet, top: float, most: float) -> None:
    for tick in linear_ticks([0.0, most], zero=True, most=4):
        if tick > most:
            continue
        x = tick / most * sheet.width
        align = "left" if x < EDGE else "right" if x > sheet.width - 2 * EDGE else "center"
        sheet.text(x, top, f"{tick:,g}", align=align)
    sheet.text(sheet.width / 2, top + 16, "seconds since it began", align="center")
