"""Draws what it is given: dots with whiskers in rows. No statistics here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
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
    card: str = ""
    wide: tuple[float, float] | None = None
    """Where other units of the card may lie: a pale band behind the whisker."""


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
        return empty(name, title, described)
    axis = svg.ratio_axis if ratio else _from_zero
    scale, ticks = axis(values, 8.0, STRIP_END)
    parts = []
    for index, mark in enumerate(marks):
        drawn = _row(mark, scale, ticks, ROW * index, 1.0 if ratio else 0.0)
        parts.append(svg.series(drawn, mark.card, mark.look, step=ROW))
    foot = ROW * len(marks)
    parts.append(f'<g class="foot">{"".join(_tick_labels(scale, ticks, foot + 8, write))}</g>')
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
        parts.append(svg.text(0, top + SLIM_ROW / 2 + 4, fit(label, 12), weight="600"))
        for lane, mark in enumerate(marks):
            y = top + (lane + 1) * SLIM_ROW / (len(marks) + 1)
            parts.append(svg.series(_mark(mark, scale, y), mark.card, mark.look))
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
    if mark.wide is not None:
        parts.append(svg.band(scale(mark.wide[0]), scale(mark.wide[1]), y, 15, "wide"))
    if mark.low is not None and mark.high is not None:
        parts += _whisker(scale(mark.low), scale(mark.high), y, f"{tone} whisker", mark.doubtful)
    if mark.value is not None:
        parts.append(svg.marker(shape, scale(mark.value), y, 4.0, f"{tone} hollow" if mark.hollow else tone))
    return parts


def _from_zero(values: Sequence[float], start: float, end: float) -> tuple[svg.Scale, tuple[float, ...]]:
    return svg.linear_axis(values, start, end, zero=True)


def _extent(mark: Mark) -> list[float]:
    given = [mark.value, mark.low, mark.high, *mark.runs, *mark.crosses, *(mark.wide or ())]
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
        svg.text(0, top + 12, fit(mark.label, LABEL_WIDTH), weight="600"),
        svg.text(0, top + 27, fit(mark.note, NOTE_WIDTH), kind="n"),
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


def fit(said: str, width: float) -> str:
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


def empty(name: str, title: str, described: str) -> str:
    """A drawing of nothing, which says so."""
    return svg.document(name, title, described, WIDTH, 30, [svg.text(0, 18, "nothing to draw", kind="n")])
