"""The range of a contrast, by hand. Every input is constructed."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from report.stats.contrast import (
    Assumption,
    assumed_hours,
    contrast_interval,
    turning_size,
)
from report.stats.intervals import Doubt, Runs, critical_t

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
    assert found is not None and found.df == 2
    assert math.log(found.estimate) == pytest.approx(0.52)
    assert reach(found) == pytest.approx(4.302653 * 0.02 / math.sqrt(3), rel=1e-6)
    assert reach(contrast_interval(of, over, paired=False)) > reach(found)


def test_a_side_of_fewer_than_two_processes_has_no_range():
    one = Runs((5.0,), (1,))
    assert contrast_interval(FAST, one, paired=False, assumed=HOUR) is None
    assert contrast_interval(FAST, one, paired=True, assumed=HOUR) is None
    assert contrast_interval(one, one, paired=True, assumed=HOUR) is None
    assert contrast_interval(FAST, Runs((5.0, 0.0, 5.0), (1, 1, 1)), paired=True) is None


NEAR = st.lists(st.floats(0.9, 1.1), min_size=2, max_size=5)
IN_BLOCKS = st.lists(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=4), min_size=1, max_size=5)


def in_blocks(blocks, shifts=(1.0,) * 5):
    """Runs whose values are each times their block's shift."""
    values = tuple(value * shifts[at] for at, block in enumerate(blocks) for value in block)
    return Runs(values, tuple(at for at, block in enumerate(blocks) for _ in block))


@settings(max_examples=40)
@given(NEAR, NEAR, st.lists(st.floats(0, 0.1), max_size=4))
def test_what_is_assumed_never_makes_a_range_narrower(a, b, sizes):
    assumed = [Assumption("machine", size) for size in sizes]
    of, over = (Runs(tuple(values), (1,) * len(values)) for values in (a, b))
    alone, found = (contrast_interval(of, over, paired=False, assumed=each) for each in ((), assumed))
    assert alone is not None and found is not None
    assert found.low <= alone.low and found.high >= alone.high


@settings(max_examples=40)
@given(IN_BLOCKS, IN_BLOCKS, st.booleans(), st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5))
def test_swapping_inverts_a_range_and_what_a_block_does_to_both_sides_moves_no_paired_one(
    a, b, paired, shifts
):
    straight, swapped = (
        contrast_interval(in_blocks(of), in_blocks(over), paired=paired) for of, over in ((a, b), (b, a))
    )
    assert (swapped.low, swapped.high) == pytest.approx((1 / straight.high, 1 / straight.low), rel=1e-6)
    shifts = shifts if paired else shifts[:1] * 5
    shifted = contrast_interval(in_blocks(a, shifts), in_blocks(b, shifts), paired=paired)
    assert (shifted.low, shifted.high) == pytest.approx((straight.low, straight.high), rel=1e-6)


@settings(max_examples=40)
@given(NEAR, NEAR, st.integers(2, 30))
def test_several_comparisons_widen_a_range_as_a_higher_level_does(a, b, comparisons):
    of, over = Runs(tuple(a)), Runs(tuple(b))
    together = contrast_interval(of, over, paired=False, assumed=HOUR, comparisons=comparisons)
    alone = contrast_interval(of, over, paired=False, assumed=HOUR, level=1 - 0.05 / comparisons)
    assert together is not None and alone is not None
    assert (together.low, together.high) == pytest.approx((alone.low, alone.high))


def test_a_difference_that_may_be_none_is_welchs_without_logarithms():
    of, over = Runs((0.0, 0.2, 0.1)), Runs((0.0, -0.1, 0.05))
    found = contrast_interval(of, over, paired=False, logs=False)
    error = math.sqrt(np.var(of.values, ddof=1) / 3 + np.var(over.values, ddof=1) / 3)
    assert found is not None and found.estimate == pytest.approx(0.1 + 0.05 / 3)
    assert found.high - found.estimate == pytest.approx(critical_t(0.95, found.df) * error)


def test_sides_without_a_spread_say_so_and_one_takes_the_other_s_degrees_of_freedom():
    steady = contrast_interval(Runs((0.1,) * 3), Runs((0.3,) * 3), paired=False)
    assert steady is not None and steady.low == pytest.approx(steady.high)
    assert steady.notes == (Doubt("no-spread"),)
    half = contrast_interval(FAST, Runs((5.0,) * 3), paired=False)
    assert half is not None and (half.df, half.notes) == (pytest.approx(2), ())
    odd = contrast_interval(Runs((10.0, 10.1, 9.9, 15.0)), FAST, paired=False)
    assert odd is not None and odd.notes[0].name == "odd-run"


@pytest.mark.parametrize(
    ("of", "over", "paired", "sizes"),
    [
        ((1, 1, 1), (1, 1, 1), True, [0.005]),
        ((1, 1, 1), (1, 1, 1), False, [0.01, 0.01]),
        ((1, 2, 3), (1, 1, 2), False, [0.01]),
        ((1, 2, 3), (1, 2, 3), True, []),
        ((), (), False, []),
    ],
)
def test_beside_a_publication_or_an_order_another_hour_is_assumed_where_too_few_blocks_show_it(
    of, over, paired, sizes
):
    sides = Runs(FAST.values, of), Runs(SLOW.values, over)
    hours = assumed_hours(*sides, paired=paired)
    assert [each.size for each in hours] == sizes
    found = contrast_interval(*sides, paired=False, assumed=hours)
    assert found is not None and found.hour_assumed == max([0.0, *(size for size in sizes if size > 0.005)])


MEASURED = Assumption("machine", 0.004, 2)


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
