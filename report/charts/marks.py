"""A bar, the range at its end, and the key: the marks that several pictures share."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from report.charts.sheet import KEY_LINE, SPACE, Sheet
from report.charts.style import AXIS, HATCH, INK, NOTE, PAPER, RULE, cut, system_colour, width_of

Look = Literal["own", "other", "published", "unranked", "failed"]
"""Looks of a bar: what was measured here or elsewhere and ranked, what was published, what was measured and
cannot be ranked, and what failed, at once or so far."""

T = TypeVar("T")

SWATCH = (22.0, 12.0)
"""Width and height of a sample in a key, px."""
BETWEEN = 16.0
"""Between two entries of a key, px."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What a look means; it is drawn where a bar has the look and the colour's slot."""

    text: str
    look: Look
    slot: int = 0


def draw_bar(sheet: Sheet, look: Look, slot: int, box: tuple[float, float, float, float]) -> None:
    """A bar of left, top, width and height, px; it is read in grey by its hatch or its outline."""
    colour = system_colour(slot)
    if look == "published":
        sheet.rectangle(box, PAPER, edge=HATCH, hatch="///", hatch_linewidth=1.7)
    elif look in ("unranked", "failed"):
        sheet.rectangle(box, colour, alpha=0.2, edge=colour, lw=1.5)
    else:
        sheet.rectangle(box, colour)


def draw_range(sheet: Sheet, low: float, high: float, y: float, cap: float, *, closed: bool = True) -> None:
    """A whisker between two places, px, with caps of `cap` px on either side; its high end may be open."""
    if low < high:
        sheet.line([(low, y), (high, y)], {"color": PAPER, "lw": 4.0, "zorder": 2.5})
    sheet.line([(low, y), (high, y)], {"color": INK, "lw": 1.5, "zorder": 3})
    uprights(sheet, (low, high) if closed else (low,), [(y - cap, y + cap)], INK, lw=1.5, zorder=3)


def key_height(entries: Sequence[KeyEntry], width: float) -> float:
    """What a key takes in a picture of this width, px."""
    return KEY_LINE * len(key_rows(entries, width, _entry_width, BETWEEN)) + (4.0 if entries else 0.0)


def draw_key(sheet: Sheet, entries: Sequence[KeyEntry]) -> None:
    """The key, in the first rows of a picture."""
    for place, row in enumerate(key_rows(entries, sheet.width, _entry_width, BETWEEN)):
        x, y = 0.0, KEY_LINE * place + 12.0
        for entry in row:
            draw_bar(sheet, entry.look, entry.slot, (x, y - 10.0, *SWATCH))
            room = sheet.width - x - SWATCH[0] - SPACE
            sheet.text(x + SWATCH[0] + SPACE, y, cut(entry.text, room, NOTE))
            x += _entry_width(entry) + BETWEEN


def rule(sheet: Sheet, y: float, *, firm: bool = False) -> None:
    """A line from edge to edge."""
    sheet.line([(0.0, y), (sheet.width, y)], {"color": AXIS if firm else RULE, "lw": 1.0, "zorder": 0.5})


def uprights(
    sheet: Sheet, places: Iterable[float], spans: Iterable[tuple[float, float]], colour: str, **more: Any
) -> None:
    """Upright lines at places across, each over the same spans from top to bottom."""
    spans = tuple(spans)
    points = [
        point for x in places for top, low in spans for point in ((x, top), (x, low), (math.nan, math.nan))
    ]
    if points:
        sheet.line(points, {"color": colour, "lw": 1.0, "zorder": 0.6, **more})


def key_rows(
    entries: Iterable[T], width: float, width_of_one: Callable[[T], float], between: float
) -> list[list[T]]:
    """The entries of a key in as many rows of this width as they need, px."""
    rows: list[list[T]] = []
    used = width + 1.0
    for entry in entries:
        if used + width_of_one(entry) > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += width_of_one(entry) + between
    return rows


def _entry_width(entry: KeyEntry) -> float:
    return SWATCH[0] + SPACE + width_of(entry.text, NOTE)
