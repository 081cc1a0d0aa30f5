"""The replicate is a process: what one does, what becomes of its rounds, and the verdict between them."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from benchmarks import processes
from benchmarks.interleaved import interleaved
from benchmarks.processes import CONTROL, FIRST, SECOND, Comparison, Measured

BOUNDS = (0.98, 1.02)


def process(ratio: float, control: float = 1.0, rounds: int = 8) -> Measured:
    seconds = {FIRST: [ratio] * rounds, SECOND: [1.0] * rounds, CONTROL: [control] * rounds}
    return Measured("16 images, ours over theirs", 2, seconds)


def comparison(*ratios: float, control: float = 1.0) -> Comparison:
    measured = tuple(process(ratio, control) for ratio in ratios)
    return Comparison("resnet18, default", measured, BOUNDS, 60.0)


@pytest.mark.parametrize(("backwards", "order"), [(False, "abccba"), (True, "cbaabc")])
def test_a_round_runs_every_side_there_and_back_so_that_a_steady_drift_cancels(backwards, order):
    ran: list[str] = []

    def drifting(side: str) -> float:
        ran.append(side)
        return 2.0 + 0.1 * len(ran)

    sides = {side: lambda side=side: drifting(side) for side in "abc"}
    seconds = interleaved(sides, 3, backwards=backwards)
    assert "".join(ran) == order * 3
    for a, b, c in zip(*seconds.values(), strict=True):
        assert a == pytest.approx(b) == pytest.approx(c)


def test_a_burst_in_one_round_does_not_move_its_process_and_a_process_is_one_value():
    measured = process(1.01)
    measured.seconds[FIRST][3] = 20.0  # type: ignore[index]
    assert measured.ratio(FIRST, SECOND) == pytest.approx(1.01)
    line = Comparison("x", (measured,) * 6, BOUNDS, 1.0)
    assert line.interval().n == (6,)


def test_the_interval_is_between_processes_however_many_rounds_each_had():
    ratios = (0.99, 1.0, 1.01, 1.02, 0.98, 1.0)
    few, many = (
        Comparison("x", tuple(process(ratio, rounds=rounds) for ratio in ratios), BOUNDS, 1.0).interval()
        for rounds in (1, 100)
    )
    student = stats.ttest_1samp(np.log(ratios), 0).confidence_interval(0.95)
    assert few is not None and many is not None
    assert (few.low, few.high) == pytest.approx((many.low, many.high))
    assert (few.low, few.high) == pytest.approx(tuple(np.exp(student)))


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((1.000, 1.001, 0.999, 1.002, 1.000), "pass"),
        ((0.97, 1.03, 0.98, 1.02, 1.00), "not shown"),
        ((1.05, 1.051, 1.049, 1.05, 1.05), "fail"),
        ((0.95, 0.951, 0.949, 0.95, 0.95), "fail"),
        ((1.0, 1.0, 1.0, 1.0), "not shown"),
    ],
)
def test_it_passes_inside_the_bounds_fails_outside_and_of_four_processes_nothing_is_shown(ratios, word):
    line = comparison(*ratios)
    assert line.word == word
    assert line.line().endswith(word)


def test_a_line_has_its_control_of_the_same_processes_and_cannot_fail_by_it():
    line = comparison(*[1.0, 1.001] * 3, control=1.3)
    assert line.word == "pass"
    assert "control 1.300 (1.300 to 1.300) (6 processes in 60 s): pass" in line.line()


def test_no_process_begins_after_the_seconds_and_one_that_takes_longer_ends_the_line():
    asked = []

    def child(number: int, left: float) -> Measured | None:
        asked.append((number, left))
        return process(1.0) if number < 2 else None

    line = processes.processes("x", child, 6, 60.0, BOUNDS)
    assert [number for number, _ in asked] == [0, 1, 2]
    assert all(0 < left <= 60 for _, left in asked)
    assert len(line.processes) == 2
    assert processes.processes("x", child, 6, 0.0, BOUNDS).processes == ()


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A module in place of one of the benchmarks' own."""
    monkeypatch.setattr(processes, "ROOT", tmp_path)

    def write(source: str) -> None:
        (tmp_path / "fake.py").write_text(source, encoding="utf-8")

    return write


def run(*arguments: str, seconds: float = 30.0) -> Measured | None:
    return processes.run_module(Path(sys.executable), "fake", arguments, seconds, {"VARIABLE": "set"})


def test_a_process_gets_arguments_and_variables_and_its_last_line_is_read(fake):
    fake(
        "import json, os, sys\n"
        "print('chatter')\n"
        "what = f\"{sys.argv[1]} {os.environ['VARIABLE']}\"\n"
        "print(json.dumps({'what': what, 'steps': 2, 'seconds': {'first': [1.0]}}))\n"
    )
    assert run("argument") == Measured("argument set", 2, {"first": [1.0]})


def test_a_process_that_fails_says_why_and_one_that_is_too_slow_is_none(fake):
    fake("raise ValueError('the reason')")
    with pytest.raises(SystemExit, match="the reason"):
        run()
    fake("import time; time.sleep(60)")
    assert run(seconds=0.2) is None


def test_a_step_is_the_first_side_s_and_its_time_the_median_of_all_rounds():
    assert math.isclose(comparison(0.4, 0.4, 0.6).step_seconds, 0.2)
