"""One name has one meaning on the host's side: harness, report and commands."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.helpers import ROOT

SIDES = ("harness", "report", "commands")


@cache
def trees(side: str) -> dict[Path, ast.Module]:
    """The syntax trees of a side's modules."""
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / side).rglob("*.py")}


def types(tree: ast.Module) -> Iterator[str]:
    """The classes of a module, and its aliases: assigned names with a capital that are not constants."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body:
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                yield target.id


def test_a_type_of_the_host_s_side_has_a_name_of_its_own():
    found = Counter(name for side in SIDES for tree in trees(side).values() for name in set(types(tree)))
    assert not {name for name, count in found.items() if count > 1}


@pytest.mark.parametrize("side", SIDES)
def test_no_docstring_begins_with_of(side):
    begun = [
        f"{path.name}:{node.lineno}"
        for path, tree in trees(side).items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and str(node.value.value).startswith("Of ")
    ]
    assert not begun
