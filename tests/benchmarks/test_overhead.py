"""What measuring costs: what becomes of a replicate's rounds, the verdict between replicates, both loops."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import overhead
from benchmarks.overhead import OverheadComparison, SideSeconds
from tests.helpers.workload_runner import PYTHON


def test_a_burst_in_one_round_does_not_move_its_replicate():
    assert SideSeconds([1.01] * 3 + [20.0] + [1.01] * 4, [1.0] * 9).ratio == pytest.approx(1.01)


def test_the_interval_is_student_s_between_replicates():
    ratios = (0.99, 1.0, 1.01, 1.02, 0.98, 1.0)
    student = stats.ttest_1samp(np.log(ratios), 0).confidence_interval(0.95)
    interval = OverheadComparison(ratios, 1.0).interval
    assert (interval.low, interval.high) == pytest.approx(tuple(np.exp(student)))


@pytest.mark.parametrize(
    ("ratios", "code", "words"),
    [
        ((1.0, 1.001, 0.999, 1.002, 1.0), 0, "within its bounds"),
        ((1.05, 1.051, 1.049, 1.05, 1.05), 1, "outside its bounds"),
        ((0.95, 0.951, 0.949, 0.95, 0.95), 0, "within its bounds"),
        ((0.97, 1.03, 0.98, 1.02, 1.0), 3, "± 1.5 % would take about 46 min"),
        ((1.0, 1.0, 1.0, 1.0), 3, "not shown by 4 replicates in 10 min; 5 are needed"),
    ],
)
def test_a_line_says_what_is_shown_or_how_long_that_would_take(ratios, code, words):
    comparison = OverheadComparison(ratios, 600.0)
    assert comparison.exit_code == code
    assert words in comparison.line()


def test_no_replicate_begins_after_the_seconds_and_one_that_takes_longer_ends_the_comparison():
    asked = []

    def replicate(left: float) -> SideSeconds | None:
        asked.append(left)
        return SideSeconds([1.0], [1.0]) if len(asked) < 3 else None

    assert overhead.compared(replicate, 60.0).ratios == (1.0, 1.0)
    assert len(asked) == 3 and all(0 < left <= 60 for left in asked)
    assert overhead.compared(replicate, 0.0).ratios == ()


def test_a_loop_that_fails_says_why_and_one_that_is_too_slow_is_none(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(overhead, "ROOT", tmp_path)
    module = tmp_path / "benchmarks" / "loops.py"
    module.write_text("raise ValueError('the reason')")
    with pytest.raises(SystemExit, match="the reason"):
        overhead.loops(Path(sys.executable), 30.0)
    module.write_text("import time; time.sleep(60)")
    assert overhead.loops(Path(sys.executable), 0.2) is None


@pytest.mark.torch
@pytest.mark.whole
def test_both_loops_run_in_a_process(monkeypatch):
    # No figure comes of it, and a second thread costs more than it saves.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = overhead.loops(Path(PYTHON), 120.0)
    assert len(found.ours) == len(found.theirs) == 4
    assert min(*found.ours, *found.theirs) > 0
