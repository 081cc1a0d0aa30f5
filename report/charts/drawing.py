"""A figure in px, and from a chart to SVG that a page can take: the same bytes each time."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from html import escape
from io import BytesIO
from typing import Any, Literal, Protocol

from matplotlib import style as styles
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from report.charts.style import (
    DESK,
    INK,
    LABEL,
    LINE,
    LONGEST,
    NARROW,
    NOTE,
    PAPER,
    SETTINGS,
    SOFT,
    Layout,
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
HEADING, NEXT = "heading", "next"
"""The gids of a title and of words that follow others on a line."""
SPACE = 6.0
"""Between words of different looks, px."""
KEY_LINE = 18.0
"""From one row of a legend to the next, px."""
FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
LONGEST_DESCRIPTION = 4000

_TAG = re.compile(r"<[^>]+>")
_STYLE = re.compile(r' style="([^"]*)"')
_LEFT_AWAY = re.compile(
    rf' id="(?!{HEADING}|{NEXT}|[hmp][0-9a-f]{{10}}")[^"]*"| transform="rotate\(-0 [^"]*"'
)
_NAME = re.compile(r'(?<= id=")(?=[hmp][0-9a-f]{10}")|(?<=href="#)|(?<=url\(#)')
_FRACTION = re.compile(r"-?\d+\.\d+")
_HEAD = re.compile(rf'<g id="{HEADING}">(.*?)</g>')
_NEXT = re.compile(rf'</text></g><g id="{NEXT}"><text([^>]*?) x="[^"]*" y="[^"]*"/?>(.*?)(?=</text>)')

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


@dataclass(frozen=True, slots=True)
class Scale:
    """From where to where a scale reaches, px, and the values there; equal steps add up, or multiply."""

    begin: float
    end: float
    low: float
    high: float
    multiplies: bool = False

    def place(self, value: float) -> float:
        """Where a value is, px: at an end what lies beyond it."""
        value = min(max(value, self.low), self.high)
        if self.multiplies:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.begin + part * (self.end - self.begin)


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
        fill: str,
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
            facecolor=(fill, alpha),
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


@contextmanager
def own_settings() -> Iterator[None]:
    """matplotlib's own and ours, whatever a matplotlibrc says; a letter that its font lacks is no warning."""
    with styles.context(("default", SETTINGS)), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


# Documents


class Chart(Protocol):
    """Frozen data that can draw itself."""

    def sheet(self, layout: Layout) -> Sheet:
        """The chart, drawn in a layout."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as SVG: in both layouts for a page, which shows one of them, and as a file under its title."""

    page: str
    file: str


@own_settings()
def draw_chart(chart: Chart, name: str, title: str, unit: str, described: str) -> Drawing:
    """A chart as SVG, described in words; every id in it begins with `name`."""
    desk = chart.sheet(DESK)
    above, words = desk.head(title, unit), words_of(name, title, described)
    drawn = drawn_body(desk, f"{name}-desk")
    heading, shown = "".join(_HEAD.findall(drawn)), _HEAD.sub("", drawn)
    left, top = -MARGIN, -MARGIN - above
    ground = f'<rect x="{left:g}" y="{top:g}" width="100%" height="100%" fill="{PAPER}"/>'
    around = (left, top, desk.width + 2 * MARGIN, desk.height + above + 2 * MARGIN)
    file = document(name, "", "chart", around, words + ground + heading + shown) + "\n"
    page = document(name, "", "chart desk", (0.0, 0.0, desk.width, desk.height), words + shown)
    narrow, which = chart.sheet(NARROW), f"-{NARROW.name}"
    box = (0.0, 0.0, narrow.width, narrow.height)
    page += document(name, which, f"chart {NARROW.name}", box, drawn_body(narrow, f"{name}{which}"))
    return Drawing(page, file)


def words_of(name: str, title: str, described: str) -> str:
    """Return the title and the description of a drawing, for those who cannot see it."""
    short, words = clean(title, LONGEST), clean(described, LONGEST_DESCRIPTION)
    head = f'<title id="{name}-t">{escape(short, quote=False)}</title>'
    return f'{head}<desc id="{name}-d">{escape(words, quote=False)}</desc>'


def document(name: str, which: str, kind: str, box: tuple[float, float, float, float], inside: str) -> str:
    """Return one SVG element around what is drawn in a box of left, top, width and height, px."""
    shown = " ".join(f"{side:g}" for side in box)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{kind}" id="{name}{which}" role="img" '
        f'aria-labelledby="{name}-t {name}-d" viewBox="{shown}" width="{box[2]:g}" height="{box[3]:g}" '
        f'font-family="{FONTS}" stroke-linejoin="round">{inside}</svg>'
    )


def drawn_body(sheet: Sheet, name: str) -> str:
    """Return what a sheet draws, with styles as attributes: a page takes no others."""
    drawn = sheet.svg().partition("</defs>")[2].rpartition("</svg>")[0]
    tidy = _TAG.sub(lambda tag: _tidy_tag(tag[0], name), re.sub(r">\s+<", "><", drawn.strip()))
    return _NEXT.sub(_join_words, tidy).replace("<g/>", "")


def _tidy_tag(tag: str, name: str) -> str:
    """A tag with its style as attributes, short numbers, and `name` before each id."""
    plain_tag = _STYLE.sub(_style_attributes, _LEFT_AWAY.sub("", re.sub(r"\s+", " ", tag)))
    named = _NAME.sub(f"{name}-", plain_tag.replace("xlink:href", "href"))
    return _FRACTION.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), named)


def _style_attributes(style: re.Match[str]) -> str:
    pairs = [declaration.split(": ", 1) for declaration in style[1].split("; ")]
    return "".join(f' {key}="{value}"' for key, value in pairs if key != "font-family" and value != "start")


def _join_words(words: re.Match[str]) -> str:
    """Words behind others on a line as one text with them, whatever the font of the reader."""
    weight = "" if "font-weight" in words[1] else ' font-weight="400"'
    return f'<tspan dx="{SPACE:g}"{weight}{words[1]}>{words[2]}</tspan>'
