"""The interval of one side's mean, and what makes it doubtful. Every input is constructed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from report.stats.intervals import (
    BETWEEN_SESSIONS,
    Doubt,
    Runs,
    blocks_interval,
    outlying_run,
    rare_runs_missed,
    unequal_spread,
)


def runs(*blocks: Sequence[float]) -> Runs:
    values = tuple(value for block in blocks for value in block)
    return Runs(values, tuple(number for number, block in enumerate(blocks, 1) for _ in block))


def test_the_interval_of_a_mean_is_students_and_that_of_a_geometric_mean_is_on_logarithms():
    interval = blocks_interval(Runs((1.0, 2.0, 3.0)), logs=False)
    assert interval is not None
    assert (interval.low, interval.estimate) == (pytest.approx(2 - 4.303 / math.sqrt(3), abs=1e-3), 2.0)
    assert interval.df == 2
    interval = blocks_interval(Runs((1.0, math.e, math.e**2)))
    assert interval is not None and interval.estimate == pytest.approx(math.e)
    assert math.log(interval.low) == pytest.approx(1 - 4.303 / math.sqrt(3), abs=1e-3)


def test_the_interval_of_one_line_stands_on_its_block_means():
    interval = blocks_interval(runs((10.0, 11.0), (12.0, 13.0), (14.0, 15.0)), logs=False)
    assert interval is not None
    assert interval.df == 2
    assert interval.high - 12.5 == pytest.approx(4.303 * 2 / math.sqrt(3), abs=1e-3)


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize("blocks", [(), (1,)])
def test_one_run_gives_no_interval_nor_does_a_logarithm_of_what_is_not_positive(logs, blocks):
    assert blocks_interval(Runs((1.0,), blocks), logs=logs) is None
    assert (blocks_interval(Runs((0.0, 1.0), blocks * 2), logs=logs) is None) == logs


def test_in_fewer_than_three_blocks_a_spread_between_them_joins_where_it_is_assumed():
    found = blocks_interval(runs((10.0, 10.0)), assumed=BETWEEN_SESSIONS)
    assert found is not None and found.hour_assumed == BETWEEN_SESSIONS
    assert math.log(found.high / 10) == pytest.approx(1.96 * BETWEEN_SESSIONS, rel=1e-4)
    for side, assumed in (
        (runs((10.0, 10.1)), 0.0),
        (Runs((10.0, 10.1)), 0.01),
        (runs(*[(10.0,)] * 3), 0.01),
    ):
        alone = blocks_interval(side, assumed=assumed)
        assert alone is not None and alone.hour_assumed == 0


def test_two_blocks_that_differ_by_more_than_is_assumed_count_as_they_are():
    near, far = (
        blocks_interval(runs((10.0, 10.1), (10.0 * by, 10.1 * by)), assumed=BETWEEN_SESSIONS)
        for by in (1.001, 1.1)
    )
    assert near is not None and far is not None
    assert far.high / far.low > 1.1 > near.high / near.low


@pytest.mark.parametrize(
    ("values", "change"),
    [
        ([10.0, 10.1, 9.9, 15.0], 0.5),
        ([10.0, 10.1, 9.9, 5.0], -0.5),
        ([10.0, 15.0], None),
        ([10.0, 10.1, 10.4], None),
        ([8.0, 10.0, 12.0, 14.0], None),
    ],
)
def test_a_run_apart_from_the_others_is_a_doubt_and_common_scatter_is_none(values, change):
    told = change and Doubt("odd-run", {"change": pytest.approx(change), "others": len(values) - 1})
    assert outlying_run(values) == told


def test_sides_of_very_unequal_scatter_are_said_to_be_so():
    quiet, loud = [1.0, 1.001, 0.999, 1.0005], [1.0, 1.1, 0.9, 1.05]
    assert unequal_spread(quiet, loud) == Doubt("unequal-spread", {"times": pytest.approx(101, abs=0.5)})
    assert unequal_spread(loud, quiet) == unequal_spread(quiet, loud)
    assert unequal_spread(loud, [1.0, 1.04, 0.96, 1.02]) is None
    assert unequal_spread(loud, [1.0, 1.0]) is None
    assert unequal_spread([1.0, 1.001, 0.999], [1.0, 1.006, 0.994]) is None, "three runs show no such thing"


def test_few_runs_say_how_often_they_would_miss_a_rare_slow_one():
    assert rare_runs_missed(5) == Doubt("rare-runs", {"runs": 5})
    assert rare_runs_missed(28) and rare_runs_missed(29) is None and rare_runs_missed(0) is None


@pytest.mark.parametrize(("blocks", "n"), [(1, 10), (2, 5), (3, 4)])
def test_the_nominal_95_percent_of_a_figure_covers_at_any_hour_whatever_the_blocks(blocks, n):
    rng = np.random.default_rng(blocks)
    logs = rng.normal(0, 0.01, (800, blocks, 1)) + rng.normal(0, 0.005, (800, blocks, n))
    found = [blocks_interval(runs(*side), assumed=BETWEEN_SESSIONS) for side in np.exp(logs).tolist()]
    assert sum(interval.includes(1.0) for interval in found) / 800 >= 0.93
