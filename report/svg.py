"""SVG primitives: escaped text, scales and round ticks. No module below knows what it draws."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

LIGHT = {
    "ink": "#1b1f24",
    "soft": "#57606a",
    "rule": "#d5dae0",
    "paper": "#ffffff",
    "full": "#0b5394",
    "tf32": "#007a5e",
    "mixed": "#b03a00",
    "pure": "#7a3b8f",
    "wait": "#a1481a",
    "work": "#0b5394",
    "rest": "#7d8997",
}
DARK = {
    "ink": "#e8eaed",
    "soft": "#a4adb8",
    "rule": "#3a424c",
    "paper": "#14181d",
    "full": "#79b8ff",
    "tf32": "#4fd1a5",
    "mixed": "#ffab70",
    "pure": "#d2a8ff",
    "wait": "#e8935a",
    "work": "#4f8fd6",
    "rest": "#6b7683",
}
"""Contrast with the paper is at least 4.5 in both, of areas 3; shapes and texts repeat what colours say."""

AREAS = ("wait", "work", "rest")


@dataclass(frozen=True, slots=True)
class Scale:
    """Maps values onto pixels; `log` for ratios, where twice and half are equally far from 1."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        if self.log:
            low, high, value = math.log(self.low), math.log(self.high), math.log(max(value, 1e-12))
        else:
            low, high = self.low, self.high
        share = (value - low) / (high - low) if high > low else 0.5
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 1)

    def holds(self, value: float) -> bool:
        """Whether a value lies on the axis."""
        return self.low <= value <= self.high


def round_step(span: float, most: int) -> float:
    """The smallest of 1, 2, 2.5, 5 × 10ⁿ that divides a span into at most `most` parts."""
    raw = span / most
    power: float = 10.0 ** math.floor(math.log10(raw))
    return next(power * step for step in (1.0, 2.0, 2.5, 5.0, 10.0) if power * step >= raw * 0.999999)


def linear_axis(
    values: Sequence[float], start: float, end: float, *, zero: bool, most: int = 4
) -> tuple[Scale, tuple[float, ...]]:
    """A scale over the values with round ends, from zero where asked, and its ticks."""
    low, high = (0.0 if zero else min(values)), max(values)
    if high <= low:
        low, high = (0.0, high * 1.1) if high > 0 else (low - 1.0, low + 1.0)
    step = round_step(high - low, most)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    ticks = tuple(round(index * step, 10) for index in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], start, end), ticks


def doubling_axis(values: Sequence[float], start: float, end: float) -> tuple[Scale, tuple[float, ...]]:
    """A logarithmic scale over positive values, each of them a tick as far as their labels do not touch."""
    low, high = min(values), max(values)
    scale = Scale(low / 1.12, high * 1.12, start, end, log=True)
    kept: list[float] = []
    for value in sorted(set(values)):
        if not kept or scale(value) - scale(kept[-1]) >= TICK_SPACE:
            kept.append(value)
    return scale, tuple(kept)


RATIO_TICKS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
FINE_RATIO_TICKS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)


FURTHEST = 100.0
"""A ratio's interval can reach to nothing and to infinity; its figures stand in the table."""


def ratio_axis(values: Sequence[float], start: float, end: float) -> tuple[Scale, tuple[float, ...]]:
    """A logarithmic scale that always shows 1, and its ticks; what lies beyond FURTHEST ends at its edge."""
    low, high = min(*values, 1.0, 1.0) / 1.03, max(*values, 1.0, 1.0) * 1.03
    low, high = max(min(low, 0.95), 1 / FURTHEST), min(max(high, 1.05), FURTHEST)
    scale = Scale(low, high, start, end, log=True)
    fine = tuple(tick for tick in FINE_RATIO_TICKS if low <= tick <= high)
    coarse = tuple(tick for tick in RATIO_TICKS if low <= tick <= high)
    return scale, _spaced(fine if high / low < 3.2 else coarse, scale)


TICK_SPACE = 36.0


def _spaced(ticks: Sequence[float], scale: Scale) -> tuple[float, ...]:
    """The ticks whose labels do not touch; 1 always stays."""
    kept = [1.0]
    for tick in sorted(ticks, key=lambda value: abs(scale(value) - scale(1.0)), reverse=True):
        if all(abs(scale(tick) - scale(other)) >= TICK_SPACE for other in kept):
            kept.append(tick)
    return tuple(sorted(kept))


