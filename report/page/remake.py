"""A page made once more from raw samples, and what differs between it and the one that was handed over."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from difflib import SequenceMatcher
from html.parser import HTMLParser
from pathlib import Path

from harness.record.store import dump as dump_record
from harness.record.store import read_all, write_whole
from report import text as words
from report.page.build import build

MOST_LISTED = 40
MOST_UNALIKE = 4000
"""Texts on both sides that are set against each other; more are only counted."""

_MARKS = "a drawing has"
_FIGURE = re.compile(r"\d")
_HEADINGS = ("h1", "h2", "h3", "h4", "summary", "caption", "title")
_DRAWN = ("svg", "path", "line", "rect", "circle", "polyline", "polygon", "text", "g", "use", "tspan")


@dataclass(frozen=True, slots=True)
class Piece:
    """A text or a mark of a page, and where it stands."""

    place: str
    text: str
    drawn: bool = False
    """A mark of a drawing, and no word of the page."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a file of the page says at a place, and what the records give; empty where one says nothing."""

    file: str
    place: str
    said: str
    found: str

    def sentence(self) -> str:
        """`file: at a place it says this, and the records give that`"""
        where = f" under '{words.clean(self.place, 80)}'" if self.place else ""
        said, found = _around(self.said, self.found)
        return (
            f"{self.file}:{where} it says '{said or 'nothing'}', and the records give '{found or 'nothing'}'"
        )


def _around(said: str, found: str) -> tuple[str, str]:
    """Both texts, cut to where they part."""
    least = min(len(said), len(found))
    start = max(0, next((at for at in range(least) if said[at] != found[at]), least) - 24)
    return words.clean(said[start : start + 400], 80), words.clean(found[start : start + 400], 80)


def page_from_raw(
    root: Path,
    work: Path,
    *,
    session: str | None,
    baseline: str | None,
    margin: float,
    now: datetime,
) -> Path:
    """The folder of a page whose every summary is computed anew; `work` is empty and takes the copies.

    Raises what `report.page.build` raises.
    """
    clone, out = work / "clone", work / "page"
    shutil.copytree(root, clone, ignore=shutil.ignore_patterns("page", ".state", "docker", "plans"))
    shelf = read_all(clone)
    for stored in shelf.records:
        bare = stored.record.model_copy(update={"summary": None})
        write_whole(clone / stored.path, dump_record(bare), replace=True)
    build(clone, out, session=session, baseline=baseline, machine=None, margin=margin, now=now)
    return out


def differences(packed: Path, anew: Path) -> tuple[Difference, ...]:
    """What a packed page says otherwise than the page made anew: all words first, then the drawings."""
    names = {path.relative_to(folder).as_posix() for folder in (packed, anew) for path in _files(folder)}
    found: list[Difference] = []
    for name in sorted(names):
        one, other = _bytes(packed / name), _bytes(anew / name)
        if one == other:
            continue
        if one is None or other is None:
            there = ("the file is there", "no such file")
            found.append(Difference(name, "", *(there if other is None else there[::-1])))
        else:
            found += _between(name, one, other) or [Difference(name, "", "other bytes", "the same figures")]
    return tuple(sorted(found, key=lambda one: (one.file.endswith(".svg"), one.said.startswith(_MARKS))))


def figures(folder: Path) -> int:
    """How many texts and marks with a figure a page has, over all its files."""
    return sum(
        bool(_FIGURE.search(piece.text))
        for path in _files(folder)
        for piece in pieces(path.name, path.read_text(encoding="utf-8", errors="replace"))
    )


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def _bytes(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _between(name: str, one: bytes, other: bytes) -> list[Difference]:
    said, found = (pieces(name, text.decode("utf-8", errors="replace")) for text in (one, other))
    said, found = _unlike(said, found)
    if len(said) == len(found) or len(said) + len(found) > MOST_UNALIKE:
        pairs = [(a, b) for a, b in zip(said, found, strict=False) if a.text != b.text]
        pairs += [(piece, Piece(piece.place, "")) for piece in said[len(found) :]]
        pairs += [(Piece(piece.place, ""), piece) for piece in found[len(said) :]]
    else:
        pairs = list(_aligned(said, found))
    said_otherwise = [
        Difference(name, a.place or b.place, a.text, b.text) for a, b in pairs if not _drawn(a, b)
    ]
    marks = Counter(a.place or b.place for a, b in pairs if _drawn(a, b))
    return said_otherwise + [
        Difference(name, place, f"{_MARKS} {n} marks otherwise", "others") for place, n in marks.items()
    ]


def _unlike(said: list[Piece], found: list[Piece]) -> tuple[list[Piece], list[Piece]]:
    """Both without what they begin and what they end with alike."""
    least = min(len(said), len(found))
    start = next((at for at in range(least) if said[at] != found[at]), least)
    end = next((at for at in range(least - start) if said[-1 - at] != found[-1 - at]), least - start)
    return said[start : len(said) - end], found[start : len(found) - end]


def _drawn(one: Piece, other: Piece) -> bool:
    return one.drawn or other.drawn


def _aligned(said: Sequence[Piece], found: Sequence[Piece]) -> Iterator[tuple[Piece, Piece]]:
    matcher = SequenceMatcher(None, [one.text for one in said], [one.text for one in found], autojunk=False)
    for what, a, b, c, d in matcher.get_opcodes():
        if what == "equal":
            continue
        for at in range(max(b - a, d - c)):
            mine = said[a + at] if a + at < b else None
            theirs = found[c + at] if c + at < d else None
            place = (mine or theirs or Piece("", "")).place
            yield mine or Piece(place, ""), theirs or Piece(place, "")


def pieces(name: str, text: str) -> list[Piece]:
    """All that a file of the page says, in its order: texts, and the attributes that draw."""
    if not name.endswith((".html", ".svg")):
        return list(_lines(text))
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.found


def _lines(text: str) -> Iterator[Piece]:
    place = ""
    for line in text.splitlines():
        if line.startswith("#"):
            place = line.strip("# ")
        if line.strip():
            yield Piece(place, line.strip())


class _Reader(HTMLParser):
    """Collects texts with the heading, and in a table the row and column, that they stand under."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Piece] = []
        self._heading = self._row = self._cell = ""
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        if tag == "tr":
            self._row = ""
        for key, value in attrs:
            if value:
                drawn = tag in _DRAWN
                mark = f"{tag} {key}={value}" if drawn else value
                self.found.append(Piece(self._heading, mark, drawn))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        said = " ".join(data.split())
        if not said:
            return
        inside = self._open[-1] if self._open else ""
        if inside in _HEADINGS:
            self._heading = said
        if {"td", "th"} & set(self._open[-4:]) and not self._row:
            self._row = said
        place = f"{self._heading}, {self._row}" if "tr" in self._open and self._row != said else self._heading
        self.found.append(Piece(place, said))
