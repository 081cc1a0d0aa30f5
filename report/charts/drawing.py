"""From a chart to SVG and PNG: the same bytes each time, and SVG that a page can take."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from report.charts.sheet import HEADING, KEY_LINE, MARGIN, MARGIN_OF_SLIDE, NEXT, SPACE, Sheet
from report.charts.style import DESK, NARROW, NOTE, PAPER, PAPER_SHEET, SLIDES, Layout, plain

FONTS = "system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif"
LONGEST_DESCRIPTION = 4000

_REFERENCE = re.compile(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"")
_NAME = re.compile(r"(?<=#)[^)]+")
_FRACTION = re.compile(r"-?\d+\.\d+")
_SIZE = f"{NOTE:g}"
"""Of most words, px: a document says it once."""
_SVG = "{http://www.w3.org/2000/svg}"
_LONG_PATH = 400
"""Letters of a path that is written in tenths of a px."""


class Chart(Protocol):
    """Frozen data that can draw itself."""

    def sheet(self, layout: Layout) -> Sheet:
        """The chart, drawn in a layout."""


@dataclass(frozen=True, slots=True)
class Drawing:
    """A chart as SVG: in both layouts for a page, which shows one of them, and as a file under its title."""

    page: str
    file: str


def draw(chart: Chart, name: str, title: str, unit: str, described: str, *, paper: bool = False) -> Drawing:
    """A chart as SVG, described in words; every id in it begins with `name`.

    With `paper` the page holds a third layout, for paper and screens between a phone and a desk.
    """
    desk = chart.sheet(DESK)
    height, heading = desk.height, desk.head(title, unit)
    drawn = _elements(desk, f"{name}-desk")
    shown = [element for element in drawn if element.get("class") != HEADING]
    above = [element for element in drawn if element.get("class") == HEADING]
    words = _words(name, title, described)
    ground = Element("rect", x=f"{-MARGIN:g}", y=f"{-MARGIN:g}", width="100%", height="100%", fill=PAPER)
    around = (-MARGIN, -MARGIN, desk.width + 2 * MARGIN, desk.height + 2 * MARGIN)
    file = _document(name, "", "chart", around, [*words, ground, *above, *shown]) + "\n"
    fits = desk.width <= NARROW.width
    box = (0.0, heading, desk.width, height)
    page = _document(name, "", "chart small" if fits else "chart desk", box, [*words, *shown])
    for layout in () if fits else (PAPER_SHEET, NARROW) if paper else (NARROW,):
        sheet, which = chart.sheet(layout), f"-{layout.name}"
        box = (0.0, 0.0, sheet.width, sheet.height)
        page += _document(name, which, f"chart {layout.name}", box, _elements(sheet, f"{name}{which}"))
    return Drawing(page, file)


def undrawn(name: str, title: str, described: str) -> Drawing:
    """The words of a drawing alone, for a page that is only compared."""
    words = _document(name, "", "chart", (0.0, 0.0, 0.0, 0.0), _words(name, title, described))
    return Drawing(words, words + "\n")


def as_png(chart: Chart, title: str, unit: str, source: str = "") -> bytes:
    """A chart as a slide: under its title, over its source, in the largest text that leaves it 16 : 9."""
    for layout in SLIDES:
        sheet = chart.sheet(layout)
        sheet.head(title, unit)
        if sheet.height + 2 * MARGIN_OF_SLIDE + KEY_LINE <= (sheet.width + 2 * MARGIN_OF_SLIDE) * 9 / 16:
            break
    return sheet.slide(source)


def _words(name: str, title: str, described: str) -> list[Element]:
    words = [Element("title", id=f"{name}-t"), Element("desc", id=f"{name}-d")]
    words[0].text, words[1].text = plain(title), plain(described, LONGEST_DESCRIPTION)
    return words


def _document(
    name: str,
    which: str,
    kind: str,
    box: tuple[float, float, float, float],
    inside: Iterable[Element],
) -> str:
    root = Element(
        "svg",
        {
            "xmlns": "http://www.w3.org/2000/svg",
            "class": kind,
            "id": f"{name}{which}",
            "role": "img",
            "aria-labelledby": f"{name}-t {name}-d",
            "viewBox": " ".join(f"{side:g}" for side in box),
            "width": f"{box[2]:g}",
            "height": f"{box[3]:g}",
            "font-family": FONTS,
            "font-size": _SIZE,
            "stroke-linejoin": "round",
        },
    )
    root.extend(inside)
    return ElementTree.tostring(root, encoding="unicode")


def _elements(sheet: Sheet, name: str) -> list[Element]:
    """What a sheet draws: styles as attributes, the only ones a page takes, and its heading in one group."""
    text = sheet.svg()
    references = dict.fromkeys(first or second for first, second in _REFERENCE.findall(text))
    cleaner = _Cleaner({old: f"{name}-{place}" for place, old in enumerate(references)})
    cleaner.copy(ElementTree.fromstring(text), cleaner.body)
    return list(cleaner.body)


class _Cleaner:
    """Copies what matplotlib drew, without what it says of itself."""

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names
        self.body = Element("g")
        self.heading: Element | None = None

    def copy(self, source: Element, target: Element) -> None:
        """Copies into `target`, but the heading into a group of its own."""
        for child in source:
            tag, part = child.tag.rpartition("}")[2], child.get("id", "")
            if tag in ("metadata", "style"):
                continue
            attributes = dict(_attributes(child, self.names))
            if part == HEADING:
                if self.heading is None:
                    self.heading = SubElement(self.body, "g", {"class": HEADING})
                self.copy(child, self.heading)
            elif part.startswith(NEXT):
                self.follow(next(child.iter(f"{_SVG}text")), target)
            elif not attributes and (tag == "g" or (tag == "defs" and child.find("./*[@id]") is None)):
                self.copy(child, target)
            else:
                copied = SubElement(target, tag, attributes)
                copied.text = child.text if tag == "text" else None
                self.copy(child, copied)

    def follow(self, source: Element, target: Element) -> None:
        """Appends words to the text before them, which, where it ends at a place, ends where they do."""
        text = [element for element in target.iter() if element.tag == "text"][-1]
        attributes = dict(_attributes(source, self.names))
        if attributes.pop("text-anchor", None) == "end":
            text.set("x", attributes["x"])
        for place in ("x", "y", "transform"):
            attributes.pop(place, None)
        following = SubElement(text, "tspan", {"dx": f"{SPACE:g}", **_told(attributes, text)})
        following.text = source.text


def _told(attributes: dict[str, str], text: Element) -> dict[str, str]:
    """The attributes of words that follow others, with what they must not take over from them."""
    usual = {"font-weight": "400", "font-size": _SIZE}
    taken_over = {key: value for key, value in usual.items() if text.get(key, value) != value}
    return {**taken_over, **attributes}


def _attributes(element: Element, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    for key, value in element.attrib.items():
        key = key.rpartition("}")[2]
        if key == "style" and element.get("id") not in names:
            yield from _styles(value, names)
        elif key == "id":
            if value in names:
                yield key, names[value]
        elif key in ("href", "clip-path"):
            yield key, _NAME.sub(lambda match: names[match[0]], value)
        elif key == "d":
            yield key, _path(value)
        elif key != "style" and (key != "transform" or not value.startswith("rotate(-0 ")):
            yield key, _FRACTION.sub(_rounded, value)


def _styles(style: str, names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """'fill: none; stroke: #000' as attributes; the document names the fonts."""
    for declaration in style.split(";"):
        key, _, value = (part.strip() for part in declaration.partition(":"))
        if key == "font-size":
            if value.removesuffix("px") != _SIZE:
                yield key, value.removesuffix("px")
        elif value.startswith("url("):
            yield key, _NAME.sub(lambda match: names[match[0]], value)
        elif (
            key and key not in ("font-family", "stroke-linejoin") and (key, value) != ("text-anchor", "start")
        ):
            yield key, _FRACTION.sub(_rounded, value)


def _path(path: str) -> str:
    """A path in hundredths of a px; a long one of straight lines in tenths, from point to point."""
    pieces = re.findall(r"([MLCQz])([^MLCQz]*)", path)
    if len(path) < _LONG_PATH or {letter for letter, _ in pieces} - {"M", "L", "z"}:
        return "".join(
            letter + _FRACTION.sub(_rounded, " ".join(places.split())) for letter, places in pieces
        )
    path, last, begun, before = "", (0, 0), (0, 0), ""
    for letter, places in pieces:
        if letter == "z":
            path, last, before = f"{path}z", begun, letter
            continue
        x, y = (round(10 * float(place)) for place in places.split())
        begun = (x, y) if letter == "M" else begun
        step = f"{_tenths(x - last[0])} {_tenths(y - last[1])}"
        sign = {"M": "m", "L": "l"}[letter]
        path += f"{sign if sign != before else ' '}{step}"
        last, before = (x, y), sign
    return path.replace(" -", "-")


def _rounded(number: re.Match[str]) -> str:
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _tenths(value: int) -> str:
    """'.3', '-12', '0'"""
    return f"{value / 10:g}".replace("0.", ".", 1) if abs(value) < 10 and value else f"{value / 10:g}"
