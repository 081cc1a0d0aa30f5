"""Draws operations per second over operations per byte, under the roofs of one device. No statistics here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from report import svg
from report.charts import LOOKS, fit

WIDTH, HEIGHT = 340.0, 250.0
LEFT, RIGHT, TOP = 76.0, 322.0, 14.0
FOOT, ROW = 54.0, 17.0
ACROSS = "operations a counted byte"
PREFIXES = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


@dataclass(frozen=True, slots=True)
class Point:
    """One work. `intensity` is operations per counted byte, nothing fused or cached: the least it can be."""

    label: str
    look: str
    """The precision whose colour and shape it takes."""
    intensity: float
    flops_per_second: float


@dataclass(frozen=True, slots=True)
class Roof:
    """The fastest product in one type, measured or on paper, FLOP/s."""

    label: str
    look: str
    flops_per_second: float
    measured: bool


@dataclass(frozen=True, slots=True)
class Slope:
    """A memory's bandwidth, measured or on paper, bytes/s."""

    bytes_per_second: float
    measured: bool


def drawing(
    name: str,
    title: str,
    described: str,
    points: Sequence[Point],
    roofs: Sequence[Roof],
    slopes: Sequence[Slope],
) -> str:
    """Logarithmic axes in whole decades; what was measured is drawn solid, what is on paper dashed."""
    across, up = _scales(points, roofs, slopes)
    parts = [*_grid(across, up)]
    parts.append(svg.text((LEFT + RIGHT) / 2, HEIGHT + 30, ACROSS, kind="n", anchor="middle"))
    top = max((roof.flops_per_second for roof in roofs), default=up.high)
    for slope in slopes:
        parts.append(_slope(slope, top, across, up))
    for roof in roofs:
        parts += _roof(roof, slopes, across, up)
    for number, point in enumerate(points, 1):
        tone, shape = LOOKS.get(point.look, ("soft", "circle"))
        x, y = across(point.intensity), up(point.flops_per_second)
        parts.append(svg.marker(shape, x, y, 4.4, tone))
        parts.append(svg.text(x + 8, y + 4, str(number), kind="n", weight="600"))
    foot = HEIGHT + FOOT
    for number, point in enumerate(points, 1):
        tone, shape = LOOKS.get(point.look, ("soft", "circle"))
        y = foot + ROW * (number - 1)
        parts.append(svg.marker(shape, 9, y - 4, 4.4, tone))
        parts.append(svg.text(20, y, fit(f"{number}  {point.label}, {point.look}", 48), kind="n"))
    return svg.document(name, title, described, WIDTH, foot + ROW * len(points), parts)


def rate(value: float, unit: str) -> str:
    """'100 GFLOP/s': a rate with its prefix."""
    for size, prefix in PREFIXES:
        if value >= size * 0.9995:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def _scales(
    points: Sequence[Point], roofs: Sequence[Roof], slopes: Sequence[Slope]
) -> tuple[svg.Scale, svg.Scale]:
    """Decades that hold all points, all roofs, and where each roof meets each slope."""
    ridges = [roof.flops_per_second / slope.bytes_per_second for roof in roofs for slope in slopes]
    across = [point.intensity for point in points] + ridges
    up = [point.flops_per_second for point in points] + [roof.flops_per_second for roof in roofs]
    return _decades(across, LEFT, RIGHT), _decades(up, HEIGHT, TOP)


def _decades(values: Sequence[float], start: float, end: float) -> svg.Scale:
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return svg.Scale(10.0**low, 10.0 ** max(high, low + 1), start, end, log=True)


def _ticks(scale: svg.Scale) -> list[float]:
    low, high = round(math.log10(scale.low)), round(math.log10(scale.high))
    every = max(1, math.ceil((high - low) / 6))
    return [10.0**power for power in range(low, high + 1, every)]


def _grid(across: svg.Scale, up: svg.Scale) -> list[str]:
    parts = []
    for tick in _ticks(across):
        parts.append(svg.line(across(tick), TOP, across(tick), HEIGHT, "grid"))
        parts.append(svg.text(across(tick), HEIGHT + 14, f"{tick:g}", kind="n", anchor="middle"))
    for tick in _ticks(up):
        parts.append(svg.line(LEFT, up(tick), RIGHT, up(tick), "grid"))
        parts.append(svg.text(LEFT - 5, up(tick) + 4, rate(tick, "FLOP/s"), kind="n", anchor="end"))
    return parts


def _slope(slope: Slope, top: float, across: svg.Scale, up: svg.Scale) -> str:
    """The line y = bandwidth · x, from where it enters the drawing to the highest roof."""
    first = max(across.low, up.low / slope.bytes_per_second)
    last = min(across.high, top / slope.bytes_per_second)
    x1, x2 = across(first), across(last)
    y1, y2 = up(first * slope.bytes_per_second), up(last * slope.bytes_per_second)
    return svg.line(x1, y1, x2, y2, "one", None if slope.measured else "4 3")


def _roof(roof: Roof, slopes: Sequence[Slope], across: svg.Scale, up: svg.Scale) -> list[str]:
    """A level line from the steepest slope of its kind to the right edge, and its name above it."""
    alike = [slope.bytes_per_second for slope in slopes if slope.measured == roof.measured]
    begin = max(across.low, roof.flops_per_second / max(alike)) if alike else across.low
    tone, _ = LOOKS.get(roof.look, ("soft", "circle"))
    y = up(roof.flops_per_second)
    return [
        svg.line(across(begin), y, RIGHT, y, f"{tone} curve", None if roof.measured else "4 3"),
        svg.text(RIGHT, y - 4, fit(roof.label, 30), kind="n", anchor="end"),
    ]
