"""What measuring costs: what becomes of a replicate's rounds, the verdict between replicates, both sides."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import overhead
from benchmarks.overhead import LOOP, OverheadComparison, SideSeconds
from tests.helpers.workload_runner import PYTHON


def test_a_burst_in_one_round_does_not_move_its_replicate():
    assert SideSeconds([1.01] * 3 + [20.0] + [1.01] * 4, [1.0] * 9).ratio == pytest.approx(1.01)


def test_the_interval_is_student_s_between_replicates():
    ratios = (0.99, 1.0, 1.01, 1.02, 0.98, 1.0)
    student = stats.ttest_1samp(np.log(ratios), 0).confidence_interval(0.95)
    interval = OverheadComparison("convnet", ratios, 1.0).interval
    assert (interval.low, interval.high) == pytest.approx(tuple(np.exp(student)))


@pytest.mark.parametrize(
    ("name", "ratios", "code", "words"),
    [
        ("convnet", (1.0, 1.001, 0.999, 1.002, 1.0), 0, "within its bounds"),
        ("convnet", (1.05, 1.051, 1.049, 1.05, 1.05), 1, "outside its bounds"),
        ("convnet", (0.95, 0.951, 0.949, 0.95, 0.95), 1, "outside its bounds"),
        (LOOP, (0.95, 0.951, 0.949, 0.95, 0.95), 0, "within its bounds"),
        ("convnet", (0.97, 1.03, 0.98, 1.02, 1.0), 3, "± 1.5 % would take about 46 min"),
        ("convnet", (1.0, 1.0, 1.0, 1.0), 3, "not shown by 4 replicates in 10 min; 5 are needed"),
    ],
)
def test_a_line_says_what_is_shown_or_how_long_that_would_take(name, ratios, code, words):
    comparison = OverheadComparison(name, ratios, 600.0)
    assert comparison.exit_code == code
    assert words in comparison.line()


def test_no_replicate_begins_after_the_seconds_and_one_that_takes_longer_ends_the_comparison():
    asked = []

    def replicate(number: int, left: float) -> SideSeconds | None:
        asked.append((number, left))
        return SideSeconds([1.0], [1.0]) if number < 2 else None

    assert overhead.compare_sides(LOOP, replicate, 60.0).ratios == (1.0, 1.0)
    assert [number for number, _ in asked] == [0, 1, 2]
    assert all(0 < left <= 60 for _, left in asked)
    assert overhead.compare_sides(LOOP, replicate, 0.0).ratios == ()


@pytest.mark.parametrize("pair", overhead.PROGRAMS, ids=lambda pair: pair.workload)
def test_both_sides_are_asked_for_the_same_work_and_one_of_them_is_the_program_as_it_is(pair):
    ours, theirs = (
        overhead.make_trial(pair, workload, 60.0).asked for workload in (pair.workload, "program")
    )
    shapes = [{name: getattr(asked.variant, name) for name in pair.shape} for asked in (ours, theirs)]
    assert shapes[0] | {"model": shapes[0]["model"].removeprefix("timm/")} == shapes[1] == dict(pair.shape)
    steps = pair.steps * (pair.rounds + overhead.LEFT_OUT)
    assert ours.variant.limit.steps == steps + 1
    told = theirs.variant.options.get(pair.steps_option) if pair.steps_option else None
    assert (told, theirs.variant.limit.steps) in ((steps, None), (None, steps + 1))
    assert (ours.file, theirs.file.name) == (None, pair.file)


def test_every_second_replicate_goes_the_other_way_and_one_that_fails_is_none(monkeypatch):
    took, ran = {"word_lm": [1.0, 1.0, 1.0], "program": [2.0, 2.0]}, []

    def side(python, data, pair, seconds, workload):
        ran.append(workload)
        return took[workload]

    monkeypatch.setattr(overhead, "run_side", side)
    ratios = [overhead.run_retold(None, None, overhead.PROGRAMS[0], number, 10.0).ratio for number in (0, 1)]
    assert (ratios, ran) == ([0.5, 0.5], ["word_lm", "program", "program", "word_lm"])
    took["program"] = None
    assert overhead.run_retold(None, None, overhead.PROGRAMS[0], 1, 10.0) is None


def test_a_loop_that_fails_says_why_and_one_that_is_too_slow_is_none(tmp_path, monkeypatch):
    (tmp_path / "benchmarks").mkdir()
    monkeypatch.setattr(overhead, "ROOT", tmp_path)
    module = tmp_path / "benchmarks" / "loops.py"
    module.write_text("raise ValueError('the reason')")
    with pytest.raises(SystemExit, match="the reason"):
        overhead.run_loops(Path(sys.executable), (), 0, 30.0)
    module.write_text("import time; time.sleep(60)")
    assert overhead.run_loops(Path(sys.executable), (), 0, 0.2) is None


@pytest.mark.torch
@pytest.mark.whole
def test_both_loops_run_in_a_process(monkeypatch):
    # No figure comes of it, and a second thread costs more than it saves.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    found = overhead.run_loops(Path(PYTHON), ("--rounds", "1", "--block-seconds", "0.1"), 1, 120.0)
    assert len(found.ours) == len(found.theirs) == 1
    assert min(*found.ours, *found.theirs) > 0
