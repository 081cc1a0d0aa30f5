"""Measured things on one scale: where others lie, what the paper says, and this card's dot."""

from __future__ import annotations

from dataclasses import dataclass

from report.charts.marks import BETWEEN, rule, uprights
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

ROW, BESIDE, BAND, DOT, AXIS_ROW = 28.0, 13.0, 12.0, 12.0, 20.0
NAME_ROW, MARK = 18.0, 22.0
MOST = 2.0
"""What lies beyond is drawn at the edge."""
OUTSIDE = 1
"""The colour's slot of what is outside."""
KEY = ("this card", "too slow", "a sound card lies there", "paper")


@dataclass(frozen=True, slots=True)
class BandRow:
    """One measured thing over the middle of its band; null are a band and a paper that are not known."""

    label: str
    note: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None
    paper: float | None = None

    @property
    def outside(self) -> bool:
        return self.low is not None and self.value < self.low


@dataclass(frozen=True, slots=True)
class Bands:
    """Rows on a scale from zero; their middle is 1."""

    rows: tuple[BandRow, ...]
    axis: str = ""

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the rows, or above them."""
        names = max(width_of(row.label, LABEL, True) + width_of(row.note, NOTE) + 24 for row in self.rows)
        left = min(names, 0.42 * layout.width) if layout.beside else 0.0
        right = layout.width - max(width_of(row.text, NOTE, True) for row in self.rows) - 16
        right = right if left else layout.width - DOT
        values = [each for row in self.rows for each in (row.value, row.high, row.paper) if each is not None]
        most = min(max([*values, 1.1]), MOST)
        unit = (right - left - DOT) / most
        step = ROW if left else ROW + NAME_ROW
        top = 2 * KEY_LINE if layout.width < 600 else KEY_LINE
        sheet = Sheet(layout.width, top + step * len(self.rows) + AXIS_ROW)
        self._key(sheet)
        ticks = [tick for tick in linear_ticks([0.0, most], zero=True, most=8 if left else 5) if tick <= most]
        places = {tick: left + DOT / 2 + unit * tick for tick in ticks}
        for at, row in enumerate(self.rows):
            y = top + step * at
            rule(sheet, y, firm=not at)
            middle = y + step - ROW / 2
            for tick, x in places.items():
                uprights(sheet, [x], [(y + step - ROW, y + step)], AXIS if tick == 1.0 else RULE)
            _names(sheet, row, y, left)
            _draw(sheet, row, left + DOT / 2, unit, middle)
            words = y + (middle - y if left else 14) + 4.5 * bool(left)
            colour = system_colour(OUTSIDE) if row.outside else INK
            sheet.text(layout.width, words, row.text, bold=True, align="right", colour=colour)
        bottom = top + step * len(self.rows)
        rule(sheet, bottom)
        for tick, x in places.items():
            half = width_of(written(tick, "number"), NOTE) / 2
            sheet.text(max(x, half), bottom + 15, written(tick, "number"), align="center")
        if left:
            sheet.text(0, bottom + 15, cut(self.axis, left - 10, NOTE))
        return sheet

    def _key(self, sheet: Sheet) -> None:
        x, y = 0.0, 11.0
        for place, name in enumerate(KEY):
            wide = MARK + width_of(name, NOTE) + BETWEEN
            if x + wide > sheet.width:
                x, y = 0.0, y + KEY_LINE
            if place == 2:
                sheet.rectangle((x, y - 10, MARK - 6, BAND), HATCH, alpha=0.4)
            elif place == 3:
                uprights(sheet, [x + 8], [(y - 11, y + 3)], INK, lw=2.0)
            else:
                _dot(sheet, x + 8, y - 4, outside=bool(place))
            sheet.text(x + MARK, y, name)
            x += wide


def _names(sheet: Sheet, row: BandRow, y: float, left: float) -> None:
    base = y + (ROW / 2 + 4.5 if left else 14)
    room = left - 10 if left else sheet.width - width_of(row.text, NOTE, True) - 10
    label = cut(row.label, room, LABEL, True)
    sheet.text(0, base, label, size=LABEL, bold=True, colour=INK)
    begin = width_of(label, LABEL, True) + 8
    if row.note and room - begin > 30:
        sheet.text(begin, base, cut(row.note, room - begin, NOTE), colour=SOFT)


def _draw(sheet: Sheet, row: BandRow, zero: float, unit: float, y: float) -> None:
    if row.low is not None and row.high is not None:
        width = unit * (min(row.high, MOST) - row.low)
        sheet.rectangle((zero + unit * row.low, y - BAND / 2, width, BAND), HATCH, alpha=0.4)
    if row.paper is not None and row.paper <= MOST:
        uprights(sheet, [zero + unit * row.paper], [(y - 10, y + 10)], INK, lw=2.0, zorder=2.5)
    if row.low is not None or row.paper is not None:
        _dot(sheet, zero + unit * min(row.value, MOST), y, outside=row.outside)


def _dot(sheet: Sheet, x: float, y: float, *, outside: bool) -> None:
    colour = system_colour(OUTSIDE if outside else 0)
    look = {"ls": "none", "marker": "o", "ms": DOT, "mew": 1.5, "mfc": colour, "mec": PAPER, "zorder": 4}
    sheet.line([(x, y)], look)
