"""Every line of `invoke` that the project prints is one that Invoke takes."""

from __future__ import annotations

import ast
import html
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from invoke.collection import Collection
from invoke.parser import Parser, ParserContext

import tasks
from commands.line import place_options
from harness.plan import plan_file
from tests.helpers import ROOT

PAGES = (
    *("README.md", "CONTRIBUTING.md", "docs/*.md", "plans/*.toml", "docker/*.toml", "examples/**/*.*"),
    *(".ci/*", ".github/workflows/*.yml", "report/page/templates/**/*.*"),
)
CODE = ("tasks.py", "commands/**/*.py", "harness/**/*.py", "report/**/*.py", "workloads/**/*.py")
LINE = re.compile(r"""(?<![\w.])invoke ((?:--?)?[a-z][^`\n;|#)&<>]*)""")
IN_TICKS = re.compile(r"`(?:\.venv/bin/)?invoke ([^`]+)`")
OWN = {"NAME", "mine", "digits", "mini", "gpt", "yolo", "X"}
"""Plans that a reader writes, or that stand for any."""


def of_page(path: Path) -> Iterator[str]:
    """A page's lines of invoke: in backticks, after an interpreter's folder, or at a shell line's start."""
    text = path.read_text(encoding="utf-8")
    yield from IN_TICKS.findall(text.replace("\n", " ") if path.suffix == ".md" else text)
    for line in text.splitlines():
        if re.match(r"\s*(?:run: |\$ )?(?:\S+/)?invoke ", line) or ".venv/bin/invoke " in line:
            yield from (_whole(found) for found in LINE.findall(line.replace("`", ";")))


def _whole(line: str) -> str:
    """A line without the quote that ends the one around it."""
    return line.rstrip('"') if line.count('"') % 2 else line


def of_code(path: Path) -> Iterator[str]:
    """A module's lines of invoke in its texts; what is filled in stands as X."""
    source = path.read_text(encoding="utf-8")
    nodes = [*ast.walk(ast.parse(source))] if "invoke" in source else []
    pieces = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if id(node) in pieces:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else "X" for part in node.values]
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            text = node.value
        else:
            continue
        text = text.replace("\n", " ")
        found = IN_TICKS.findall(text)
        yield from found or ([text.removeprefix("invoke ")] if text.startswith("invoke ") else [])


def files(patterns: tuple[str, ...]) -> list[Path]:
    found = {pattern: {path for path in ROOT.glob(pattern) if path.is_file()} for pattern in patterns}
    assert all(found.values()), "a pattern that is checked matches no file"
    return sorted(set().union(*found.values()))


@cache
def lines() -> tuple[tuple[str, str], ...]:
    found = [(path, line) for path in files(PAGES) if _is_text(path) for line in of_page(path)]
    found += [(path, line) for path in files(CODE) for line in of_code(path)]
    plain = [(str(path.relative_to(ROOT)), html.unescape(line).strip(" .,:")) for path, line in found]
    return tuple(dict.fromkeys((place, line) for place, line in plain if line))


def _is_text(path: Path) -> bool:
    return path.suffix != ".png"


@cache
def verbs() -> list[ParserContext]:
    found: list[ParserContext] = Collection.from_module(tasks).to_contexts()
    return found


def words_of(line: str) -> list[str]:
    """A line's words; of variables only that something stands there, and nothing of a template's logic."""
    bare = re.sub(r"\$\{?\w+\}?|\{\{.*?\}\}|<\w+>", "X", line)
    return shlex.split(bare.replace("…", ""))


def test_lines_were_found_in_pages_in_code_and_in_templates():
    places = {place.split("/")[0] for place, _ in lines()}
    assert {"README.md", "docs", "harness", "commands", "report", ".ci", ".github"} <= places
    assert len(lines()) > 100


@pytest.mark.parametrize(("place", "line"), lines())
def test_a_printed_line_is_one_that_invoke_takes(place, line):
    words = words_of(re.split(r" < |, | 2$", line)[0])
    if len(words) == 1 or words[0].startswith("-"):
        # A verb in a sentence, or how Invoke itself is asked.
        assert words[-1] in {*tasks.line.verbs, "--list", "VERB", "X", "bash"}
        return
    asked = [word for word in place_options(words, tasks.line.verbs) if word != "--list"]
    # All verbs are copied for each line that is parsed.
    contexts = [verb for verb in verbs() if verb.name in asked]
    Parser(contexts=contexts, initial=ParserContext(args=())).parse_argv(asked)


@pytest.mark.parametrize(
    ("place", "name"),
    sorted({(place, name) for place, line in lines() for name in re.findall(r"--plan[ =]([\w-]+)", line)}),
)
def test_a_plan_that_a_printed_line_names_is_there(place, name):
    assert name in {*plan_file.plan_files(ROOT), *OWN}
