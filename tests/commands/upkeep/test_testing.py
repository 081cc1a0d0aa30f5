"""`invoke test`: which interpreters the tests are given."""

from __future__ import annotations

import shutil

from commands import upkeep as testing
from harness.engine.venv import STAMP
from harness.image.catalog import load_images
from harness.image.spec import venv_name
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
