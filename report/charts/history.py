"""One machine over time: dots with ranges against the date, events as lines, what was agreed as an edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.charts.marks import KeyEntry, draw_key, key_height, uprights
from report.charts.sheet import Sheet, Words, fitted
from report.charts.style import (
    AXIS,
    INK,
    LABEL,
    NOTE,
    PAPER,
    RED,
    Form,
    Layout,
    cut,
    linear_ticks,
    system_colour,
    width_of,
    wrapped,
    written,
)

HEIGHT, BETWEEN, EVENT_LINE, NAME_LINE, DATES = 118.0, 14.0, 17.0, 22.0, 22.0
DOT = 11.0
"""Its diameter, px."""


@dataclass(frozen=True, slots=True)
class Point:
    """A session: its day, value and range; the last and each below what was agreed have their `text`."""

    day: float
    value: float
    low: float
    high: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class Series:
    """The sessions of one workload, in the order of their days."""

    label: str
    points: tuple[Point, ...]
    note: str = ""


@dataclass(frozen=True, slots=True)
class History:
    """Workloads under each other, which share what is across: `dates` and `events` are days with their texts.

    The scale need not begin at zero: `begins` is where it does. Below `agreed` it is shaded, as `below` says.
    """

    series: tuple[Series, ...]
    dates: tuple[tuple[float, str], ...]
    events: tuple[tuple[float, str], ...] = ()
    agreed: float | None = None
    below: str = ""
    reference: float | None = 1.0
    form: Form = "percent"
    key: tuple[KeyEntry, ...] = ()

    @property
    def values(self) -> list[float]:
        """All that the scale has to show."""
        points = [point for series in self.series for point in series.points]
        values = [end for point in points for end in (point.low, point.high)]
        return [*values, *(value for value in (self.agreed, self.reference) if value is not None)] or [
            0.0,
            1.0,
        ]

    @property
    def begins(self) -> float:
        """The value at which the scale begins."""
        return linear_ticks(self.values, zero=False, most=3)[0]

    def sheet(self, layout: Layout) -> Sheet:
        """Names beside the scales, or above them."""
        return _Picture(self, layout).drawn()


class _Picture:
    """Where everything of a picture stands in one layout."""

    def __init__(self, chart: History, layout: Layout) -> None:
        self.chart, self.layout = chart, layout
        self.low, most = chart.begins, max(chart.values)
        self.high = most + 0.12 * (most - self.low)
        self.ticks = [tick for tick in linear_ticks(chart.values, zero=False, most=3) if tick <= self.high]
        names = [width_of(series.label, LABEL, True) for series in chart.series]
        names += [width_of(series.note, NOTE) for series in chart.series]
        self.named = min(max(names, default=0.0) + 24.0, 0.2 * layout.width) if layout.beside else 0.0
        self.left = self.named + max(width_of(written(t, chart.form), NOTE) for t in self.ticks) + 10.0
        days = [point.day for series in chart.series for point in series.points]
        days += [day for day, _ in (*chart.dates, *chart.events)]
        self.first, self.last = min(days, default=0.0), max(days, default=1.0)
        self.events = self._event_rows()

    def drawn(self) -> Sheet:
        """The whole picture."""
        top = key_height(self.chart.key, self.layout.width)
        below = top + EVENT_LINE * (1 + max((row for *_, row in self.events), default=-1)) + 4.0
        name = 0.0 if self.layout.beside else NAME_LINE
        step = HEIGHT + BETWEEN + name
        height = below + step * len(self.chart.series) - BETWEEN + DATES
        sheet = Sheet(self.layout.width, height)
        draw_key(sheet, self.chart.key, right=self.layout.beside)
        for n, series in enumerate(self.chart.series):
            self._series(sheet, series, below + step * n + name)
        bottom = height - DATES
        for day, text, x, row in self.events:
            y = top + EVENT_LINE * row + 13.0
            sheet.text(x, y, text, bold=True, colour=INK)
            dots = {"color": AXIS, "lw": 1.2, "ls": (0, (2, 3)), "zorder": 1}
            sheet.line([(self._x(day), y + 4), (self._x(day), bottom)], dots)
        last = 0.0
        for day, text in self.chart.dates:
            half = width_of(text, NOTE) / 2
            x = min(max(self._x(day), self.left - 8 + half), sheet.width - half)
            if x - half >= last:
                sheet.text(x, bottom + 16, text, align="center")
                last = x + half + 12
        return sheet

    def _x(self, day: float) -> float:
        span = (self.last - self.first) or 1.0
        inner = self.layout.width - self.left - 2 * DOT - 4
        return self.left + DOT + inner * ((day - self.first) / span if self.last > self.first else 0.5)

    def _y(self, value: float, top: float) -> float:
        return top + HEIGHT * (self.high - min(max(value, self.low), self.high)) / (self.high - self.low)

    def _event_rows(self) -> list[tuple[float, str, float, int]]:
        """Each event with the place of its text, and its row from the top, so that none lies on another."""
        placed: list[tuple[float, str, float, int]] = []
        taken: list[tuple[float, float, int]] = []
        for day, text in self.chart.events:
            shown = cut(text, 0.6 * self.layout.width, NOTE, True)
            wide = width_of(shown, NOTE, True)
            x, row = min(self._x(day), self.layout.width - wide), 0
            while any(row == other and x < high + 10 and low - 10 < x + wide for low, high, other in taken):
                row += 1
            placed.append((day, shown, x, row))
            taken.append((x, x + wide, row))
        return placed

    def _series(self, sheet: Sheet, series: Series, top: float) -> None:
        chart, right = self.chart, self.layout.width
        name = Words(series.label, LABEL, True, INK)
        if self.layout.beside:
            sheet.run(0, top + 14, fitted([name], self.named - 10))
            for n, line in enumerate(wrapped(series.note, self.named - 10, NOTE), 1):
                sheet.text(0, top + 14 + 17 * n, line)
        else:
            sheet.run(0, top - 8, fitted([name, Words(series.note)], right))
        for tick in self.ticks:
            text = written(tick, chart.form)
            sheet.text(self.left - 8, self._y(tick, top) + 4.5, text, align="right")
        if chart.agreed is not None:
            edge, bottom = self._y(chart.agreed, top), top + HEIGHT
            sheet.rectangle((self.left, edge, right - self.left, bottom - edge), RED, alpha=0.12)
            sheet.line([(self.left, edge), (right, edge)], {"color": RED, "lw": 1.5, "zorder": 1.5})
            sheet.text(right - 8, bottom - 7, chart.below, align="right")
        if chart.reference is not None:
            y = self._y(chart.reference, top)
            sheet.line([(self.left, y), (right, y)], {"color": AXIS, "lw": 1.2, "zorder": 1.2})
        self._points(sheet, series.points, top)

    def _points(self, sheet: Sheet, points: Sequence[Point], top: float) -> None:
        colour = system_colour(0)
        places = [(self._x(point.day), self._y(point.value, top)) for point in points]
        sheet.line(places, {"color": colour, "lw": 2.0, "alpha": 0.45, "zorder": 2})
        taken: list[tuple[float, float]] = []
        for (x, y), point in zip(places, points, strict=True):
            bad = self.chart.agreed is not None and point.high < self.chart.agreed
            span = (self._y(point.high, top), self._y(point.low, top))
            uprights(sheet, [x], [span], INK, lw=1.5, zorder=3)
            mark = {"mfc": RED if bad else colour, "mec": PAPER, "mew": 1.5, "ms": DOT, "zorder": 4}
            sheet.line([(x, y)], {"ls": "none", "marker": "s" if bad else "o", **mark})
            wide = width_of(point.text, NOTE, True)
            last = point is points[-1]
            end = min(x + wide / 2, sheet.width) if last else x - DOT
            if (bad or last) and all(end - wide > high or end < low for low, high in taken):
                lift = span[0] - 6 if last else y + 4.5
                sheet.text(end, max(lift, top + 4), point.text, bold=True, colour=INK, align="right")
                taken.append((end - wide - 4, end + 4))
