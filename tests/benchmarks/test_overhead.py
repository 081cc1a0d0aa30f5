"""What our own measuring costs: the loops for real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.overhead import MODELS
from tests.helpers import ROOT
from tests.helpers.workload_runner import PYTHON

OPTIONS = ("--processes", "1", "--rounds", "1", "--block-seconds", "0.1")


@pytest.mark.torch
@pytest.mark.whole
@pytest.mark.parametrize("model", MODELS)
def test_the_loops_run_in_a_process_and_one_process_shows_nothing(model):
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.overhead", PYTHON, "--model", model, *OPTIONS],
        cwd=ROOT,
        # No figure comes of it, and a second thread costs more than it saves.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[-1].startswith(f"{model}: too few, 1 processes in ")
