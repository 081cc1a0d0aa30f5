"""Draws what it is given: dots with whiskers in rows, and curves. No statistics here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from report import svg

WIDTH = 340.0
STRIP_END = WIDTH - 88.0
ROW, SLIM_ROW = 68.0, 44.0
LABEL_WIDTH, NOTE_WIDTH, LEGEND_WIDTH = 40.0, 48.0, 42.0
"""What fits even in a wide font, in average letters."""

Tone = Literal["full", "tf32", "mixed", "pure", "soft"]
Shape = Literal["circle", "square", "diamond", "triangle"]

LOOKS: dict[str, tuple[Tone, Shape]] = {
    "fp32-ieee": ("full", "circle"),
    "fp32-default": ("full", "circle"),
    "fp32-tf32": ("tf32", "triangle"),
    "amp-fp16": ("mixed", "square"),
    "amp-bf16": ("mixed", "square"),
    "fp16-master": ("mixed", "diamond"),
    "pure-fp16": ("pure", "diamond"),
    "pure-bf16": ("pure", "square"),
}
"""Colour and shape of each precision: either alone tells them apart."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One line of a dot chart. `value` is drawn large, `runs` small below it, invalid ones as `crosses`.

    Texts that would not fit the width are cut; the table beside the chart has them whole.
    """

    label: str
    note: str
    said: str
    value: float | None
    low: float | None = None
    high: float | None = None
    runs: tuple[float, ...] = ()
    crosses: tuple[float, ...] = ()
    look: str = "fp32-ieee"
    hollow: bool = False
    doubtful: bool = False
    """Drawn with a dashed whisker: the window is too short, or the interval is not known."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One line through points; `behind` is a published one."""

    label: str
    points: tuple[tuple[float, float], ...]
    look: str = "fp32-ieee"
    behind: bool = False
    dash: str | None = None


def dots(
    name: str,
    title: str,
    described: str,
    marks: Sequence[Mark],
    *,
    write: Callable[[float], str],
    ratio: bool = False,
) -> str:
    """Rows of dots over one axis: from zero, or logarithmic around 1 for ratios."""
    values = [value for mark in marks for value in _extent(mark)]
    if not values:
        return _empty(name, title, described)
    axis = svg.ratio_axis if ratio else _from_zero
    scale, ticks = axis(values, 8.0, STRIP_END)
    parts = []
    for index, mark in enumerate(marks):
        parts += _row(mark, scale, ticks, ROW * index, 1.0 if ratio else 0.0)
    foot = ROW * len(marks)
    parts += _tick_labels(scale, ticks, foot + 8, write)
    return svg.document(name, title, described, WIDTH, foot + 14, parts)


