"""Draws lines over one horizontal axis: by epoch, time, batch or number of devices. No statistics here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from report import svg
from report.charts import LEGEND_WIDTH, LOOKS, WIDTH, empty, fit

LEFT, TOP, FOOT = 46.0, 10.0, 186.0
DIGIT = 7.0
"""Width of one, at most."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line through points; `behind` is a published one. `spread` holds each point's interval, if any."""

    label: str
    points: tuple[tuple[float, float], ...]
    look: str = "fp32-ieee"
    behind: bool = False
    dash: str | None = None
    card: str = ""
    spread: tuple[tuple[float, float] | None, ...] = ()
    dotted: bool = False
    """Every point is marked: between them nothing was measured."""


@dataclass(frozen=True, slots=True)
class Wall:
    """A place on the horizontal axis that one line does not pass, such as a batch that does not fit."""

    at: float
    said: str
    look: str
    card: str = ""


@dataclass(frozen=True, slots=True)
class Axes:
    """What stands across, whether values start at zero, and whether equal steps across double it."""

    across: str
    write: Callable[[float], str]
    zero: bool = False
    doubling: bool = False


def curves(
    name: str,
    title: str,
    described: str,
    lines: Sequence[Curve],
    axes: Axes,
    walls: Sequence[Wall] = (),
) -> str:
    """Lines over one horizontal axis, each named at its end; published ones dashed behind."""
    good = [curve for curve in map(_finite, lines) if curve.points]
    if not good:
        return empty(name, title, described)
    names = list(dict.fromkeys((c.label, c.look, c.behind, c.dash) for c in good))
    beside = len(names) <= 6 and all(len(label) <= 12 for label, *_ in names)
    right = WIDTH - (88.0 if beside else 10.0)
    xscale, yscale, parts = _axes(good, walls, axes, right)
    for wall in walls:
        parts.append(svg.series(_wall(wall, xscale(wall.at), right), wall.card, wall.look))
    for curve in sorted(good, key=lambda each: not each.behind):
        drawn = _curve(curve, [(xscale(x), yscale(y)) for x, y in curve.points])
        drawn += _spread(curve, xscale, yscale)
        parts.append(svg.series(drawn, curve.card, curve.look))
    if beside:
        parts += _end_labels(good, yscale, right)
        return svg.document(name, title, described, WIDTH, FOOT + 38, parts)
    parts += _legend(names, FOOT + 52)
    return svg.document(name, title, described, WIDTH, FOOT + 44 + 18 * len(names), parts)


def _axes(
    good: Sequence[Curve], walls: Sequence[Wall], axes: Axes, right: float
) -> tuple[svg.Scale, svg.Scale, list[str]]:
    xs = [x for curve in good for x, _ in curve.points] + [wall.at for wall in walls]
    ys = [y for curve in good for _, y in curve.points]
    ys += [end for curve in good for pair in curve.spread if pair for end in pair]
    if axes.doubling:
        xscale, xticks = svg.doubling_axis(xs, LEFT, right)
    else:
        xscale, xticks = svg.linear_axis(xs, LEFT, right, zero=True, most=5)
    yscale, yticks = svg.linear_axis(ys, FOOT, TOP, zero=axes.zero, most=5)
    parts = [svg.line(LEFT, yscale(tick), right, yscale(tick), "grid") for tick in yticks]
    parts += [svg.text(LEFT - 5, yscale(t) + 4, axes.write(t), kind="n", anchor="end") for t in yticks]
    for tick in xticks:
        said = f"{tick:,g}"
        over = xscale(tick) + DIGIT * len(said) / 2 > WIDTH
        parts.append(svg.text(xscale(tick), FOOT + 16, said, kind="n", anchor="end" if over else "middle"))
    parts.append(svg.text((LEFT + right) / 2, FOOT + 31, axes.across, kind="n", anchor="middle"))
    return xscale, yscale, parts


def _wall(wall: Wall, x: float, right: float) -> list[str]:
    tone, _ = LOOKS.get(wall.look, ("soft", "circle"))
    near = x > (LEFT + right) / 2
    return [
        svg.line(x, TOP, x, FOOT, f"{tone} whisker", dash="5 3"),
        svg.text(x + (-5 if near else 5), TOP + 10, wall.said, kind="n", anchor="end" if near else "start"),
    ]


def _spread(curve: Curve, xscale: svg.Scale, yscale: svg.Scale) -> list[str]:
    tone, shape = LOOKS.get(curve.look, ("soft", "circle"))
    parts = []
    for (x, _), pair in zip(curve.points, curve.spread, strict=False):
        if pair:
            parts.append(svg.line(xscale(x), yscale(pair[0]), xscale(x), yscale(pair[1]), f"{tone} whisker"))
    if curve.dotted:
        parts += [svg.marker(shape, xscale(x), yscale(y), 3.4, tone) for x, y in curve.points[:-1]]
    return parts


def _finite(curve: Curve) -> Curve:
    kept = tuple(point for point in curve.points if math.isfinite(point[0]) and math.isfinite(point[1]))
    return curve if len(kept) == len(curve.points) else replace(curve, points=kept, spread=())


def _curve(curve: Curve, at: Sequence[tuple[float, float]]) -> list[str]:
    tone, shape = LOOKS.get(curve.look, ("soft", "circle"))
    if curve.behind:
        line = svg.trace(at, f"{tone} curve behind", dash="2 3")
        return [line, svg.marker(shape, *at[-1], 3.4, f"{tone} hollow")]
    return [svg.trace(at, f"{tone} curve", dash=curve.dash), svg.marker(shape, *at[-1], 3.4, tone)]


def _legend(names: Sequence[tuple[str, str, bool, str | None]], top: float) -> list[str]:
    parts = []
    for place, (label, look, behind, dash) in enumerate(names):
        y = top + 18 * place
        sample = Curve(label, (), look, behind, dash)
        parts += _curve(sample, [(8.0, y - 4), (32.0, y - 4)])
        parts.append(svg.text(44, y, fit(label, LEGEND_WIDTH), kind="n"))
    return parts


def _end_labels(lines: Sequence[Curve], yscale: svg.Scale, right: float) -> list[str]:
    """One label per name at the mean height of its lines' ends, moved apart where they would touch."""
    ends: dict[str, list[float]] = {}
    for curve in lines:
        ends.setdefault(curve.label, []).append(yscale(curve.points[-1][1]))
    placed: list[tuple[str, float]] = []
    for label, heights in sorted(ends.items(), key=lambda item: sum(item[1]) / len(item[1])):
        y = sum(heights) / len(heights) + 4
        placed.append((label, max(y, placed[-1][1] + 13) if placed else y))
    return [svg.text(right + 8, y, label, kind="n") for label, y in placed]
