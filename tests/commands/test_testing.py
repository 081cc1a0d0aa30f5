"""`invoke test`: which halves run side by side, and which interpreters the tests are given."""

from __future__ import annotations

import os
import shutil
import sys
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from commands import test as testing
from harness.engine.venv import STAMP
from harness.image.images import load_images
from harness.image.spec import venv_name
from tests import conftest
from tests.helpers import ROOT


def test_the_environments_that_lie_in_the_clone_are_found_unasked_and_half_made_ones_are_not(tmp_path):
    shutil.copytree(ROOT / "docker", tmp_path / "docker")
    names = {
        name: venv_name(load_images(tmp_path).image(name), root=tmp_path) for name in ("cpu", "tensorflow")
    }
    for name in names.values():
        (tmp_path / ".venvs" / name).mkdir(parents=True)
    (tmp_path / ".venvs" / names["cpu"] / STAMP).write_text('{"unpinned_because": []}')
    interpreter = tmp_path / ".venvs" / names["cpu"] / "bin" / "python"
    assert testing.interpreter_variables(tmp_path) == {"GPUDYNO_TEST_PYTHON": str(interpreter)}


@pytest.mark.parametrize(
    ("required", "keyword", "args", "kept", "left_out"),
    [
        ("torch", "", ["tests"], ["short"], 1),
        ("torch,whole", "", ["tests"], ["short", "long"], None),
        ("", "long", ["tests"], ["short", "long"], None),
        ("", "", ["tests/a.py::long"], ["short", "long"], None),
    ],
)
def test_long_tests_run_where_all_or_some_by_name_are_asked_for(
    monkeypatch, required, keyword, args, kept, left_out
):
    monkeypatch.setenv("GPUDYNO_REQUIRE", required)
    items: list[Any] = [
        SimpleNamespace(
            name=name, get_closest_marker=lambda mark, long=name == "long": mark == "whole" and long
        )
        for name in ("short", "long")
    ]
    config: Any = SimpleNamespace(
        option=SimpleNamespace(keyword=keyword, markexpr=""), args=args, hook=Mock(), stash={}
    )
    conftest.pytest_collection_modifyitems(config, items)
    assert [item.name for item in items] == kept
    assert config.stash.get(conftest.LEFT_OUT) == left_out


SAYS_AND_ENDS = """
import sys
print("ran", *sys.argv[2:])
raise SystemExit(sys.argv[1] in " ".join(sys.argv[2:]))
"""


@pytest.mark.parametrize(("failing", "code"), [("--ignore=", 1), (" tests", 1), ("nothing", 0)])
def test_the_tests_of_some_folders_run_beside_the_others_and_a_failure_of_either_counts(
    tmp_path, monkeypatch, capfd, failing, code
):
    assert "-rs" in testing.PYTEST, "a skip does not say why"
    monkeypatch.setattr(testing, "PYTEST", (sys.executable, "-S", "-c", SAYS_AND_ENDS, failing, ""))
    assert testing.run_side_by_side(tmp_path, os.environ) == code
    said = capfd.readouterr().out
    assert f"ran  {' '.join(testing.BESIDE)}\n" in said
    assert f"ran  {' '.join(f'--ignore={folder}' for folder in testing.BESIDE)}\n" in said
