"""A figure in px from its left and top edge."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Literal

from matplotlib import style as styles
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.transforms import Bbox

from report.charts.style import (
    INK,
    LABEL,
    LINE,
    LONGEST,
    NOTE,
    PAPER,
    SETTINGS,
    SOFT,
    Style,
    cut_text,
    font,
    width_of,
    wrap_text,
)
from report.text import clean

DPI = 72.0
"""So that a point is a px."""
MARGIN = 12.0
"""Around a drawing in a file of its own, px."""
PIXELS = 2.0
"""Pixels of a PNG for each px of the drawing."""
HEADING, NEXT = "heading", "next"
"""The gids of a title and of words that follow others on a line."""
SPACE = 6.0
"""Between words of different looks, px."""
KEY_LINE = 18.0
"""From one row of a legend to the next, px."""


Box = tuple[float, float, float, float]
"""Left, top, width and height, px."""


@dataclass(frozen=True, slots=True)
class StyledText:
    """A part of a line of text that has a look of its own."""

    text: str
    size: float = NOTE
    bold: bool = False
    colour: str = SOFT

    @property
    def width(self) -> float:
        """In px."""
        return width_of(self.text, self.size, self.bold)


def run_width(words: Sequence[StyledText]) -> float:
    """The width of texts behind each other, px."""
    widths = [one.width for one in words if one.text]
    return sum(widths) + SPACE * max(len(widths) - 1, 0)


def fit_words(words: Sequence[StyledText], room: float) -> list[StyledText]:
    """As much of the words as fits into `room` px: the last give way first."""
    kept: list[StyledText] = []
    for one in words:
        left = room - run_width(kept) - (SPACE if kept else 0.0)
        if left < 2 * one.size and kept:
            break
        kept.append(replace(one, text=cut_text(one.text, left, one.size, one.bold)))
    return kept


class Sheet:
    """A matplotlib figure. Texts belong to its heading, or to the words before them, by their gid."""

    def __init__(self, width: float, height: float) -> None:
        self.width, self.height = width, height
        self.figure: Figure = Figure(figsize=(width / DPI, height / DPI), dpi=DPI)
        self.figure.patch.set_visible(False)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        *,
        size: float = NOTE,
        bold: bool = False,
        colour: str = SOFT,
        align: str = "left",
        part: str | None = None,
    ) -> None:
        """One line whose baseline is `y` px below the top."""
        self.figure.text(
            *self._part(x, y),
            clean(text, LONGEST),
            fontproperties=font(size, bold),
            parse_math=False,
            color=colour,
            ha=align,
            va="baseline",
            gid=part,
        )

    def run(
        self, x: float, y: float, words: Sequence[StyledText], align: Literal["left", "right"] = "left"
    ) -> None:
        """Words of several looks behind each other; from the left an SVG has them as one text."""
        shown = [one for one in words if one.text.strip()]
        places, at = [], x
        for one in shown if align == "left" else reversed(shown):
            places.append(at)
            at += (one.width + SPACE) * (1 if align == "left" else -1)
        for one, place in zip(shown, places if align == "left" else reversed(places), strict=True):
            part = None if one is shown[0] or align == "right" else NEXT
            self.text(
                place, y, one.text, size=one.size, bold=one.bold, colour=one.colour, align=align, part=part
            )

    def rectangle(
        self,
        box: Box,
        fill: str | None,
        *,
        alpha: float = 1.0,
        edge: str | None = None,
        **more: Any,
    ) -> None:
        """A box of left, top, width and height, px, with its edge inside; `alpha` is of its fill alone."""
        left, top, width, height = box
        inset = more.get("lw", 1.0) / 2 if edge else 0.0
        drawn = Rectangle(
            self._part(left + inset, top + height - inset),
            max(width - 2 * inset, 0.0) / self.width,
            (height - 2 * inset) / self.height,
            transform=self.figure.transFigure,
            facecolor=(fill, alpha) if fill else "none",
            edgecolor=edge or "none",
            **{"lw": 1.0 if edge else 0.0, **more},
        )
        self.figure.add_artist(drawn)

    def line(self, places: Sequence[tuple[float, float]], style: Style) -> None:
        """A line through places, or marks at them."""
        across, up = zip(*(self._part(x, y) for x, y in places), strict=True)
        self.figure.add_artist(Line2D(across, up, transform=self.figure.transFigure, **style))

    def rule(self, y: float, colour: str) -> None:
        """A line from edge to edge."""
        self.line([(0.0, y), (self.width, y)], {"color": colour, "lw": 1.0, "zorder": 0.5})

    def uprights(
        self, places: Iterable[float], spans: Sequence[tuple[float, float]], colour: str, **more: Any
    ) -> None:
        """Upright lines at places across, each over the same spans from top to bottom."""
        points = [
            point
            for x in places
            for top, low in spans
            for point in ((x, top), (x, low), (math.nan, math.nan))
        ]
        if points:
            self.line(points, {"color": colour, "lw": 1.0, "zorder": 0.6, **more})

    def _part(self, x: float, y: float) -> tuple[float, float]:
        """A place as parts of the figure, from its lower left corner."""
        return x / self.width, 1 - y / self.height

    def head(self, title: str, unit: str) -> float:
        """Writes a title and its unit above the figure; returns the px that they take."""
        lines = [(line, LABEL + 1, True, INK) for line in wrap_text(title, self.width, LABEL + 1, True)]
        lines += [(line, NOTE, False, SOFT) for line in wrap_text(unit, self.width, NOTE, lines=3)]
        room = LINE * len(lines) + 10
        for place, (line, size, bold, colour) in enumerate(lines, 1):
            self.text(0, LINE * place - 3 - room, line, size=size, bold=bold, colour=colour, part=HEADING)
        return room

    def svg(self) -> str:
        """As matplotlib writes it."""
        target = BytesIO()
        with own_settings():
            self.figure.savefig(target, format="svg", metadata={"Date": None})
        return target.getvalue().decode()

    def png(self, above: float) -> bytes:
        """The figure as a PNG on white, with what is written so many px `above` it."""
        around = Bbox.from_extents(-MARGIN, -MARGIN, self.width + MARGIN, self.height + above + MARGIN)
        self.figure.patch.set_visible(True)
        target = BytesIO()
        with own_settings():
            self.figure.savefig(
                target,
                format="png",
                dpi=PIXELS * DPI,
                facecolor=PAPER,
                bbox_inches=Bbox(around.get_points() / DPI),
                metadata={"Software": None},
            )
        return target.getvalue()


@contextmanager
def own_settings() -> Iterator[None]:
    """matplotlib's own and ours, whatever a matplotlibrc says; a letter that its font lacks is no warning."""
    with styles.context(("default", SETTINGS)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield
