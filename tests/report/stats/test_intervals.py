from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from report.comparisons.unit_spread import unit_band
from report.stats.intervals import (
    Runs,
    between_machines,
    log_mean_interval,
    log_welch_ratio,
    mean_interval,
    outlying_run,
    quality_label,
    runs_needed,
    unequal_spread,
    welch_difference,
    within_machine,
)

seconds = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=12)

A = (10.0, 10.2, 9.9, 10.1)
B = (5.0, 5.1, 5.05)


def spread_out(values: list[float]) -> bool:
    return max(values) / min(values) > 1.001


def test_the_log_welch_interval_is_the_published_formula_with_welchs_degrees_of_freedom():
    a, b = np.log(A), np.log(B)
    u, v = a.var(ddof=1) / 4, b.var(ddof=1) / 3
    df = (u + v) ** 2 / (u**2 / 3 + v**2 / 2)
    found = log_welch_ratio(A, B)
    assert found is not None
    assert found.df == pytest.approx(df)
    assert found.estimate == pytest.approx(math.exp(a.mean() - b.mean()))
    assert (found.n, found.level, found.method, found.notes) == ((4, 3), 0.95, "log-Welch", ())


def test_equal_spreads_on_three_runs_a_side_take_students_quantile_for_four_degrees_of_freedom():
    found = log_welch_ratio(*(np.exp([middle, middle + 0.01, middle + 0.02]).tolist() for middle in (1, 0)))
    assert found is not None
    reach = 2.7764 * 0.01 * math.sqrt(2 / 3)
    assert math.log(found.high) == pytest.approx(1 + reach, rel=1e-5)
    assert math.log(found.low) == pytest.approx(1 - reach, rel=1e-5)


def test_the_mean_interval_is_students():
    found = mean_interval([1.0, 2.0, 3.0])
    assert found is not None
    assert (found.low, found.estimate) == (pytest.approx(2 - 4.303 / math.sqrt(3), abs=1e-3), 2.0)
    assert (found.n, found.df) == ((3,), 2)


def test_an_interval_of_a_geometric_mean_is_students_on_logarithms():
    found = log_mean_interval([1.0, math.e, math.e**2])
    assert found is not None
    assert math.log(found.low) == pytest.approx(1 - 4.303 / math.sqrt(3), abs=1e-3)
    assert found.estimate == pytest.approx(math.e)


@pytest.mark.parametrize("ratio", [log_welch_ratio, welch_difference])
def test_one_run_on_a_side_gives_no_interval(ratio):
    assert ratio([1.0], [1.0, 1.1]) is None
    assert ratio([1.0, 1.1], [1.0]) is None
    assert mean_interval([1.0]) is None
    assert log_mean_interval([1.0]) is None


def test_a_value_that_is_not_positive_has_no_ratio():
    assert log_welch_ratio([-0.1, 0.2, 0.05], B) is None
    assert log_welch_ratio(A, [0.0, 1.0]) is None


def test_identical_values_give_an_interval_of_no_width_that_says_so():
    found = log_welch_ratio([0.1] * 3, [0.3] * 3)
    assert found is not None
    assert found.low == pytest.approx(found.high)
    assert found.notes == ("identical values: no spread was seen",)


def test_one_side_without_spread_takes_the_others_degrees_of_freedom():
    found = log_welch_ratio(A, [5.0] * 3)
    assert found is not None
    assert found.df == pytest.approx(3)
    assert found.notes == ()


@given(seconds, seconds, st.floats(1e-3, 1e3))
def test_the_unit_of_both_sides_does_not_matter(a, b, factor):
    one, other = log_welch_ratio(a, b), log_welch_ratio([factor * x for x in a], [factor * x for x in b])
    assume(one is not None)
    assert (other.low, other.high) == (pytest.approx(one.low), pytest.approx(one.high))


@given(seconds, seconds)
def test_swapping_the_sides_inverts_the_interval(a, b):
    assume(spread_out(a) or spread_out(b))
    one, other = log_welch_ratio(a, b), log_welch_ratio(b, a)
    assume(one is not None and other is not None)
    assert other.low == pytest.approx(1 / one.high, rel=1e-6)
    assert other.high == pytest.approx(1 / one.low, rel=1e-6)


@given(seconds, seconds, st.floats(0.5, 0.98))
def test_a_higher_level_is_a_wider_interval_around_the_same_estimate(a, b, level):
    assume(spread_out(a) or spread_out(b))
    narrow, wide = log_welch_ratio(a, b, level), log_welch_ratio(a, b, level + 0.01)
    assume(narrow is not None and wide is not None)
    assert wide.low < narrow.low <= narrow.estimate <= narrow.high < wide.high
    assert wide.estimate == narrow.estimate


@given(seconds, seconds)
def test_fewer_runs_of_the_same_spread_are_a_wider_interval(a, b):
    assume(spread_out(a) and spread_out(b))
    few, many = log_welch_ratio(a, b), log_welch_ratio(a * 3, b * 3)
    assert many.low > few.low and many.high < few.high


@given(seconds, seconds, st.integers(2, 30))
def test_more_comparisons_widen_an_interval_as_a_higher_level_does(a, b, comparisons):
    assume(spread_out(a) or spread_out(b))
    found = log_welch_ratio(a, b, 0.95, comparisons=comparisons)
    alone = log_welch_ratio(a, b, 1 - 0.05 / comparisons)
    assert (found.low, found.high) == (pytest.approx(alone.low), pytest.approx(alone.high))
    assert (found.level, found.comparisons) == (0.95, comparisons)


def runs(*blocks: tuple[float, ...]) -> Runs:
    values = tuple(value for block in blocks for value in block)
    return Runs(values, tuple(number for number, block in enumerate(blocks, 1) for _ in block))


