"""What a chart may look like: colours, marks, sizes, texts and ticks. No other module decides any of it."""

from __future__ import annotations

import math
import unicodedata
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

from harness.record import PRECISIONS

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


@dataclass(frozen=True, slots=True)
class Look:
    """A colour and a matplotlib marker: either alone tells the precisions of one chart apart."""

    colour: str
    marker: str


_COLOURS = {"blue": BLUE, "green": GREEN, "orange": ORANGE, "purple": PURPLE}
PRECISION_LOOKS: dict[str, Look] = {
    label: Look(_COLOURS[traits.colour], traits.marker) for label, traits in PRECISIONS.items()
}
UNKNOWN_LOOK = Look(SOFT, "o")


INPUT_WAIT, COMPUTE, OTHER = "#bf4b00", BLUE, "#5f6b78"
"""Areas that carry text of the paper's colour."""

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
    INPUT_WAIT: "#ffab70",
    OTHER: "#98a3af",
}
"""What the page makes of each colour for readers who prefer it dark; on paper it stays as drawn."""

LABEL, NOTE = 13.5, 12.5
"""Sizes of text, px."""
LINE = 17.0
"""From one line of text to the next, px."""


@dataclass(frozen=True, slots=True)
class Layout:
    """A width in px, and whether labels stand beside what they name or above it."""

    name: Literal["desk", "paper", "narrow", "slide"]
    width: float
    beside: bool


DESK = Layout("desk", 1120.0, True)
PAPER_SHEET = Layout("paper", 800.0, True)
"""For paper, where text of 12.5 px becomes 11 px, and for screens too small for the desk's."""
NARROW = Layout("narrow", 358.0, False)
"""For a page 390 px wide, with 16 px on either side."""
SLIDES = tuple(Layout("slide", width, True) for width in (720.0, 880.0, 1120.0))
"""The narrower, the larger the text on a slide."""

SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "gpudyno",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "lines.solid_capstyle": "butt",
    "path.simplify": True,
    "path.simplify_threshold": 0.2,
}
"""Of matplotlib. Texts stay texts, to be found and copied; what fits in DejaVu Sans, a wide font, fits in the
font of the reader."""

Style = dict[str, Any]
"""How a line and its marks look, as of matplotlib's Line2D."""

Form = Literal["number", "times", "percent"]


def written(value: float, form: Form) -> str:
    """A tick's value: '1,500', '1.25' or '62 %'."""
    if form == "percent":
        return f"{value * 100:.6g} %"
    if form == "times":
        return f"{value:.2f}" if abs(value) < 100 else f"{value:,.0f}"
    return f"{value:,.6g}"


def look_of(precision: str) -> Look:
    """The look of a precision; grey for what is none."""
    return PRECISION_LOOKS.get(precision, UNKNOWN_LOOK)


def marker_of(precision: str) -> str:
    """The marker of a precision, where all have a system's colour."""
    return look_of(precision).marker


# Text


def plain(text: str, longest: int = 200) -> str:
    """One line without characters that control, direct or are not assigned, cut to `longest`."""
    shown = "".join(_shown(character) for character in text[: 2 * longest])
    line = " ".join(shown.split())
    return line if len(line) <= longest else f"{line[: longest - 1]}…"


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in ("Cc", "Zl", "Zp"):
        return " "
    return "\N{REPLACEMENT CHARACTER}" if category.startswith("C") else character


@cache
def font(size: float, bold: bool = False) -> FontProperties:
    """The font that comes with matplotlib, so that a text is as wide on every machine."""
    name = "DejaVuSans-Bold.ttf" if bold else "DejaVuSans.ttf"
    path = Path(get_data_path(), "fonts", "ttf", name)
    return FontProperties(fname=str(path), size=size, weight="bold" if bold else "normal")


@lru_cache(maxsize=4096)
def width_of(text: str, size: float = LABEL, bold: bool = False) -> float:
    """Width of a text in px; letters that the font may lack count as wide ones."""
    measured = "".join(letter if ord(letter) < 0x250 or letter in "–…→×·" else "W" for letter in plain(text))
    width, _, _ = text_to_path.get_text_width_height_descent(measured, font(size, bold), ismath=False)
    return float(width)


