"""The looks of what is drawn, the range at a value, and the key: what rows and curves share."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from report.charts.sheet import KEY_LINE, SPACE, Sheet
from report.charts.style import AXIS, HATCH, INK, NOTE, PAPER, RULE, cut_text, system_colour, width_of

Look = Literal["measured", "projected", "published", "failed", "band"]
"""What was measured, what is projected or expected, what was published, what failed at once or so far, and
where others lie. Each is read in grey by its fill, its hatch or its outline."""

Box = tuple[float, float, float, float]
"""Left, top, width and height, px."""

SWATCH = (22.0, 12.0)
"""Width and height of a sample in a key, px."""
BETWEEN = 16.0
"""Between two entries of a key, px."""


@dataclass(frozen=True, slots=True)
class KeyEntry:
    """What a look means; it is drawn where something has the look and the colour's slot."""

    text: str
    look: Look
    slot: int = 0

    @property
    def width(self) -> float:
        """With its sample, px."""
        return SWATCH[0] + SPACE + width_of(self.text, NOTE)


def draw_box(sheet: Sheet, look: Look, slot: int, box: Box) -> None:
    """A filled box in one of the looks."""
    colour = system_colour(slot)
    if look == "published":
        sheet.rectangle(box, PAPER, edge=HATCH, hatch="///", hatch_linewidth=1.7)
    elif look == "band":
        sheet.rectangle(box, HATCH, alpha=0.3)
    elif look == "measured":
        sheet.rectangle(box, colour)
    else:
        sheet.rectangle(box, colour, alpha=0.2, edge=colour, lw=1.5)


def draw_range(sheet: Sheet, low: float, high: float, y: float, cap: float, *, closed: bool = True) -> None:
    """A whisker between two places, px, with caps of `cap` px on either side; an open high end points on."""
    if low < high:
        sheet.line([(low, y), (high, y)], {"color": PAPER, "lw": 4.0, "zorder": 2.5})
    sheet.line([(low, y), (high, y)], {"color": INK, "lw": 1.5, "zorder": 3})
    draw_uprights(sheet, (low, high) if closed else (low,), [(y - cap, y + cap)], INK, lw=1.5, zorder=3)
    if not closed:
        points = [(high - cap, y - cap), (high, y), (high - cap, y + cap)]
        sheet.line(points, {"color": INK, "lw": 1.5, "zorder": 3})


def key_rows(entries: Iterable[KeyEntry], width: float) -> list[list[KeyEntry]]:
    """The entries of a key in as many rows of this width as they need, px."""
    rows: list[list[KeyEntry]] = []
    used = width + 1.0
    for entry in entries:
        if used + entry.width > width:
            rows.append([])
            used = 0.0
        rows[-1].append(entry)
        used += entry.width + BETWEEN
    return rows


def key_height(entries: Sequence[KeyEntry], width: float) -> float:
    """What a key takes in a picture of this width, px."""
    return KEY_LINE * len(key_rows(entries, width)) + (4.0 if entries else 0.0)


def draw_key(sheet: Sheet, entries: Sequence[KeyEntry]) -> None:
    """The key, in the first rows of a picture."""
    for place, row in enumerate(key_rows(entries, sheet.width)):
        x, y = 0.0, KEY_LINE * place + 12.0
        for entry in row:
            draw_box(sheet, entry.look, entry.slot, (x, y - 10.0, *SWATCH))
            sheet.text(
                x + SWATCH[0] + SPACE, y, cut_text(entry.text, sheet.width - x - SWATCH[0] - SPACE, NOTE)
            )
            x += entry.width + BETWEEN


def draw_rule(sheet: Sheet, y: float, *, firm: bool = False) -> None:
    """A line from edge to edge."""
    sheet.line([(0.0, y), (sheet.width, y)], {"color": AXIS if firm else RULE, "lw": 1.0, "zorder": 0.5})


def draw_uprights(
    sheet: Sheet, places: Iterable[float], spans: Iterable[tuple[float, float]], colour: str, **more: Any
) -> None:
    """Upright lines at places across, each over the same spans from top to bottom."""
    spans = tuple(spans)
    points = [
        point for x in places for top, low in spans for point in ((x, top), (x, low), (math.nan, math.nan))
    ]
    if points:
        sheet.line(points, {"color": colour, "lw": 1.0, "zorder": 0.6, **more})
