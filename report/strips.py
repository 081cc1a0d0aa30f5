"""Draws one trial over time: its steps with what was cut, and what its devices did. No statistics here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report import svg
from report.charts import WIDTH

LABEL, HEIGHT, GAP = 14.0, 26.0, 8.0
RIGHT = WIDTH - 4
MOST_STEPS, MOST_VALUES = 90, 60


@dataclass(frozen=True, slots=True)
class Steps:
    """Seconds of each step, the first that counts, and where the level changed, in steps."""

    seconds: tuple[float, ...]
    steps_per_value: int
    first: int
    changes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Strip:
    """One quantity over time; null values leave a gap. `low` and `high` are its least and most."""

    name: str
    values: tuple[float | None, ...]
    low: str
    high: str
    floor: float
    ceiling: float


@dataclass(frozen=True, slots=True)
class Trial:
    """What is drawn of one trial; `times` belong to all strips alike, `windows` are where it trained."""

    steps: Steps
    said: str
    times: tuple[float, ...] = ()
    windows: tuple[tuple[float, float], ...] = ()
    strips: tuple[Strip, ...] = ()
    scales: tuple[tuple[int, float], ...] = ()
    """(step, loss scale) at each change."""


def draw(name: str, title: str, described: str, trial: Trial) -> str:
    """Strips under each other: step time over the steps, then the devices over the seconds."""
    parts = _steps(trial)
    y = LABEL + HEIGHT + GAP
    if len(trial.scales) > 1:
        parts += _scales(trial, y)
        y += LABEL + HEIGHT + GAP
    for strip in trial.strips:
        parts += _strip(strip, trial, y)
        y += LABEL + HEIGHT + GAP
    if trial.strips and trial.times:
        parts.append(
            svg.text(
                0, y + 4, f"over {trial.times[-1]:,.0f} s; it trained where the ground is shaded", kind="n"
            )
        )
        y += 10
    return svg.document(name, title, described, WIDTH, y, parts)


def _head(name: str, ends: str, y: float) -> list[str]:
    return [svg.text(0, y + 10, name, kind="n"), svg.text(RIGHT, y + 10, ends, kind="n", anchor="end")]


def _steps(trial: Trial) -> list[str]:
    steps = trial.steps
    parts = _head("step time", trial.said, 0)
    if not steps.seconds:
        return parts
    count = len(steps.seconds)
    across = svg.Scale(0, count * steps.steps_per_value, 0, RIGHT)
    ordered = sorted(steps.seconds)
    ceiling = min(ordered[-1], 2.0 * ordered[int(0.95 * (count - 1))]) or 1.0
    down = svg.Scale(0, ceiling, LABEL + HEIGHT, LABEL)
    if steps.first:
        parts.append(svg.band(0, across(steps.first), LABEL + HEIGHT / 2, HEIGHT, "cut"))
    low, high = [], []
    for start, stop in _buckets(count, MOST_STEPS):
        part = steps.seconds[start:stop]
        x = across((start + stop) / 2 * steps.steps_per_value)
        low.append((x, down(min(part))))
        high.append((x, down(max(part))))
    parts.append(svg.line(0, LABEL + HEIGHT, RIGHT, LABEL + HEIGHT, "grid"))
    parts.append(svg.trace([*high, *reversed(low)], "swing"))
    for change in steps.changes:
        parts.append(
            svg.line(across(change), LABEL - 2, across(change), LABEL + HEIGHT, "change", dash="2 2")
        )
    return parts


def _scales(trial: Trial, y: float) -> list[str]:
    """The loss scale in powers of two over the steps: it holds between its changes."""
    scales = [(step, scale) for step, scale in trial.scales if scale > 0]
    parts = _head("loss scale", f"{min(s for _, s in scales):,.0f} to {max(s for _, s in scales):,.0f}", y)
    values = [scale for _, scale in scales]
    last = max(len(trial.steps.seconds) * trial.steps.steps_per_value, scales[-1][0] + 1)
    across = svg.Scale(0, last, 0, RIGHT)
    down = svg.Scale(min(values) / 1.2, max(values) * 1.2, y + LABEL + HEIGHT, y + LABEL, log=True)
    points: list[tuple[float, float]] = []
    for place, (step, scale) in enumerate(scales[-200:]):
        if place:
            points.append((across(step), points[-1][1]))
        points.append((across(step), down(scale)))
    points.append((RIGHT, points[-1][1]))
    return [*parts, svg.trace(points, "trace")]


def _strip(strip: Strip, trial: Trial, y: float) -> list[str]:
    parts = _head(strip.name, f"{strip.low} to {strip.high}", y)
    across = svg.Scale(0, trial.times[-1] or 1.0, 0, RIGHT)
    for begin, end in trial.windows[:20]:
        parts.append(svg.band(across(begin), across(end), y + LABEL + HEIGHT / 2, HEIGHT, "window"))
    down = svg.Scale(strip.floor, strip.ceiling, y + LABEL + HEIGHT, y + LABEL)
    parts.append(svg.line(0, y + LABEL + HEIGHT, RIGHT, y + LABEL + HEIGHT, "grid"))
    for piece in _pieces(trial.times, strip.values):
        points = [(across(at), down(value)) for at, value in piece]
        if len(points) == 1:
            points.append((points[0][0] + 1, points[0][1]))
        parts.append(svg.trace(points, "trace"))
    return parts


def _pieces(times: Sequence[float], values: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """The stretches that are known, thinned to means of equal counts."""
    each = -(-len(values) // MOST_VALUES) or 1
    found: list[list[tuple[float, float]]] = [[]]
    for start in range(0, min(len(times), len(values)), each):
        known = [value for value in values[start : start + each] if value is not None]
        if not known:
            found.append([])
            continue
        inside = times[start : start + each]
        found[-1].append((sum(inside) / len(inside), sum(known) / len(known)))
    return [piece for piece in found if piece]


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    parts = min(count, most)
    return [(place * count // parts, (place + 1) * count // parts) for place in range(parts)]
