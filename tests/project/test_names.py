"""One name has one meaning on a side: the host's, which is harness, report and commands, and workloads'."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.project.test_project import ROOT, modules

FRAMEWORKS = ROOT / "workloads" / "frameworks"
SIDES = {
    side: [
        ast.parse(path.read_text(encoding="utf-8"))
        for path in modules(*side.split())
        if not path.is_relative_to(FRAMEWORKS)
    ]
    for side in ("harness report commands", "workloads")
}
"""The syntax trees of each side's modules."""


def types(tree: ast.Module) -> Iterator[str]:
    """The classes of a module, and the host's aliases: names with a capital that are not constants."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body if tree not in SIDES["workloads"] else ():
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                yield target.id


@pytest.mark.parametrize("side", SIDES)
def test_a_type_has_a_name_of_its_own_on_its_side(side):
    found = Counter(name for tree in SIDES[side] for name in set(types(tree)))
    assert not [name for name, count in found.items() if count > 1]


@pytest.mark.parametrize("side", SIDES)
def test_no_docstring_begins_with_of(side):
    documented = (ast.ClassDef, ast.FunctionDef, ast.Module)
    nodes = [node for tree in SIDES[side] for node in ast.walk(tree) if isinstance(node, documented)]
    assert not [text for node in nodes if (text := ast.get_docstring(node) or "").startswith("Of ")]
