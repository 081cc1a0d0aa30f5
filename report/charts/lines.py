"""Lines over one axis: by epoch, step, time, batch or number of devices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.sheet import KEY_LINE, Key, Sheet, grid, interval, key_rows, legend, stroke, ticks
from report.charts.style import (
    MARKER_SIZES,
    NOTE,
    PAPER,
    SERIES_LOOKS,
    Form,
    Layout,
    Look,
    Style,
    apart,
    cut,
    doubling_ticks,
    linear_ticks,
    look_of,
    width_of,
    written,
)

MOST_BESIDE = 6
TOP, ROW, UNDER = 8.0, 14.0, 40.0
EMPTY, EDGE = 30.0, 20.0
BESIDE = 42.0
"""From the end of the axis to a name, px; a sample of its line stands between."""
DENSE = 120
"""Points of a line that is drawn thin."""

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Curve:
    """One line. `intervals` has an entry for each point, null where there is none."""

    label: str
    points: Points
    precision: str = "fp32-ieee"
    card: str = ""
    published: bool = False
    """Thin, dotted and behind the others."""
    dash: tuple[float, float] | None = None
    intervals: tuple[tuple[float, float] | None, ...] = ()
    marked: bool = False
    """At every point: between them nothing was measured."""
    turn: int | None = None
    """Its place among lines that are told apart by something else than their precision."""

    @property
    def look(self) -> Look:
        """Its colour and mark."""
        return look_of(self.precision) if self.turn is None else SERIES_LOOKS[self.turn % len(SERIES_LOOKS)]

    def finite(self) -> Points:
        """The points that can be drawn."""
        return tuple(point for point in self.points if all(map(math.isfinite, point)))


@dataclass(frozen=True, slots=True)
class Wall:
    """A place across that one line does not pass, such as a batch that does not fit."""

    at: float
    text: str
    precision: str
    card: str = ""


@dataclass(frozen=True, slots=True)
class Curves:
    """Lines over one axis, each named at its end or, where they are many, below."""

    curves: tuple[Curve, ...]
    across: str
    form: Form = "number"
    zero: bool = False
    """Whether values start at zero."""
    doubling: bool = False
    """Whether equal steps across double it."""
    walls: tuple[Wall, ...] = ()

    def sheet(self, layout: Layout) -> Sheet:
        """What walls say stands above, so that no line runs through it."""
        curves = [curve for curve in self.curves if curve.finite()]
        if not curves:
            sheet = Sheet(layout.width, EMPTY)
            sheet.text(0, 18, "nothing to draw")
            return sheet
        values = [y for curve in curves for _, y in curve.finite()]
        values += [end for curve in curves for pair in curve.intervals if pair for end in pair]
        up = linear_ticks([value for value in values if math.isfinite(value)], zero=self.zero)
        left = max(width_of(written(tick, self.form), NOTE) for tick in up) + 8
        named = {_name_of(curve): curve for curve in curves}
        widest = max(width_of(curve.label, NOTE) for curve in named.values())
        beside = len(named) <= MOST_BESIDE and widest <= 0.3 * layout.width
        room = layout.width - left - (widest + BESIDE if beside else EDGE)
        top, height = TOP + ROW * len(self.walls), 0.3 * layout.width + 70
        rows = [] if beside else key_rows([Key(c.label, _style(c)) for c in named.values()], layout.width)
        foot = top + height + UNDER
        sheet = Sheet(layout.width, foot + KEY_LINE * len(rows))
        axes = sheet.axes(left, top, room, height)
        self._axes(axes, curves, up, room)
        sheet.text(left + room / 2, foot - 6, self.across, align="center")
        parts: dict[tuple[str, str], str] = {}
        of = [(curve.card, curve.precision) for curve in curves]
        for key in (*of, *((wall.card, wall.precision) for wall in self.walls)):
            parts[key] = parts.get(key) or sheet.part(*key)
        for name, curve in sorted(named.items(), key=lambda pair: not pair[1].published):
            alike = [same for same in curves if _name_of(same) == name]
            _draw(axes, alike, parts[curve.card, curve.precision])
        for place, wall in enumerate(self.walls):
            _wall(sheet, axes, wall, ROW * (place + 1), parts[wall.card, wall.precision])
        if beside:
            ends = [sheet.place(axes, 0.0, _end(curves, name))[1] for name in named]
            for y, curve in zip(apart(ends, ROW, top, top + height), named.values(), strict=True):
                part, x = parts[curve.card, curve.precision], left + room
                sample = [(x + at, y) for at in (10, 34)]
                sheet.line(sample, {**_style(curve), "markevery": [1]}, part)
                sheet.text(x + BESIDE, y + 4, curve.label, part=part)
        legend(sheet, foot, rows)
        return sheet

    def _axes(self, axes: Axes, curves: list[Curve], up: tuple[float, ...], room: float) -> None:
        xs = [x for curve in curves for x, _ in curve.finite()] + [wall.at for wall in self.walls]
        if self.doubling:
            ends, across = doubling_ticks(xs, room)
            axes.set_xscale("log")
        else:
            whole = all(x.is_integer() for x in xs)
            across = linear_ticks(xs, zero=True, most=max(2, int(room // 60)), whole=whole)
            ends = (across[0], max(xs) if max(xs) > across[0] else across[-1])
        axes.set(xlim=ends, ylim=(up[0], up[-1]))
        shown = [tick for tick in across if ends[0] <= tick <= ends[1]]
        ticks(
            axes, [(tick, f"{tick:,g}") for tick in shown], [(tick, written(tick, self.form)) for tick in up]
        )
        grid(axes, up=up)


def _name_of(curve: Curve) -> tuple[object, ...]:
    return curve.label, curve.precision, curve.published, curve.dash, curve.turn


def _style(curve: Curve) -> Style:
    look = curve.look
    style: Style = {
        "color": look.colour,
        "lw": 1.8 if len(curve.points) < DENSE else 1.0,
        "marker": look.marker,
        "ms": MARKER_SIZES[look.marker] * 0.8,
        "mew": 1.4,
    }
    if curve.published:
        return {**style, "lw": 1.2, "alpha": 0.65, "mfc": PAPER, "ls": (0, (1.5, 2.5))}
    return {**style, "ls": (0, curve.dash)} if curve.dash else style


def _draw(axes: Axes, curves: Sequence[Curve], part: str) -> None:
    """Curves of one name as one line, since matplotlib takes its time over each."""
    xs: list[float] = []
    ys: list[float] = []
    marks: list[int] = []
    for curve in curves:
        points = curve.finite()
        marks += range(len(xs), len(xs) + len(points)) if curve.marked else [len(xs) + len(points) - 1]
        xs += [*(x for x, _ in points), math.nan]
        ys += [*(y for _, y in points), math.nan]
        for (x, _), pair in zip(curve.points, curve.intervals, strict=False):
            if pair:
                error = interval(curve.look.colour, 1.6, 3, upright=True)
                stroke(axes, [x, x], pair, error, part)
    stroke(axes, xs, ys, {**_style(curves[0]), "markevery": marks, "zorder": 2}, part)


def _wall(sheet: Sheet, axes: Axes, wall: Wall, y: float, part: str) -> None:
    dashed = {"color": look_of(wall.precision).colour, "lw": 1.6, "ls": (0, (4, 3))}
    stroke(axes, [wall.at, wall.at], axes.get_ylim(), dashed, part)
    x, _ = sheet.place(axes, wall.at, 0.0)
    text = cut(wall.text, 0.7 * sheet.width, NOTE)
    half = width_of(text, NOTE) / 2
    sheet.text(min(max(x, half), sheet.width - half), y - 2, text, align="center", part=part)


def _end(curves: list[Curve], name: tuple[object, ...]) -> float:
    """Where the lines of one name end, on the mean."""
    ends = [curve.finite()[-1][1] for curve in curves if _name_of(curve) == name]
    return sum(ends) / len(ends)
