"""Operations per second over operations per byte, under the limits of one device."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.sheet import Sheet, grid, stroke, ticks
from report.charts.style import (
    INK,
    NOTE,
    PAPER,
    SOFT,
    Layout,
    Style,
    apart,
    cut,
    decades,
    marker_of,
    system_colour,
    width_of,
)

ACROSS = "operations a counted byte"
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
TOP, UNDER, EDGE, LINE = 20.0, 46.0, 24.0, 19.0
HEIGHT, STACKED_HEIGHT = 300.0, 240.0
"""Heights of the plot with its names beside it and below it, px."""
SAMPLE = 26.0
"""Room for a number or a stroke before a name, px."""
ON_PAPER = (0, (4, 3))


@dataclass(frozen=True, slots=True)
class RooflineMark:
    """One benchmark. `intensity`, operations per counted byte, is the least: nothing fused or cached."""

    label: str
    precision: str
    intensity: float
    flops_per_second: float


@dataclass(frozen=True, slots=True)
class Roof:
    """The fastest product in one type, measured or on paper, FLOP/s."""

    label: str
    flops_per_second: float
    measured: bool


@dataclass(frozen=True, slots=True)
class Bandwidth:
    """A memory's, measured or on paper, bytes/s: the slope below the roofs."""

    bytes_per_second: float
    measured: bool


@dataclass(frozen=True, slots=True)
class Roofline:
    """Logarithmic axes; what was measured is drawn solid, what is on paper dashed."""

    points: tuple[RooflineMark, ...]
    roofs: tuple[Roof, ...]
    bandwidths: tuple[Bandwidth, ...]

    def sheet(self, layout: Layout) -> Sheet:
        """Points are numbered, and named beside the plot or below it; roofs have their names on them."""
        ridges = [r.flops_per_second / b.bytes_per_second for r in self.roofs for b in self.bandwidths]
        across = decades([*(point.intensity for point in self.points), *ridges])
        up = decades(
            [p.flops_per_second for p in self.points] + [roof.flops_per_second for roof in self.roofs]
        )
        names = self._names()
        widest = max((width_of(name, NOTE) for _, name in names), default=0.0) + SAMPLE + EDGE
        beside = min(widest, 0.36 * layout.width) if layout.beside else 0.0
        left = max(width_of(rate(tick, "FLOP/s"), NOTE) for tick in up) + 10
        room = layout.width - left - beside - max(EDGE, width_of(f"{across[-1]:g}", NOTE) / 2)
        height = HEIGHT if beside else STACKED_HEIGHT
        foot = TOP + height + UNDER
        listed = LINE * len(names)
        sheet = Sheet(layout.width, max(foot, TOP + listed) if beside else foot + listed)
        axes = sheet.axes(left, TOP, room, height)
        axes.set(xscale="log", yscale="log", xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
        ticks(axes, [(at, f"{at:g}") for at in across], [(at, rate(at, "FLOP/s")) for at in up])
        grid(axes, across, up)
        sheet.text(left + room / 2, foot - 8, ACROSS, align="center")
        for bandwidth in self.bandwidths:
            _slope(axes, bandwidth, max((roof.flops_per_second for roof in self.roofs), default=up[-1]))
        for roof in self.roofs:
            self._roof(axes, roof)
        self._names_of_roofs(sheet, axes)
        for number, point in enumerate(self.points, 1):
            place = (point.intensity, point.flops_per_second)
            mark = {"marker": marker_of(point.precision), "ms": 9.0, "mec": PAPER, "mew": 1.0, "ls": "none"}
            stroke(axes, place[:1], place[1:], {"mfc": system_colour(0), "zorder": 3, **mark})
            x, y = sheet.place(axes, *place)
            sheet.text(x + 8, y + 4, str(number), bold=True, colour=INK)
        self._list(sheet, names, (layout.width - beside + EDGE, TOP) if beside else (0.0, foot))
        return sheet

    def _names_of_roofs(self, sheet: Sheet, axes: Axes) -> None:
        """At their right ends: above the line of what is on paper, below that of what was measured."""
        low, high = axes.get_xlim()[1], axes.get_ylim()
        right, top = sheet.place(axes, low, high[1])
        _, bottom = sheet.place(axes, low, high[0])
        lines = [sheet.place(axes, low, roof.flops_per_second)[1] for roof in self.roofs]
        wanted = [y + (14.0 if roof.measured else -5.0) for y, roof in zip(lines, self.roofs, strict=True)]
        for roof, y in zip(self.roofs, apart(wanted, 14.5, top - 5, bottom - 5), strict=True):
            sheet.text(right - 3, y, roof.label, colour=INK if roof.measured else SOFT, align="right")

    def _names(self) -> list[tuple[str | Bandwidth, str]]:
        """The names in the list, and before each a number or the stroke of a slope."""
        points = [(str(n), f"{point.label}, {point.precision}") for n, point in enumerate(self.points, 1)]
        bases = [(slope, "measured" if slope.measured else "on paper") for slope in self.bandwidths]
        return [*points, *((slope, f"memory, {basis}") for slope, basis in bases)]

    def _list(
        self, sheet: Sheet, names: list[tuple[str | Bandwidth, str]], corner: tuple[float, float]
    ) -> None:
        x, top = corner
        for place, (before, name) in enumerate(names):
            y = top + LINE * place + 12
            if isinstance(before, str):
                sheet.text(x, y, before, bold=True, colour=INK)
            else:
                sheet.line([(x, y - 4), (x + SAMPLE - 7, y - 4)], _slope_style(before))
            sheet.text(x + SAMPLE, y, cut(name, sheet.width - x - SAMPLE, NOTE), colour=INK)

    def _roof(self, axes: Axes, roof: Roof) -> None:
        """A level line from the steepest slope of its kind to the right edge."""
        low, high = axes.get_xlim()
        alike = [
            bandwidth.bytes_per_second for bandwidth in self.bandwidths if bandwidth.measured == roof.measured
        ]
        begin = max(low, roof.flops_per_second / max(alike)) if alike else low
        stroke(
            axes,
            [begin, high],
            [roof.flops_per_second] * 2,
            _line_style(system_colour(0), roof.measured),
        )


def rate(value: float, unit: str) -> str:
    """'100 GFLOP/s': a rate with its prefix."""
    for size, prefix in PREFIXES:
        if value >= size * 0.9995:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _line_style(colour: str, measured: bool) -> Style:
    return {"color": colour, "lw": 1.8 if measured else 1.4, "ls": "-" if measured else ON_PAPER}


def _slope_style(bandwidth: Bandwidth) -> Style:
    return _line_style(SOFT, bandwidth.measured)


def _slope(axes: Axes, bandwidth: Bandwidth, top: float) -> None:
    """The line y = bandwidth · x, from where it enters the drawing to the highest roof."""
    speed = bandwidth.bytes_per_second
    first = max(axes.get_xlim()[0], axes.get_ylim()[0] / speed)
    last = min(axes.get_xlim()[1], top / speed)
    stroke(axes, [first, last], [first * speed, last * speed], _slope_style(bandwidth))
