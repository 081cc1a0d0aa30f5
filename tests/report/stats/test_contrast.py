"""The range of a contrast, by hand. Every input is constructed."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.stats.contrast import Assumption, SideTerms, assumptions, contrast_interval, turning_size
from report.stats.intervals import Runs, critical_t

FAST = Runs((10.0, 10.2, 9.9), (1, 1, 1))
SLOW = Runs((5.0, 5.1, 5.05), (1, 1, 1))
Z = 1.959964
HOUR = (Assumption("hour", 0.005),)


def welch(a, b):
    """Of logarithms: the difference, its standard error, and Welch's degrees of freedom."""
    a, b = np.log(a), np.log(b)
    u, v = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    return a.mean() - b.mean(), math.sqrt(u + v), (u + v) ** 2 / (u**2 / (len(a) - 1) + v**2 / (len(b) - 1))


def reach(interval):
    assert interval is not None
    assert math.log(interval.high / interval.estimate) == pytest.approx(
        math.log(interval.estimate / interval.low)
    )
    return math.log(interval.high / interval.estimate)


@pytest.mark.parametrize("paired", [True, False])
def test_in_one_block_the_processes_are_the_replicates_and_what_is_assumed_adds_in_squares(paired):
    middle, error, df = welch(FAST.values, SLOW.values)
    found = contrast_interval(FAST, SLOW, paired=paired, assumed=HOUR)
    assert found is not None and found.df == pytest.approx(df)
    assert math.log(found.estimate) == pytest.approx(middle)
    assert reach(found) == pytest.approx(math.hypot(critical_t(0.95, df) * error, Z * 0.005), rel=1e-6)


def test_with_three_blocks_their_differences_are_the_replicates_where_the_sides_ran_side_by_side():
    hours, differences = np.array([0.0, 0.1, -0.1]), np.array([0.5, 0.52, 0.54])
    of, over = Runs(tuple(np.exp(hours + differences)), (1, 2, 3)), Runs(tuple(np.exp(hours)), (1, 2, 3))
    found = contrast_interval(of, over, paired=True)
    assert found is not None and (found.df, found.n) == (2, (3,))
    assert math.log(found.estimate) == pytest.approx(0.52)
    assert reach(found) == pytest.approx(4.302653 * 0.02 / math.sqrt(3), rel=1e-6)
    assert reach(contrast_interval(of, over, paired=False)) > reach(found)


def test_a_side_of_fewer_than_two_processes_has_no_range():
    one = Runs((5.0,), (1,))
    assert contrast_interval(FAST, one, paired=False, assumed=HOUR) is None
    assert contrast_interval(FAST, one, paired=True, assumed=HOUR) is None
    assert contrast_interval(one, one, paired=True, assumed=HOUR) is None
    assert contrast_interval(FAST, Runs((5.0, 0.0, 5.0), (1, 1, 1)), paired=True) is None


def test_both_quantiles_take_the_number_of_pairs_that_are_read_together():
    *_, error, df = welch(FAST.values, SLOW.values)
    found = contrast_interval(FAST, SLOW, paired=True, assumed=HOUR, comparisons=6)
    level = 1 - 0.05 / 6
    expected = math.hypot(critical_t(level, df) * error, critical_t(level, math.inf) * 0.005)
    assert found is not None and found.comparisons == 6
    assert reach(found) == pytest.approx(expected)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.9, 1.1), min_size=2, max_size=5),
    st.lists(st.floats(0.9, 1.1), min_size=2, max_size=5),
    st.lists(st.floats(0, 0.1), max_size=4),
)
def test_what_is_assumed_never_makes_a_range_narrower_and_swapping_the_sides_inverts_it(a, b, sizes):
    assumed = [Assumption("machine", size) for size in sizes]
    of, over = (Runs(tuple(values), (1,) * len(values)) for values in (a, b))
    alone, found, swapped = (
        contrast_interval(of, over, paired=False),
        contrast_interval(of, over, paired=False, assumed=assumed),
        contrast_interval(over, of, paired=False, assumed=assumed),
    )
    assert alone is not None and found is not None and swapped is not None
    assert found.low <= alone.low and found.high >= alone.high
    assert (swapped.low, swapped.high) == pytest.approx((1 / found.high, 1 / found.low))


HERE = SideTerms("a", "20260101-000001", "cpu", blocks=1, settled=True)
LATER, THERE = replace(HERE, session="20260102-000001"), replace(HERE, machine="b", session="20260103-000001")
MEASURED = Assumption("machine", 0.004, 2)


def enough(side: SideTerms) -> SideTerms:
    return replace(side, blocks=3)


@pytest.mark.parametrize(
    ("of", "over", "sizes"),
    [
        (HERE, HERE, [0.005]),
        (HERE, replace(HERE, settled=False), [0.005]),
        (enough(HERE), enough(HERE), []),
        (HERE, LATER, [0.01, 0.01]),
        (enough(HERE), LATER, [0.01]),
        (enough(HERE), enough(LATER), []),
        (HERE, THERE, [0.03, 0.03]),
        (enough(HERE), THERE, [0.03]),
        (replace(HERE, hours=MEASURED), THERE, [0.004, 0.03]),
        (replace(enough(HERE), hours=MEASURED), enough(THERE), []),
        (HERE, replace(LATER, settled=False), [0.01, 0.01, 0.05, 0.05]),
        (replace(HERE, settled=False), THERE, [0.03, 0.03, 0.05, 0.05]),
        (
            replace(enough(HERE), settled=False, device="cuda"),
            replace(THERE, settled=False),
            [0.03, 0.03, 0.05],
        ),
    ],
)
def test_what_a_range_assumes_follows_from_what_its_sides_share(of, over, sizes):
    assert [each.size for each in assumptions(of, over)] == sizes


def test_a_spread_that_another_work_s_blocks_show_counts_by_its_own_few_degrees_of_freedom():
    alone = contrast_interval(FAST, SLOW, paired=False)
    found = contrast_interval(FAST, SLOW, paired=False, assumed=[MEASURED])
    assert reach(found) ** 2 - reach(alone) ** 2 == pytest.approx((4.302653 * 0.004) ** 2, rel=1e-6)


def test_the_size_at_which_an_answer_turns_is_what_would_bring_the_range_to_one():
    other = Runs((9.7, 9.8, 9.75), (1, 1, 1))
    found = contrast_interval(FAST, other, paired=True, assumed=HOUR)
    assert found is not None and found.includes(1.0)
    assert turning_size(found, HOUR) is None
    found = contrast_interval(FAST, SLOW, paired=True, assumed=HOUR)
    assert found is not None
    size = turning_size(found, HOUR)
    assert size is not None and size > 0.1
    turned = contrast_interval(FAST, SLOW, paired=True, assumed=[Assumption("hour", size)])
    assert turned is not None and turned.low == pytest.approx(1.0)
