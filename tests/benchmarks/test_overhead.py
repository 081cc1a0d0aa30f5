"""What our own measuring costs: the order of the blocks, the verdict, and the loop for real."""

from __future__ import annotations

import itertools
import random
import subprocess

import pytest

from benchmarks.overhead import LEAST_FOURS, Overhead, fours, half_width, interval_of, waits
from report.stats.intervals import Runs, blocks_interval
from tests.helpers import ROOT
from tests.helpers.workload_runner import PYTHON, need_torch

OPTIONS = ("--minutes", "0", "--block-seconds", "0.1", "--model", "resnet18")


def test_blocks_come_in_the_order_abba_so_that_a_steady_drift_cancels():
    order = []

    def drifting(kind: str) -> float:
        order.append(kind)
        return 2.0 + 0.1 * len(order)

    ratios = list(itertools.islice(fours(drifting), 3))
    assert order[:8] == ["ours", "bare", "bare", "ours"] * 2
    assert ratios == [pytest.approx(1.0)] * 3


def test_it_goes_on_until_the_interval_is_narrow_enough():
    noise = random.Random(7)
    found = interval_of((noise.gauss(1.003, 0.02) for _ in range(1000)), lambda: False)
    assert found is not None
    assert half_width(found) <= 0.007 < 0.02
    assert 10 < found.n[0] < 100


def test_it_ends_when_the_time_is_over_and_too_few_blocks_show_nothing():
    over = iter([False] * LEAST_FOURS + [True])
    found = interval_of(itertools.cycle([0.9, 1.1]), lambda: next(over))
    assert found is not None and found.n == (LEAST_FOURS + 1,)
    assert interval_of([1.0, 1.1, 1.0], lambda: False) is None
    assert interval_of(itertools.cycle([0.9, 1.1]), lambda: True) is None


@pytest.mark.parametrize(
    ("ratios", "word"),
    [
        ((1.000, 1.001, 1.002), "pass"),
        ((1.007, 1.008, 1.009), "not shown"),
        ((1.000, 1.015, 1.030), "not shown"),
        ((1.019, 1.020, 1.021), "fail"),
    ],
)
def test_the_verdict_is_that_of_the_whole_interval_and_stands_last(ratios, word):
    found = Overhead("a loop", blocks_interval(Runs(tuple(ratios))), 60)
    assert found.word == word
    assert found.line().endswith(word)


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
def test_both_loops_run_in_one_process_and_a_time_too_short_is_not_shown():
    need_torch()
    done = subprocess.run(
        [PYTHON, "-B", "benchmarks/overhead.py", *OPTIONS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    last = done.stdout.splitlines()[-1]
    assert last.startswith("ResNet-18, 16 images of 32 px, on ") and last.endswith("not shown")