HIGH = runs((10.0, 10.1), (11.0, 11.1), (12.0, 12.1))
LOW = runs((5.0, 5.1), (5.5, 5.6), (6.0, 6.1))


def test_between_machines_the_block_means_are_the_replicates():
    found = between_machines(HIGH, LOW)
    means = [
        [math.sqrt(one * other) for one, other in zip(side.values[::2], side.values[1::2], strict=True)]
        for side in (HIGH, LOW)
    ]
    expected = log_welch_ratio(*means)
    assert found is not None and expected is not None
    assert (found.low, found.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert found.n == (3, 3)


def test_on_one_machine_what_a_block_does_to_both_sides_cancels():
    within, between = within_machine(HIGH, LOW), between_machines(HIGH, LOW)
    assert within is not None and between is not None
    assert (within.n, within.df) == ((3,), 2)
    assert within.estimate == pytest.approx(between.estimate)
    assert within.high / within.low < 1.02 < 1.2 < between.high / between.low


@pytest.mark.parametrize("ratio", [between_machines, within_machine])
def test_with_fewer_than_three_blocks_the_runs_are_pooled_and_the_interval_says_so(ratio):
    single = ratio(runs((10.0, 10.1, 10.3)), runs((5.0, 5.1, 5.3)))
    double = ratio(runs((10.0, 10.1), (11.0, 11.1)), LOW)
    assert single is not None and double is not None
    assert "within one block" in single.notes
    assert "2 blocks: too few to tell their spread" in double.notes
    assert single.n == (3, 3) and double.n == (4, 6)


def test_blocks_that_only_one_side_has_are_no_pairs():
    shifted = Runs(LOW.values, (4, 4, 5, 5, 6, 6))
    found = within_machine(HIGH, shifted)
    assert found is not None
    assert found.method == "log-Welch"


def test_a_run_without_a_block_is_refused():
    with pytest.raises(ValueError, match="2 values, but 1 blocks"):
        Runs((1.0, 2.0), (1,))


@pytest.mark.parametrize(
    ("cv", "half_width", "n"),
    [(0.01, 0.023, 3), (0.01, 0.015, 5), (0.01, 0.0094, 10), (0.02, 0.046, 3), (0, 0.01, 2)],
)
def test_the_runs_that_a_half_width_needs_follow_from_the_pilots_spread(cv, half_width, n):
    assert runs_needed(cv, half_width) == n


def test_runs_for_no_width_at_all_are_refused():
    with pytest.raises(ValueError, match="half-width is positive"):
        runs_needed(0.01, 0)


@pytest.mark.parametrize(
    ("n", "blocks", "label"),
    [
        (3, 3, "quick look (n=3)"),
        (4, 1, "quick look (n=4)"),
        (5, 1, "floor"),
        (10, 2, "floor"),
        (9, 3, "floor"),
        (10, 3, "headline"),
    ],
)
def test_a_figure_is_called_by_its_runs_and_blocks(n, blocks, label):
    assert quality_label(n, blocks) == label


def test_a_run_apart_from_the_others_is_said_beside_the_interval():
    slow = [10.0, 10.1, 9.9, 15.0]
    assert outlying_run(slow) == "one run lies +50% from the other 3"
    assert outlying_run([10.0, 10.1, 9.9, 5.0]) == "one run lies -50% from the other 3"
    found = log_welch_ratio(slow, A)
    assert found is not None and found.notes[0] == outlying_run(slow)


@pytest.mark.parametrize("values", [[10.0, 15.0], [10.0, 10.1, 10.4], [8.0, 10.0, 12.0, 14.0]])
def test_common_scatter_sets_no_run_apart(values):
    assert outlying_run(values) is None


def test_sides_of_very_unequal_scatter_are_said_to_be_so():
    quiet, loud = [1.0, 1.001, 0.999, 1.0005], [1.0, 1.1, 0.9, 1.05]
    assert unequal_spread(quiet, loud) == "the runs of one side scatter 101 times as much as the other's"
    assert unequal_spread(loud, quiet) == unequal_spread(quiet, loud)
    assert unequal_spread(loud, [1.0, 1.04, 0.96, 1.02]) is None
    assert unequal_spread(loud, [1.0, 1.0]) is None
    assert unequal_spread([1.0, 1.001, 0.999], [1.0, 1.006, 0.994]) is None, "three runs show no such thing"


def test_clean_runs_seldom_carry_a_doubt():
    rng = np.random.default_rng(1)
    draws = np.exp(rng.normal(0, 0.01, (300, 2, 5)))
    assert sum(bool(log_welch_ratio(*pair.tolist()).notes) for pair in draws) <= 12


def test_the_band_between_units_is_assumed_until_three_are_on_record():
    assumed = unit_band(1.5, [100.0, 101.0])
    assert (assumed.low, assumed.high) == (pytest.approx(1.38), pytest.approx(1.62))
    assert assumed.label == "unit-to-unit, assumed ±8%"
    measured = unit_band(1.5, [100.0, 101.0, 99.0])
    assert measured.label == "unit-to-unit, measured on 3 units"
    assert measured.low == pytest.approx(1.5 * math.exp(-4.303 * 0.01 * math.sqrt(4 / 3)), rel=1e-3)
    assert measured.low * measured.high == pytest.approx(1.5**2)


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_nominal_95_percent_covers_94_to_97_5_on_small_samples(n):
    rng = np.random.default_rng(n)
    draws = 3000
    samples = np.exp(rng.normal(0, 0.01, (draws, 2, n)))
    held = sum(log_welch_ratio(*pair.tolist()).includes(1.0) for pair in samples)
    assert 0.935 <= held / draws <= 0.98