def cut(text: str, room: float, size: float = LABEL, bold: bool = False) -> str:
    """As much of a text as fits into `room` px."""
    shown = plain(text)
    if width_of(shown, size, bold) <= room:
        return shown
    while shown and width_of(f"{shown}…", size, bold) > room:
        shown = shown[:-1]
    return f"{shown.rstrip()}…"


def wrapped(
    text: str, room: float, size: float = LABEL, bold: bool = False, lines: int = 2
) -> tuple[str, ...]:
    """A text in at most `lines` lines of `room` px, broken between words and cut where it must be."""
    kept: list[str] = []
    words = plain(text).split()
    while words and len(kept) < lines - 1:
        count = next(
            (n for n in range(len(words), 0, -1) if width_of(" ".join(words[:n]), size, bold) <= room), 1
        )
        kept.append(cut(" ".join(words[:count]), room, size, bold))
        words = words[count:]
    return (*kept, cut(" ".join(words), room, size, bold)) if words else tuple(kept)


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The places, in px and in their order, moved as far as they must be to stand `gap` from each other."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = [min(max(place, low), high) for place in places]
    for before, after in pairwise(order):
        moved[after] = max(moved[after], moved[before] + gap)
    limit = high
    for index in reversed(order):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - gap
    return moved


# Ticks

MOST_RATIO = 100.0
"""A ratio's interval can reach to nothing and to infinity; its figures stand in the table."""
_COARSE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
_MIDDLE = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)
_FINE = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0)
_TICK_ROOM = 40.0


def linear_ticks(
    values: Sequence[float], *, zero: bool, most: int = 5, whole: bool = False
) -> tuple[float, ...]:
    """Round ticks that hold finite values between them, from zero and of whole numbers where asked."""
    low, high = (min(0.0, *values, 0.0) if zero else min(values)), max(values)
    if high <= low:
        low, high = (0.0, high * 1.1) if high > 0 else (low - 1.0, low + 1.0)
    locator = MaxNLocator(nbins=most, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2, integer=whole)
    return tuple(float(tick) for tick in locator.tick_values(low, high))


def ratio_ticks(
    values: Sequence[float], room: float, shown: Sequence[float] = ()
) -> tuple[tuple[float, float], tuple[float, ...]]:
    """The ends of a logarithmic axis of `room` px that shows 1, and ticks whose labels do not touch.

    The axis ends at MOST_RATIO, unless a value that has to be `shown` lies further.
    """
    low, high = min(*values, 1.0, 1.0) / 1.03, max(*values, 1.0, 1.0) * 1.03
    least, most = (min(shown, default=1.0) / 1.03, max(shown, default=1.0) * 1.03)
    low, high = max(min(low, 0.95), min(1 / MOST_RATIO, least)), min(max(high, 1.05), max(MOST_RATIO, most))
    wide = decades((low, high)) if high / low > 200 else _COARSE
    ticks = _FINE if high / low < 3.2 else _MIDDLE if high / low < 10 else wide
    inside = [tick for tick in ticks if low <= tick <= high]
    return (low, high), spaced(inside, 1.0, room / math.log(high / low))


def doubling_ticks(values: Sequence[float], room: float) -> tuple[tuple[float, float], tuple[float, ...]]:
    """The ends of a logarithmic axis of `room` px, and those of its values whose labels do not touch."""
    low, high = min(values) / 1.12, max(values) * 1.12
    return (low, high), spaced(sorted(set(values)), min(values), room / math.log(high / low))


def decades(values: Sequence[float]) -> tuple[float, ...]:
    """Powers of ten around positive values, at most seven of them."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    every = math.ceil((high - low) / 6)
    return tuple(10.0**power for power in range(low, high + every, every))


def spaced(ticks: Sequence[float], first: float, px_per_e: float) -> tuple[float, ...]:
    """Of logarithmic ticks those that stand apart, `first` always, its furthest before its nearest."""
    kept = [first]
    for tick in sorted(ticks, key=lambda value: -abs(math.log(value / first))):
        if all(abs(math.log(tick / other)) * px_per_e >= _TICK_ROOM for other in kept):
            kept.append(tick)
    return tuple(sorted(kept))
