"""How peers are compared: fresh processes in either order, and the sides for real."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from benchmarks import peers
from benchmarks.processes import CONTROL, FIRST, SECOND, Measured
from tests.helpers import ROOT
from tests.helpers.workload_runner import PYTHON, need_torch


@pytest.fixture
def started(monkeypatch):
    """What each process was asked, in place of starting it."""
    asked = []

    def fake(python, module, arguments, seconds, variables):
        asked.append(tuple(arguments))
        return Measured("8 images, ours over theirs", 2, {FIRST: [1.1], SECOND: [1.0], CONTROL: [1.0]})

    monkeypatch.setattr(peers, "run_module", fake)
    return asked


def test_every_second_process_builds_the_sides_in_the_opposite_order(started):
    peers.main(["python", "--case", "lstm", "--profile", "default", "--processes", "4"])
    plain, backwards = ("lstm", "default", "8"), ("lstm", "default", "8", "--backwards")
    assert started == [plain, backwards, plain, backwards]


def test_a_compiled_line_begins_with_a_process_that_fills_the_cache_and_does_not_count(started):
    peers.main(["python", "--case", "resnet18", "--profile", "tuned", "--processes", "2"])
    assert [arguments[2] for arguments in started] == ["0", "8", "8"]


def test_the_figures_come_last_and_a_line_outside_its_bounds_is_the_exit_code(started, capsys):
    assert peers.main(["python", "--profile", "default", "--case", "resnet50", "--case", "lstm"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["resnet50", "lstm"]
    assert all(line.endswith("fail") for line in lines)


@pytest.mark.torch
@pytest.mark.whole
@pytest.mark.parametrize("case", ["resnet18", "lstm"])
def test_the_sides_of_a_case_run_in_a_process_and_one_process_shows_nothing(case):
    need_torch()
    options = ("--case", case, "--profile", "default", "--processes", "1", "--rounds", "1")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.peers", PYTHON, *options],
        cwd=ROOT,
        # No figure comes of it, and a second thread costs more than it saves.
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{case}, default: too few, 1 processes in ")
