"""`invoke test`: which interpreters the tests are given, and which of them run."""

from __future__ import annotations

import shutil
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from commands import upkeep as testing
from harness.engine.venv import STAMP
from harness.image.catalog import load_images
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
    assert testing.built(tmp_path) == {"GPUDYNO_TEST_PYTHON": str(interpreter)}


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
