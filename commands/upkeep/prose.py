"""Sentences that are too long, and words that have a plainer one, in pages, templates and texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

STYLE = Path("docs", "style.md")
PAGES = ("*.md", "docs/*.md", "docker/*.md")
CODE = ("tasks.py", "commands/**/*.py", "harness/**/*.py", "report/**/*.py")
TEMPLATES = ("report/page/templates/*.html", "report/page/templates/*.md")

MOST_WORDS = 25
"""From one stop, colon or semicolon to the next."""

_PAUSE = re.compile(r"(?<=[.!?:;])[)*\"”]*\s+")
_GENERATED = re.compile(r"<!-- (\w+): begin -->.*?<!-- \1: end -->", re.S)
_WORD = re.compile(r"\w")
_ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \|", re.M)
_LEAST_WORDS = 3
"""A text of the product with fewer is a name or a key."""


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, a cell of a table, or a text of the product, and where it stands."""

    place: str
    text: str


def problems(root: Path) -> Iterator[str]:
    """A sentence for each long sentence and each word that docs/style.md has a plainer one for."""
    plainer = word_list(root)
    for passage in passages(root):
        yield from long_sentences(passage)
        yield from listed_words(passage, plainer)


def word_list(root: Path) -> dict[str, str]:
    """What not to write → what to write: the first table of docs/style.md."""
    rows = _ROW.findall(
        (root / STYLE).read_text(encoding="utf-8").partition("## Words")[2].partition("##")[0]
    )
    return {bad.strip(): good.strip() for bad, good in rows[2:]}


def passages(root: Path) -> Iterator[Passage]:
    """All that is read by a person: the pages, what the verbs say, and the report's own words."""
    for path in _files(root, PAGES):
        yield from _read(root, path, partial(in_page, tables=path != root / STYLE))
    for path in _files(root, CODE):
        yield from _read(root, path, in_code)
    for path in _files(root, TEMPLATES):
        yield from _read(root, path, in_template)


def _read(root: Path, path: Path, read: Callable[[str], Iterator[tuple[int, str]]]) -> Iterator[Passage]:
    for line, text in read(path.read_text(encoding="utf-8")):
        yield Passage(f"{path.relative_to(root)}:{line}", text)


def _files(root: Path, patterns: tuple[str, ...]) -> list[Path]:
    return sorted(path for pattern in patterns for path in root.glob(pattern))


def in_page(source: str, *, tables: bool = True) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph and cell of a Markdown page; code counts as one word."""
    kept = _GENERATED.sub(lambda block: "\n" * block[0].count("\n"), source)
    line, in_table = 0, False
    for token in MarkdownIt("commonmark").enable("table").parse(kept):
        line = token.map[0] + 1 if token.map else line
        in_table = token.type != "table_close" and (in_table or token.type == "table_open")
        if token.type == "inline" and (tables or not in_table):
            yield line, "".join(_plain(part) for part in token.children or ())


def _plain(token: Token) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return "Code" if token.type == "code_inline" else token.content if token.type == "text" else ""


def in_code(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each string of a module that is no docstring; a value in it counts as no word."""
    tree = ast.parse(source)
    apart = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            apart |= {*node.values}
            text = "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in apart:
            text = node.value
        else:
            continue
        if len(text.split()) >= _LEAST_WORDS:
            yield node.lineno, text


def in_template(source: str) -> Iterator[tuple[int, str]]:
    """Line and text between the tags and the statements of a template."""
    plain = re.sub(r"\{\{.*?\}\}", "…", re.sub(r"\{%.*?%\}|<[^>]*>", "\n", source))
    for number, text in enumerate(plain.splitlines(), 1):
        if len(text.split()) >= _LEAST_WORDS:
            yield number, text


def long_sentences(passage: Passage) -> Iterator[str]:
    """What is longer than a reader takes in at once."""
    for sentence in _PAUSE.split(passage.text):
        words = [word for word in sentence.split() if _WORD.search(word)]
        if len(words) > MOST_WORDS:
            yield (
                f"{passage.place}: {len(words)} words in a row, where {MOST_WORDS} are the most: "
                f"'{sentence.strip()}'"
            )


def listed_words(passage: Passage, plainer: dict[str, str]) -> Iterator[str]:
    """Each word on the list, with what to write."""
    for bad, good in plainer.items():
        if re.search(rf"\b{re.escape(bad)}\b", passage.text, re.I):
            yield f"{passage.place}: '{bad}' where {STYLE} has '{good}': '{passage.text[:80].strip()}'"
