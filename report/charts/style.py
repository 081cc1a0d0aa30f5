"""What a chart may look like: colours, marks, sizes, texts and ticks. No other module decides any of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

from matplotlib import get_data_path
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import MaxNLocator

from report.text import clean, grouped_digits

INK, SOFT, RULE, AXIS, PAPER = "#14171d", "#566070", "#dce1e8", "#8c96a4", "#ffffff"
BLUE, GREEN, ORANGE, PURPLE = "#10569b", "#00916e", "#d8712b", "#b060a0"
"""Apart for readers who see no red, no green or no blue, and at least 3 : 1 on paper."""

DARK_GREY, GREY = "#6b7683", "#8f99a6"
HATCH, RED = "#8a94a2", "#ab2a20"

SYSTEM_COLOURS = (BLUE, ORANGE, GREEN, PURPLE)
"""This machine's first; the same in every picture and in the head of a table."""


def system_colour(slot: int) -> str:
    """The colour of a system: this machine's is the first, the next three have their own, then come greys."""
    return SYSTEM_COLOURS[slot] if slot < len(SYSTEM_COLOURS) else (GREY, DARK_GREY)[slot % 2]


DARK = {
    INK: "#e9ecf1",
    SOFT: "#a3adbb",
    RULE: "#2c333d",
    AXIS: "#6d7887",
    PAPER: "#12151a",
    BLUE: "#62adf2",
    GREEN: "#3fd39b",
    ORANGE: "#e88b4a",
    PURPLE: "#e3a5d4",
    DARK_GREY: "#a0abb8",
    GREY: "#77828f",
    HATCH: "#7d8896",
    RED: "#ff8f83",
}
"""What the page makes of each colour for readers who prefer it dark; on paper it stays as drawn."""

LONGEST = 200
"""Letters of a line, at most."""
LABEL, NOTE = 13.5, 12.5
"""Sizes of text, px."""
LINE = 17.0
"""From one line of text to the next, px."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A width in px, and whether labels are beside what they name or above it."""

    name: Literal["desk", "narrow"]
    width: float
    beside: bool


DESK = Layout("desk", 800.0, True)
"""For a page, where it is up to 1000 px wide, and for paper 710 px wide, where the smallest text is 11 px."""
NARROW = Layout("narrow", 358.0, False)
"""For a page 390 px wide, with 16 px on either side."""

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpudyno",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "lines.solid_capstyle": "butt",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}
"""Settings of matplotlib. Texts stay texts, to be found and copied; what fits in DejaVu Sans, a wide font,
fits in the font of the reader."""

Style = dict[str, Any]
"""How a line and its marks look, as of matplotlib's Line2D."""

Form = Literal["number", "times", "percent"]


def tick_text(value: float, form: Form) -> str:
    """A tick's value: '1,500', '1.25' or '62 %'."""
    if form == "percent":
        return f"{value * 100:.6g} %"
    if form == "times":
        return f"{value:.2f}" if abs(value) < 100 else grouped_digits(value, ".0f")
    return grouped_digits(value, ".6g")


# Text


@cache
def font(size: float, bold: bool = False) -> FontProperties:
    """The font that comes with matplotlib, so that a text is as wide on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(get_data_path(), "fonts", "ttf", name)
    return FontProperties(fname=str(path), size=size, weight="bold" if bold else "normal")


@lru_cache(maxsize=4096)
def width_of(text: str, size: float = LABEL, bold: bool = False) -> float:
    """Width of a text in px; letters that the font may lack count as wide ones."""
    measured = "".join(
        letter if ord(letter) < 0x250 or letter in "–…→×·" else "W" for letter in clean(text, LONGEST)
    )
    width, _, _ = text_to_path.get_text_width_height_descent(measured, font(size, bold), ismath=False)
    return float(width)


def cut_text(text: str, room: float, size: float = LABEL, bold: bool = False) -> str:
    """As much of a text as fits into `room` px."""
    shown = clean(text, LONGEST)
    if width_of(shown, size, bold) <= room:
        return shown
    while shown and width_of(f"{shown}…", size, bold) > room:
        shown = shown[:-1]
    return f"{shown.rstrip()}…"


def wrap_text(
    text: str, room: float, size: float = LABEL, bold: bool = False, lines: int = 2
) -> tuple[str, ...]:
    """A text in at most `lines` lines of `room` px, broken between words and cut where it must be."""
    kept: list[str] = []
    words = clean(text, LONGEST).split()
    while words and len(kept) < lines - 1:
        count = next(
            (n for n in range(len(words), 0, -1) if width_of(" ".join(words[:n]), size, bold) <= room), 1
        )
        kept.append(cut_text(" ".join(words[:count]), room, size, bold))
        words = words[count:]
    return (*kept, cut_text(" ".join(words), room, size, bold)) if words else tuple(kept)


def move_apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places, in px and in their order, moved as far as they must be to keep `gap` between them."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = [min(max(place, low), high) for place in places]
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)
    limit = high
    for index in reversed(order):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - gap
    return moved


def linear_ticks(values: Sequence[float], *, zero: bool, most: int = 5) -> tuple[float, ...]:
    """Round ticks that hold finite values between them, from zero where asked."""
    low, high = (min(0.0, *values, 0.0) if zero else min(values)), max(values)
    if high <= low:
        low, high = (0.0, high * 1.1) if high > 0 else (low - 1.0, low + 1.0)
    locator = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2)
    return tuple(float(tick) for tick in locator.tick_values(low, high))


def times_ticks(values: Sequence[float]) -> tuple[float, ...]:
    """1, 2, 3, 5 and their tenfolds between positive values, for a scale on which equal steps multiply."""
    low, high = min(values), max(values)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = tuple(step * 10.0**power for power in powers for step in (1, 2, 3, 5))
    return tuple(tick for tick in found if 0.999 * low <= tick <= 1.001 * high)
