"""What our own measuring costs: how long the host waits between trials, and the loops for real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks.overhead import MODELS, waits
from tests.helpers import ROOT
from tests.helpers.workload_runner import PYTHON

OPTIONS = ("--processes", "1", "--rounds", "1", "--block-seconds", "0.1")


def test_the_host_waits_from_a_record_s_end_to_the_next_start_in_the_same_session_and_block():
    def record(session: str, started: str, seconds: float, block: int = 1) -> dict[str, object]:
        return {
            "session": session,
            "block": block,
            "started_at": f"2026-01-31T{started}Z",
            "wall_seconds": seconds,
        }

    found = waits(
        [
            record("b", "09:00:00", 5.0),
            record("a", "09:01:00", 20.0),
            record("a", "09:00:00", 58.5),
            record("a", "09:01:22", 20.0),
            record("a", "11:00:00", 20.0, block=2),
        ]
    )
    assert found == [pytest.approx(1.5), pytest.approx(2.0)]


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