def text(
    x: float, y: float, said: str, *, kind: str = "t", anchor: str = "start", weight: str | None = None
) -> str:
    """One line of escaped text; `kind` is a class of the style sheet."""
    heavy = f' font-weight="{weight}"' if weight else ""
    return f'<text class="{kind}" x="{x:g}" y="{y:g}" text-anchor="{anchor}"{heavy}>{escape(said)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str, dash: str | None = None) -> str:
    """A straight line."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line class="{kind}" x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"{dashed}/>'


def marker(shape: str, x: float, y: float, size: float, kind: str) -> str:
    """A circle, square, diamond, triangle or cross around a point."""
    if shape == "circle":
        return f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="{size:g}"/>'
    s = size
    points = {
        "square": ((-s, -s), (s, -s), (s, s), (-s, s)),
        "diamond": ((0, -1.35 * s), (1.35 * s, 0), (0, 1.35 * s), (-1.35 * s, 0)),
        "triangle": ((0, -1.2 * s), (1.15 * s, s), (-1.15 * s, s)),
        "cross": ((-s, -s), (s, s), (0, 0), (-s, s), (s, -s), (0, 0)),
    }[shape]
    at = " ".join(f"{x + dx:g},{y + dy:g}" for dx, dy in points)
    return f'<polygon class="{kind}" points="{at}"/>'


def path(points: Sequence[tuple[float, float]], kind: str, dash: str | None = None) -> str:
    """Straight pieces through the points."""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    at = " ".join(f"{x:g},{y:g}" for x, y in points)
    return f'<polyline class="{kind}" points="{at}"{dashed}/>'


def band(x1: float, x2: float, y: float, height: float, kind: str) -> str:
    """A filled stretch of a row, `y` in its middle."""
    left, wide = min(x1, x2), abs(x2 - x1)
    return f'<rect class="{kind}" x="{left:g}" y="{y - height / 2:g}" width="{wide:g}" height="{height:g}"/>'


def trace(points: Sequence[tuple[float, float]], kind: str, dash: str | None = None) -> str:
    """Straight pieces through many points, in steps of a tenth: short enough to draw every trial."""
    said, x, y, level = "", 0, 0, 0
    for place, (across, down) in enumerate(points):
        to = (round(across * 10), round(down * 10))
        dx, dy = to[0] - x, to[1] - y
        x, y = to
        if place and dy == 0:
            level += dx
            continue
        said += f"h{_tenths(level)}" if level else ""
        level, down_by = 0, _tenths(dy)
        said += f"{'l' if place else 'M'}{_tenths(dx)}{'' if down_by.startswith('-') else ' '}{down_by}"
    said += f"h{_tenths(level)}" if level else ""
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<path class="{kind}" d="{said}"{dashed}/>'


def _tenths(value: int) -> str:
    """'.3', '-12', '0'"""
    said = f"{value / 10:g}"
    return said.replace("0.", ".", 1) if abs(value) < 10 and value else said


def series(parts: Sequence[str], card: str, precision: str, *, step: float = 0.0) -> str:
    """One line of a chart as a group that a reader can hide; rows close up by their `step` behind it."""
    row = f' data-step="{step:g}"' if step else ""
    of = f"data-card={quoteattr(card)} data-precision={quoteattr(precision)}"
    return f'<g class="series" {of}{row}>{"".join(parts)}</g>'


def document(name: str, title: str, described: str, width: float, height: float, parts: Sequence[str]) -> str:
    """A whole drawing, with the title and description that a screen reader says."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" id={quoteattr(name)} role="img" '
        f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}" '
        f'aria-labelledby="{name}-t {name}-d">'
        f'<title id="{name}-t">{escape(title)}</title><desc id="{name}-d">{escape(described)}</desc>'
        f"{''.join(parts)}</svg>"
    )


def style(colours: dict[str, str] | None) -> str:
    """The style rules of all drawings: by the page's variables, or in fixed colours for a file of its own."""

    def colour(name: str) -> str:
        return colours[name] if colours else f"var(--{name})"

    tones = "".join(
        f".chart .{tone}{{fill:{colour(tone)};stroke:{colour(tone)}}}"
        f".chart .{tone}.hollow{{fill:{colour('paper')}}}"
        f".chart .{tone}.run{{fill:none;stroke-opacity:.75;stroke-width:1.1}}"
        f".chart .{tone}.curve{{fill:none;stroke-width:1.8}}"
        f".chart .{tone}.curve.behind{{stroke-width:1.2;stroke-opacity:.65}}"
        f".chart .{tone}.whisker{{stroke-width:2}}"
        f".chart .{tone}.reach{{stroke-width:5;stroke-opacity:.22}}"
        for tone in ("full", "tf32", "mixed", "pure", "soft")
    )
    return (
        f".chart{{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}}"
        f".chart text{{paint-order:stroke;stroke:{colour('paper')};stroke-width:3px;stroke-linejoin:round}}"
        f".chart .t{{fill:{colour('ink')}}}.chart .n{{fill:{colour('soft')};font-size:11px}}"
        f".chart .grid{{stroke:{colour('rule')};stroke-width:1}}"
        f".chart .one{{stroke:{colour('ink')};stroke-width:1.2}}"
        f".chart .wide{{fill:{colour('soft')};fill-opacity:.2}}"
        f".chart .window{{fill:{colour('full')};fill-opacity:.07}}"
        f".chart .cut{{fill:{colour('soft')};fill-opacity:.18}}"
        f".chart .change{{stroke:{colour('mixed')};stroke-width:1.4}}"
        f".chart .trace{{fill:none;stroke:{colour('full')};stroke-width:1.3;stroke-linejoin:round}}"
        f".chart .swing{{fill:{colour('full')};fill-opacity:.3;stroke:{colour('full')};stroke-width:.8}}"
        f".chart .inside{{font-size:11px;font-weight:600;fill:{colour('paper')};stroke:none}}"
        f"{''.join(f'.chart .{area}{{fill:{colour(area)}}}' for area in AREAS)}"
        f".chart polygon,.chart circle{{stroke-width:1.6}}{tones}"
    )


def standalone(drawing: str) -> str:
    """A drawing as a file of its own: light colours and paper, since a code host shows it on any ground."""
    head, rest = drawing.split(">", 1)
    paper = f'<rect width="100%" height="100%" fill="{LIGHT["paper"]}"/>'
    return f"{head}><style>{style(LIGHT)}</style>{paper}{rest}\n"
