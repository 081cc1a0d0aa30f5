"""The interval of ratios that were taken side by side, where a neighbour's bursts have long tails."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.paired import trimmed_interval
from report.stats.intervals import Runs, blocks_interval

DRAWS = 400


def bursts(seed: int, n: int = 60) -> list[float]:
    """Ratios about 1.00 with a spread of 2 %; one in eight met a burst, on either side alike."""
    rng = np.random.default_rng(seed)
    logs = rng.normal(0.0, 0.02, n)
    logs += np.where(rng.random(n) < 1 / 8, rng.normal(0.0, 1.0, n), 0.0)
    return [float(value) for value in np.exp(logs)]


def test_the_interval_holds_the_truth_as_often_as_it_says_and_is_far_narrower_than_student_s():
    found = [
        (trimmed_interval(ratios), blocks_interval(Runs(tuple(ratios))))
        for ratios in map(bursts, range(DRAWS))
    ]
    held = sum(one is not None and one.includes(1.0) for one, _ in found) / DRAWS
    assert 0.92 <= held <= 0.98
    widths = [(one.high - one.low) / (other.high - other.low) for one, other in found if one and other]
    assert np.median(widths) < 0.2


def test_without_bursts_it_is_little_wider_than_student_s():
    rng = np.random.default_rng(5)
    drawn = [list(np.exp(rng.normal(0.01, 0.02, 60))) for _ in range(100)]
    pairs = [(trimmed_interval(ratios), blocks_interval(Runs(tuple(ratios)))) for ratios in drawn]
    widths = [(one.high - one.low) / (other.high - other.low) for one, other in pairs if one and other]
    assert 1.0 < np.median(widths) < 1.25


def test_a_fifth_is_cut_from_each_end_and_the_rest_decides():
    found = trimmed_interval([0.001, 1.1, 1.1, 1.1, 1000.0])
    assert found is not None
    assert (found.low, found.estimate, found.high) == (pytest.approx(1.1),) * 3
    assert (found.n, found.df) == ((5,), 2)


def test_fewer_than_five_ratios_have_no_interval():
    assert trimmed_interval([1.0, 1.1, 1.0, 1.1]) is None
    assert math.isclose(trimmed_interval([2.0] * 5).estimate, 2.0)  # type: ignore[union-attr]
