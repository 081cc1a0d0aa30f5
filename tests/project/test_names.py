"""One name has one meaning on a side: the host's, which is harness, report and commands, and workloads'."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.project.test_project import ROOT, modules

FRAMEWORKS = ROOT / "workloads" / "frameworks"
VERSE = re.compile(r"\AOf |\b(told|anew|stands|those\s+that)\b")
"""How no docstring begins, and words that it does not have: "reported", "again", "is" and the noun say it."""


@pytest.fixture(scope="module", params=["harness report commands", "workloads"])
def side(request) -> tuple[str, dict[Path, ast.Module]]:
    """A side and the syntax trees of its modules, which are many objects: no other test keeps them."""
    paths = modules(*request.param.split())
    return request.param, {path: ast.parse(path.read_text(encoding="utf-8")) for path in paths}


def types(tree: ast.Module, on: str) -> Iterator[str]:
    """The classes of a module, and the host's aliases: names with a capital that are not constants."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body if on != "workloads" else ():
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                yield target.id


def test_a_module_has_a_basename_of_its_own_on_its_side(side):
    found = Counter(path.stem for path in side[1] if path.stem != "__init__")
    assert not [name for name, count in found.items() if count > 1]


def test_a_type_has_a_name_of_its_own_on_its_side(side):
    on, trees = side[0], [tree for path, tree in side[1].items() if not path.is_relative_to(FRAMEWORKS)]
    found = Counter(name for tree in trees for name in set(types(tree, on)))
    assert not [name for name, count in found.items() if count > 1]


def test_no_docstring_begins_with_of_or_has_a_word_of_verse(side):
    nodes = [node.value for tree in side[1].values() for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    assert not [text for text in texts if VERSE.search(text)]
