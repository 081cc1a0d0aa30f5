"""Operations per second over operations per byte, under the limits of one device."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes

from report.charts.intervals import mark_style
from report.charts.sheet import KEY_LINE, Key, Sheet, grid, key_rows, legend, stroke, ticks
from report.charts.style import INK, NOTE, SOFT, Layout, Style, decades, look_of, width_of

ACROSS = "operations a counted byte"
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))
TOP, UNDER, EDGE = 10.0, 44.0, 24.0
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
    precision: str
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
        """Points are numbered, and named below."""
        ridges = [r.flops_per_second / b.bytes_per_second for r in self.roofs for b in self.bandwidths]
        across = decades([*(point.intensity for point in self.points), *ridges])
        up = decades(
            [p.flops_per_second for p in self.points] + [roof.flops_per_second for roof in self.roofs]
        )
        left = max(width_of(rate(tick, "FLOP/s"), NOTE) for tick in up) + 8
        room = layout.width - left - max(EDGE, width_of(f"{across[-1]:g}", NOTE) / 2)
        height = 0.4 * layout.width + 110
        rows = key_rows(self._keys(), layout.width)
        foot = TOP + height + UNDER
        sheet = Sheet(layout.width, foot + KEY_LINE * len(rows))
        axes = sheet.axes(left, TOP, room, height)
        axes.set(xscale="log", yscale="log", xlim=(across[0], across[-1]), ylim=(up[0], up[-1]))
        ticks(axes, [(at, f"{at:g}") for at in across], [(at, rate(at, "FLOP/s")) for at in up])
        grid(axes, across, up)
        sheet.text(left + room / 2, foot - 8, ACROSS, align="center")
        for bandwidth in self.bandwidths:
            _slope(axes, bandwidth, max((roof.flops_per_second for roof in self.roofs), default=up[-1]))
        for roof in self.roofs:
            self._roof(axes, roof)
        for number, point in enumerate(self.points, 1):
            place = (point.intensity, point.flops_per_second)
            stroke(axes, place[:1], place[1:], {**mark_style(point.precision), "zorder": 3})
            x, y = sheet.place(axes, *place)
            sheet.text(x + 8, y + 4, str(number), bold=True, colour=INK)
        legend(sheet, foot, rows)
        return sheet

    def _keys(self) -> list[Key]:
        keys = [
            Key(f"{number}  {point.label}, {point.precision}", mark_style(point.precision))
            for number, point in enumerate(self.points, 1)
        ]
        keys += [Key(roof.label, _roof_style(roof)) for roof in self.roofs]
        return keys + [
            Key(f"memory, {_basis(bandwidth.measured)}", _slope_style(bandwidth))
            for bandwidth in self.bandwidths
        ]

    def _roof(self, axes: Axes, roof: Roof) -> None:
        """A level line from the steepest slope of its kind to the right edge."""
        low, high = axes.get_xlim()
        alike = [
            bandwidth.bytes_per_second for bandwidth in self.bandwidths if bandwidth.measured == roof.measured
        ]
        begin = max(low, roof.flops_per_second / max(alike)) if alike else low
        stroke(axes, [begin, high], [roof.flops_per_second] * 2, _roof_style(roof))


def rate(value: float, unit: str) -> str:
    """'100 GFLOP/s': a rate with its prefix."""
    for size, prefix in PREFIXES:
        if value >= size * 0.9995:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _basis(measured: bool) -> str:
    return "measured" if measured else "on paper"


def _line_style(colour: str, measured: bool) -> Style:
    return {"color": colour, "lw": 1.8 if measured else 1.4, "ls": "-" if measured else ON_PAPER}


def _roof_style(roof: Roof) -> Style:
    return _line_style(look_of(roof.precision).colour, roof.measured)


def _slope_style(bandwidth: Bandwidth) -> Style:
    return _line_style(SOFT, bandwidth.measured)


def _slope(axes: Axes, bandwidth: Bandwidth, top: float) -> None:
    """The line y = bandwidth · x, from where it enters the drawing to the highest roof."""
    speed = bandwidth.bytes_per_second
    first = max(axes.get_xlim()[0], axes.get_ylim()[0] / speed)
    last = min(axes.get_xlim()[1], top / speed)
    stroke(axes, [first, last], [first * speed, last * speed], _slope_style(bandwidth))
