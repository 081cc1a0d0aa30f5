"""One name has one meaning on a side: the host's, which is harness, report and commands, and workloads'."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

import pytest

from tests.project.test_project import ROOT, modules

FRAMEWORKS = ROOT / "workloads" / "frameworks"


@pytest.fixture(scope="module", params=["harness report commands", "workloads"])
def side(request) -> tuple[str, list[ast.Module]]:
    """A side and the syntax trees of its modules, which are many objects: no other test keeps them."""
    paths = (path for path in modules(*request.param.split()) if not path.is_relative_to(FRAMEWORKS))
    return request.param, [ast.parse(path.read_text(encoding="utf-8")) for path in paths]


def types(tree: ast.Module, on: str) -> Iterator[str]:
    """The classes of a module, and the host's aliases: names with a capital that are not constants."""
    yield from (node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    for node in tree.body if on != "workloads" else ():
        for target in node.targets if isinstance(node, ast.Assign) else ():
            if isinstance(target, ast.Name) and target.id[0].isupper() and not target.id.isupper():
                yield target.id


def test_a_type_has_a_name_of_its_own_on_its_side(side):
    on, trees = side
    found = Counter(name for tree in trees for name in set(types(tree, on)))
    assert not [name for name, count in found.items() if count > 1]


def test_no_docstring_begins_with_of(side):
    documented = (ast.ClassDef, ast.FunctionDef, ast.Module)
    nodes = [node for tree in side[1] for node in ast.walk(tree) if isinstance(node, documented)]
    assert not [text for node in nodes if (text := ast.get_docstring(node) or "").startswith("Of ")]
