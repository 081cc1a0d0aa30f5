from __future__ import annotations

import subprocess
import sys

import pytest

from benchmarks import sensing
from tests.helpers import ROOT


@pytest.mark.slow
def test_the_intervals_cover_what_is_asked_of_them_and_the_methodology_prints_the_same_table():
    ran = subprocess.run(
        [sys.executable, "-m", "benchmarks.coverage"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    page = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    assert ran.stdout.strip() in page


@pytest.mark.slow
def test_the_methodology_prints_what_a_sensor_makes_of_a_training_s_energy():
    page = (ROOT / "docs" / "methodology.md").read_text(encoding="utf-8")
    assert f"{sensing.BEGIN}\n{sensing.table()}\n{sensing.END}" in page
