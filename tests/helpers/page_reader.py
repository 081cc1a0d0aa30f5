"""Reads a page as a browser's parser would, for the tests that ask what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"meta", "link", "br", "img", "input", "hr", "rect", "line", "circle", "polygon", "polyline"}
LOADING = {"src", "srcset", "poster", "data", "background", "action", "formaction"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    inside: tuple[str, ...]


@dataclass
class Read(HTMLParser):
    """All elements, with the tags that they stand in, and the text of each kind."""

    elements: list[Element] = field(default_factory=list)
    texts: list[tuple[tuple[str, ...], str]] = field(default_factory=list)
    open: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, {name: value or "" for name, value in attrs}, tuple(self.open)))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-1:]}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.texts.append((tuple(self.open), data))

    def all(self, *tags: str) -> list[Element]:
        return [element for element in self.elements if element.tag in tags]

    def text(self, *within: str) -> str:
        return " ".join(data for place, data in self.texts if not within or set(within) & set(place))


def read(html: str) -> Read:
    """Parses a page; an end tag that closes nothing fails."""
    reader = Read()
    reader.feed(html)
    reader.close()
    assert not reader.open, f"left open: {reader.open}"
    return reader