def grouped(
    name: str,
    title: str,
    described: str,
    rows: Sequence[tuple[str, Sequence[Mark]]],
    *,
    span: tuple[float, float],
    write: Callable[[float], str],
) -> str:
    """Several marks to a row on one ratio axis over `span`, which other panels may share; a legend below."""
    scale, ticks = svg.ratio_axis(span, 92.0, WIDTH - 12.0)
    parts = [svg.line(scale(tick), 4, scale(tick), 8 + SLIM_ROW * len(rows), "grid") for tick in ticks]
    parts.append(svg.line(scale(1.0), 4, scale(1.0), 8 + SLIM_ROW * len(rows), "one"))
    for index, (label, marks) in enumerate(rows):
        top = 8 + SLIM_ROW * index
        parts.append(svg.text(0, top + SLIM_ROW / 2 + 4, _fit(label, 12), weight="600"))
        for lane, mark in enumerate(marks):
            y = top + (lane + 1) * SLIM_ROW / (len(marks) + 1)
            parts += _mark(mark, scale, y)
    foot = 8 + SLIM_ROW * len(rows)
    parts += _tick_labels(scale, ticks, foot + 16, write)
    looks = list(dict.fromkeys(mark.look for _, marks in rows for mark in marks))
    for place, look in enumerate(looks):
        x, y = 8 + 166 * (place % 2), foot + 40 + 18 * (place // 2)
        tone, shape = LOOKS.get(look, ("soft", "circle"))
        parts += [svg.marker(shape, x, y - 4, 4.6, tone), svg.text(x + 12, y, look, kind="n")]
    return svg.document(name, title, described, WIDTH, foot + 34 + 18 * -(-len(looks) // 2), parts)


def _mark(mark: Mark, scale: svg.Scale, y: float) -> list[str]:
    tone, shape = LOOKS.get(mark.look, ("soft", "circle"))
    parts = []
    if mark.low is not None and mark.high is not None:
        parts += _whisker(scale(mark.low), scale(mark.high), y, f"{tone} whisker", mark.doubtful)
    if mark.value is not None:
        parts.append(svg.marker(shape, scale(mark.value), y, 4.0, f"{tone} hollow" if mark.hollow else tone))
    return parts


def _from_zero(values: Sequence[float], start: float, end: float) -> tuple[svg.Scale, tuple[float, ...]]:
    return svg.linear_axis(values, start, end, zero=True)


def _extent(mark: Mark) -> list[float]:
    given = [mark.value, mark.low, mark.high, *mark.runs, *mark.crosses]
    return [value for value in given if value is not None and math.isfinite(value)]


def _tick_labels(
    scale: svg.Scale, ticks: Sequence[float], y: float, write: Callable[[float], str]
) -> list[str]:
    parts = []
    for tick in ticks:
        x = scale(tick)
        anchor = "start" if x < 20 else "middle"
        parts.append(svg.text(0 if anchor == "start" else x, y, write(tick), kind="n", anchor=anchor))
    return parts


def _row(mark: Mark, scale: svg.Scale, ticks: Sequence[float], top: float, origin: float) -> list[str]:
    tone, shape = LOOKS.get(mark.look, ("soft", "circle"))
    y, lane = top + 42, top + 51
    parts = [
        svg.text(0, top + 12, _fit(mark.label, LABEL_WIDTH), weight="600"),
        svg.text(0, top + 27, _fit(mark.note, NOTE_WIDTH), kind="n"),
        svg.text(WIDTH, y + 4, mark.said, anchor="end", weight="600"),
    ]
    if mark.value is None and not mark.crosses:
        return parts
    parts.append(svg.line(scale.start, y, scale.end, y, "grid"))
    parts += [svg.line(scale(tick), y - 8, scale(tick), lane + 3, "grid") for tick in ticks]
    parts.append(svg.line(scale(origin), y - 8, scale(origin), lane + 3, "one"))
    if mark.value is not None and not mark.hollow:
        parts.append(svg.line(scale(origin), y, scale(mark.value), y, f"{tone} reach"))
    parts += _mark(mark, scale, y)
    parts += [svg.marker(shape, scale(run), lane, 2.4, f"{tone} run") for run in mark.runs]
    return parts + [svg.marker("cross", scale(run), lane, 3, f"{tone} run") for run in mark.crosses]


def _fit(said: str, width: float) -> str:
    """As much of a text as fits; capitals and what is not Latin count for more than a letter."""
    used = 0.0
    for place, character in enumerate(said):
        used += (
            1.0 if character.islower() or character in " .,·-1" else 1.2 if ord(character) < 0x250 else 2.0
        )
        if used > width * 1.1:
            return said[:place].rstrip() + "…"
    return said


def _whisker(low: float, high: float, y: float, kind: str, doubtful: bool) -> list[str]:
    return [
        svg.line(low, y, high, y, kind, dash="3 3" if doubtful else None),
        svg.line(low, y - 4, low, y + 4, kind),
        svg.line(high, y - 4, high, y + 4, kind),
    ]


def _empty(name: str, title: str, described: str) -> str:
    return svg.document(name, title, described, WIDTH, 30, [svg.text(0, 18, "nothing to draw", kind="n")])


def curves(
    name: str,
    title: str,
    described: str,
    lines: Sequence[Curve],
    *,
    across: str,
    write: Callable[[float], str],
) -> str:
    """Lines over one horizontal axis, each named at its end; published ones dashed behind."""
    good = [_finite(curve) for curve in lines]
    good = [curve for curve in good if curve.points]
    if not good:
        return _empty(name, title, described)
    names = list(dict.fromkeys((c.label, c.look, c.behind, c.dash) for c in good))
    beside = len(names) <= 6 and all(len(label) <= 12 for label, *_ in names)
    left, right, top, foot = 40.0, WIDTH - (88.0 if beside else 8.0), 10.0, 186.0
    xs = [x for curve in good for x, _ in curve.points]
    ys = [y for curve in good for _, y in curve.points]
    xscale, xticks = svg.linear_axis(xs, left, right, zero=True, most=5)
    yscale, yticks = svg.linear_axis(ys, foot, top, zero=False, most=5)
    parts = [svg.line(left, yscale(tick), right, yscale(tick), "grid") for tick in yticks]
    parts += [svg.text(left - 5, yscale(t) + 4, write(t), kind="n", anchor="end") for t in yticks]
    parts += [svg.text(xscale(t), foot + 16, f"{t:g}", kind="n", anchor="middle") for t in xticks]
    parts.append(svg.text((left + right) / 2, foot + 31, across, kind="n", anchor="middle"))
    for curve in sorted(good, key=lambda each: not each.behind):
        parts += _curve(curve, [(xscale(x), yscale(y)) for x, y in curve.points])
    if beside:
        parts += _end_labels(good, yscale, right)
        return svg.document(name, title, described, WIDTH, foot + 38, parts)
    parts += _legend(names, foot + 52)
    return svg.document(name, title, described, WIDTH, foot + 44 + 18 * len(names), parts)


def _finite(curve: Curve) -> Curve:
    return replace(curve, points=tuple(point for point in curve.points if math.isfinite(point[1])))


def _curve(curve: Curve, at: Sequence[tuple[float, float]]) -> list[str]:
    tone, shape = LOOKS.get(curve.look, ("soft", "circle"))
    if curve.behind:
        line = svg.path(at, f"{tone} curve behind", dash="2 3")
        return [line, svg.marker(shape, *at[-1], 3.4, f"{tone} hollow")]
    return [svg.path(at, f"{tone} curve", dash=curve.dash), svg.marker(shape, *at[-1], 3.4, tone)]


def _legend(names: Sequence[tuple[str, str, bool, str | None]], top: float) -> list[str]:
    parts = []
    for place, (label, look, behind, dash) in enumerate(names):
        y = top + 18 * place
        sample = Curve(label, (), look, behind, dash)
        parts += _curve(sample, [(8.0, y - 4), (32.0, y - 4)])
        parts.append(svg.text(44, y, _fit(label, LEGEND_WIDTH), kind="n"))
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
