"""From a chart to SVG and PNG: the same bytes each time, and SVG that a page can take."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape
from typing import Protocol

from report.charts.sheet import HEADING, MARGIN, NEXT, SPACE, Sheet, own_settings
from report.charts.style import DESK, LONGEST, NARROW, PAPER, Layout
from report.text import clean

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


def words_alone(name: str, title: str, described: str) -> Drawing:
    """The words of a drawing alone, for a page that is only compared."""
    words = document(name, "", "chart", (0.0, 0.0, 0.0, 0.0), words_of(name, title, described))
    return Drawing(words, words + "\n")


@own_settings()
def as_png(chart: Chart, title: str, unit: str) -> bytes:
    """A chart under its title, in the wide layout."""
    sheet = chart.sheet(DESK)
    return sheet.png(sheet.head(title, unit))


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
