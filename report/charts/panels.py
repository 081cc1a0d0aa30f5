"""Small pictures in a row: up to four on a wide page, one below another on a phone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from report.charts.marks import SWATCH, Look, draw_bar, key_rows
from report.charts.sheet import Sheet, Words, fitted
from report.charts.style import AXIS, INK, LABEL, NOTE, SOFT, Layout, cut, system_colour, width_of, wrapped

ACROSS = {"desk": 4, "slide": 2, "paper": 2, "narrow": 1}
"""Panels in a row, at most."""
BETWEEN, BELOW, GAP = 28.0, 22.0, 12.0
"""From one panel to the next at its side and below it, and from one name in a key to the next, px."""
NAME, BAR, ROW = 16.0, 12.0, 33.0
"""Heights of a name, of the bar below it, and of both with what parts them from the next, px."""
LINE = 17.0
SHADES = (1.0, 0.72, 0.5, 0.3, 0.14, 0.05)
"""How firm the colour of a share is, by its place."""


class Panel(Protocol):
    """A small picture under a title and a note."""

    @property
    def title(self) -> str:
        """What it shows."""

    @property
    def note(self) -> str:
        """Its unit, and what else a reader needs."""

    def height(self, width: float) -> float:
        """What it takes, px."""

    def draw(self, sheet: Sheet, left: float, top: float, width: float, height: float) -> None:
        """Draws it into a box, px."""


@dataclass(frozen=True, slots=True)
class Panels:
    """Panels beside each other, as many as the layout has room for, and the rest below."""

    panels: tuple[Panel, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Each row is as high as its highest panel."""
        count = max(min(len(self.panels), ACROSS[layout.name]), 1)
        width = (layout.width - BETWEEN * (count - 1)) / count
        rows = [self.panels[at : at + count] for at in range(0, len(self.panels), count)]
        heads = [max(LINE * len(_head(panel, width)) + 6 for panel in row) for row in rows]
        heights = [max(panel.height(width) for panel in row) for row in rows]
        total = sum(heads) + sum(heights) + BELOW * max(len(rows) - 1, 0)
        sheet, top = Sheet(layout.width, total), 0.0
        for row, head, height in zip(rows, heads, heights, strict=True):
            for place, panel in enumerate(row):
                left = (width + BETWEEN) * place
                for n, words in enumerate(_head(panel, width)):
                    sheet.run(left, top + LINE * n + 13, [words])
                panel.draw(sheet, left, top + head, width, height)
            top += head + height + BELOW
        return sheet


def _head(panel: Panel, width: float) -> list[Words]:
    title = wrapped(panel.title, width, LABEL, True)
    return [
        *(Words(line, LABEL, True, INK) for line in title),
        *(Words(line) for line in wrapped(panel.note, width, NOTE)),
    ]


@dataclass(frozen=True, slots=True)
class Length:
    """A small bar with its text, and an outline that shows what there is in all."""

    label: str
    value: float
    text: str
    look: Look = "own"
    slot: int = 0
    capacity: float | None = None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Bars from zero, each below its name: the memory that was used in the card's, for example."""

    title: str
    note: str
    bars: tuple[Length, ...]

    def height(self, width: float) -> float:
        """A row for each bar."""
        return ROW * len(self.bars)

    def draw(self, sheet: Sheet, left: float, top: float, width: float, height: float) -> None:
        """On one scale."""
        most = max((max(bar.value, bar.capacity or 0.0) for bar in self.bars), default=0.0) or 1.0
        for place, bar in enumerate(self.bars):
            y = top + ROW * place
            firm = bar.look not in ("published", "expected")
            room = width - width_of(bar.text, NOTE, True) - 8
            sheet.text(left, y + 12, cut(bar.label, room, NOTE), colour=INK if firm else SOFT)
            sheet.text(left + width, y + 12, bar.text, bold=firm, colour=INK, align="right")
            box = (left, y + NAME, max(width * bar.value / most, 1.0), BAR)
            draw_bar(sheet, bar.look, bar.slot, box)
            if bar.capacity is not None:
                sheet.rectangle((left, y + NAME, width * bar.capacity / most, BAR), None, edge=AXIS)


@dataclass(frozen=True, slots=True)
class Shares:
    """Bars of parts that make a whole, one shade for each name; `rows` are a label and its shares of one."""

    title: str
    note: str
    names: tuple[str, ...]
    rows: tuple[tuple[str, tuple[float, ...]], ...]

    def height(self, width: float) -> float:
        """A row for each bar, and the key."""
        return ROW * len(self.rows) + LINE * len(self._key(width)) + 2

    def draw(self, sheet: Sheet, left: float, top: float, width: float, height: float) -> None:
        """End to end from the left, over the key."""
        for place, (label, shares) in enumerate(self.rows):
            y, x = top + ROW * place, left
            sheet.text(left, y + 12, cut(label, width, NOTE), colour=INK)
            for n, share in enumerate(shares):
                self._part(sheet, n, (x, y + NAME, width * share, BAR))
                x += width * share
        for place, row in enumerate(self._key(width)):
            y, x = top + ROW * len(self.rows) + LINE * place, left
            for n, name in row:
                self._part(sheet, n, (x, y + 2, SWATCH[1], SWATCH[1]))
                sheet.run(x + SWATCH[1] + 5, y + 12, fitted([Words(name)], left + width - x - SWATCH[1] - 5))
                x += _entry_width((n, name)) + GAP

    def _part(self, sheet: Sheet, place: int, box: tuple[float, float, float, float]) -> None:
        colour = system_colour(0)
        if box[2] > 0:
            sheet.rectangle(box, colour, alpha=SHADES[min(place, len(SHADES) - 1)], edge=colour, lw=0.6)

    def _key(self, width: float) -> list[list[tuple[int, str]]]:
        return key_rows(enumerate(self.names), width, _entry_width, GAP)


def _entry_width(entry: tuple[int, str]) -> float:
    return SWATCH[1] + 5 + width_of(entry[1], NOTE)
