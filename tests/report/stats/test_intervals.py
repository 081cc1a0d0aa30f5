from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import special

from report.stats.intervals import (
    ASSUMED_BLOCK_SPREAD,
    ASSUMED_HOUR_EFFECT,
    Doubt,
    Interval,
    Runs,
    blocks_interval,
    outlying_run,
    rare_runs_missed,
    unequal_spread,
)

seconds = st.lists(st.floats(0.5, 2.0), min_size=2, max_size=12)
in_blocks = st.lists(st.lists(st.floats(0.5, 2.0), min_size=2, max_size=4), min_size=1, max_size=5)


def tried(*drawn):
    """`given` with fewer examples: what holds of a formula holds of the first that are tried."""
    return lambda test: settings(max_examples=40)(given(*drawn)(test))


A = (10.0, 10.2, 9.9, 10.1)
B = (5.0, 5.1, 5.05)


def ratio(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, comparisons: int = 1
) -> Interval | None:
    """Of runs in whose spread blocks play no part."""
    return blocks_interval(Runs(tuple(a)), Runs(tuple(b)), level=level, comparisons=comparisons)


def runs(*blocks: Sequence[float]) -> Runs:
    values = tuple(value for block in blocks for value in block)
    return Runs(values, tuple(number for number, block in enumerate(blocks, 1) for _ in block))


def times(side: Runs, *factors: float) -> Runs:
    """Each value times its block's factor, or the only one."""
    each = factors * 5 if len(factors) == 1 else factors
    values = (value * each[block - 1] for value, block in zip(side.values, side.blocks, strict=True))
    return Runs(tuple(values), side.blocks)


def spread_out(values: Sequence[float]) -> bool:
    return max(values) / min(values) > 1.001


def test_the_log_welch_interval_is_the_published_formula_with_welchs_degrees_of_freedom():
    a, b = np.log(A), np.log(B)
    u, v = a.var(ddof=1) / 4, b.var(ddof=1) / 3
    df = (u + v) ** 2 / (u**2 / 3 + v**2 / 2)
    interval = ratio(A, B)
    assert interval is not None
    assert interval.df == pytest.approx(df)
    assert interval.estimate == pytest.approx(math.exp(a.mean() - b.mean()))
    assert (interval.n, interval.notes) == ((4, 3), ())


def test_equal_spreads_on_three_runs_a_side_take_students_quantile_for_four_degrees_of_freedom():
    interval = ratio(*(np.exp([middle, middle + 0.01, middle + 0.02]).tolist() for middle in (1, 0)))
    assert interval is not None
    reach = 2.7764 * 0.01 * math.sqrt(2 / 3)
    assert math.log(interval.high) == pytest.approx(1 + reach, rel=1e-5)
    assert math.log(interval.low) == pytest.approx(1 - reach, rel=1e-5)


def test_the_interval_of_a_mean_is_students():
    interval = blocks_interval(Runs((1.0, 2.0, 3.0)), logs=False)
    assert interval is not None
    assert (interval.low, interval.estimate) == (pytest.approx(2 - 4.303 / math.sqrt(3), abs=1e-3), 2.0)
    assert (interval.n, interval.df) == ((3,), 2)


def test_an_interval_of_a_geometric_mean_is_students_on_logarithms():
    interval = blocks_interval(Runs((1.0, math.e, math.e**2)))
    assert interval is not None
    assert math.log(interval.low) == pytest.approx(1 - 4.303 / math.sqrt(3), abs=1e-3)
    assert interval.estimate == pytest.approx(math.e)


def test_the_interval_of_a_difference_is_welchs():
    interval = blocks_interval(Runs(A), Runs(B), logs=False)
    assert interval is not None
    assert interval.estimate == pytest.approx(5.0)
    reach = interval.high - interval.estimate
    error = math.sqrt(np.var(A, ddof=1) / 4 + np.var(B, ddof=1) / 3)
    assert reach == pytest.approx(special.stdtrit(interval.df, 0.975) * error)


@pytest.mark.parametrize("logs", [True, False])
@pytest.mark.parametrize("blocks", [(), (1,)])
def test_one_run_on_a_side_gives_no_interval(logs, blocks):
    single, several = Runs((1.0,), blocks), Runs((1.0, 1.1), blocks * 2)
    for sides in ((single, several), (several, single), (single,)):
        assert blocks_interval(*sides, logs=logs) is None


def test_a_value_that_is_not_positive_has_no_ratio():
    assert ratio([-0.1, 0.2, 0.05], B) is None
    assert ratio(A, [0.0, 1.0]) is None


def test_identical_values_give_an_interval_of_no_width_that_says_so():
    interval = ratio([0.1] * 3, [0.3] * 3)
    assert interval is not None
    assert interval.low == pytest.approx(interval.high)
    assert interval.notes == (Doubt("no-spread"),)


def test_one_side_without_spread_takes_the_others_degrees_of_freedom():
    interval = ratio(A, [5.0] * 3)
    assert interval is not None
    assert interval.df == pytest.approx(3)
    assert interval.notes == ()


@tried(in_blocks, in_blocks, st.floats(1e-3, 1e3), st.booleans())
def test_the_unit_of_both_sides_does_not_matter(a, b, factor, paired):
    sides = runs(*a), runs(*b)
    here = blocks_interval(*sides, paired=paired)
    there = blocks_interval(*(times(side, factor) for side in sides), paired=paired)
    assert (there.low, there.high) == (pytest.approx(here.low), pytest.approx(here.high))


@tried(in_blocks, in_blocks, st.booleans())
def test_swapping_the_sides_inverts_the_interval(a, b, paired):
    of, over = runs(*a), runs(*b)
    assume(spread_out(of.values) or spread_out(over.values))
    straight, swapped = (blocks_interval(*sides, paired=paired) for sides in ((of, over), (over, of)))
    assert swapped.low == pytest.approx(1 / straight.high, rel=1e-6)
    assert swapped.high == pytest.approx(1 / straight.low, rel=1e-6)


@tried(in_blocks, in_blocks, st.lists(st.floats(0.5, 2.0), min_size=5, max_size=5))
def test_what_a_block_does_to_both_sides_does_not_move_their_paired_ratio(a, b, shifts):
    of, over = runs(*a), runs(*b)
    still = blocks_interval(of, over, paired=True)
    shifted = blocks_interval(times(of, *shifts), times(over, *shifts), paired=True)
    for end in ("low", "estimate", "high"):
        assert getattr(shifted, end) == pytest.approx(getattr(still, end), rel=1e-6)


@tried(in_blocks, in_blocks, st.booleans(), st.randoms(use_true_random=False))
def test_the_order_of_runs_within_a_block_changes_nothing(a, b, paired, rng):
    mixed = [[rng.sample(block, len(block)) for block in side] for side in (a, b)]
    straight, shuffled = (
        blocks_interval(runs(*of), runs(*over), paired=paired) for of, over in ((a, b), mixed)
    )
    assert (shuffled.low, shuffled.high) == (pytest.approx(straight.low), pytest.approx(straight.high))


@tried(seconds, seconds, st.floats(0.5, 0.98))
def test_a_higher_level_is_a_wider_interval_around_the_same_estimate(a, b, level):
    assume(spread_out(a) or spread_out(b))
    narrow, wide = ratio(a, b, level), ratio(a, b, level + 0.01)
    assume(narrow is not None and wide is not None)
    assert wide.low < narrow.low <= narrow.estimate <= narrow.high < wide.high
    assert wide.estimate == narrow.estimate


@tried(seconds, seconds)
def test_fewer_runs_of_the_same_spread_are_a_wider_interval(a, b):
    assume(spread_out(a) and spread_out(b))
    few, many = ratio(a, b), ratio(a * 3, b * 3)
    assert many.low > few.low and many.high < few.high


@tried(seconds, seconds, st.integers(2, 30))
def test_more_comparisons_widen_an_interval_as_a_higher_level_does(a, b, comparisons):
    assume(spread_out(a) or spread_out(b))
    together = ratio(a, b, 0.95, comparisons)
    alone = ratio(a, b, 1 - 0.05 / comparisons)
    assert (together.low, together.high) == (pytest.approx(alone.low), pytest.approx(alone.high))


HIGH = runs((10.0, 10.1), (11.0, 11.1), (12.0, 12.1))
LOW = runs((5.0, 5.1), (5.5, 5.6), (6.0, 6.1))


def test_between_machines_the_block_means_are_the_replicates():
    interval = blocks_interval(HIGH, LOW)
    means = [
        [math.sqrt(first * second) for first, second in zip(side.values[::2], side.values[1::2], strict=True)]
        for side in (HIGH, LOW)
    ]
    expected = ratio(*means)
    assert interval is not None and expected is not None
    assert (interval.low, interval.high) == (pytest.approx(expected.low), pytest.approx(expected.high))
    assert (interval.n, interval.notes) == ((3, 3), ())


def test_the_interval_of_one_line_stands_on_its_block_means():
    interval = blocks_interval(runs((10.0, 11.0), (12.0, 13.0), (14.0, 15.0)), paired=True, logs=False)
    assert interval is not None
    assert (interval.n, interval.df) == ((3,), 2)
    assert interval.high - 12.5 == pytest.approx(4.303 * 2 / math.sqrt(3), abs=1e-3)


def test_on_one_machine_what_a_block_does_to_both_sides_cancels():
    within, between = blocks_interval(HIGH, LOW, paired=True), blocks_interval(HIGH, LOW)
    assert within is not None and between is not None
    assert (within.n, within.df) == ((3,), 2)
    assert within.estimate == pytest.approx(between.estimate)
    assert within.high / within.low < 1.02 < 1.2 < between.high / between.low


def test_in_fewer_than_three_blocks_a_spread_between_them_is_assumed_between_machines_alone():
    sides = runs((10.0, 10.0)), runs((5.0, 5.0))
    between, within = blocks_interval(*sides), blocks_interval(*sides, paired=True)
    assert between is not None and within is not None
    assert math.log(between.high / 2) == pytest.approx(1.96 * ASSUMED_BLOCK_SPREAD * math.sqrt(2), rel=1e-4)
    assert math.log(within.high / 2) == pytest.approx(1.96 * ASSUMED_HOUR_EFFECT, rel=1e-4)
    assert between.blocks_assumed == 1 and within.blocks_assumed is None
    alone = blocks_interval(runs((10.0, 10.1)), paired=True)
    assert alone is not None and alone.blocks_assumed is None
    two = blocks_interval(runs((10.0, 10.1), (10.0, 10.1)), runs((5.0, 5.1)))
    assert two is not None and two.blocks_assumed == 1


def test_an_hour_that_treats_two_variants_half_a_percent_differently_gives_5_percent_wrong_orders():
    rng, wrong = np.random.default_rng(5), 0
    for _ in range(1000):
        of, over = np.exp(rng.normal(0, 0.003, (2, 5)) + rng.normal(0, (0.005, 0.0))[:, None])
        interval = blocks_interval(runs(tuple(of)), runs(tuple(over)), paired=True)
        wrong += interval is not None and not interval.includes(1)
    assert 30 <= wrong <= 70


@pytest.mark.parametrize(("block_cv", "counts"), [(0.02, (5,)), (0.03, (5,)), (0.03, (5, 5))])
def test_three_blocks_beside_fewer_lend_them_the_spread_that_they_show(block_cv: float, counts: tuple[int]):
    rng, wrong = np.random.default_rng(9), 0

    def side(counts: tuple[int, ...]) -> Runs:
        return runs(*(tuple(np.exp(rng.normal(0, block_cv) + rng.normal(0, 0.005, n))) for n in counts))

    for _ in range(1000):
        interval = blocks_interval(side((4, 4, 4)), side(counts))
        assert interval is not None and interval.blocks_assumed is None
        wrong += not interval.includes(1)
    assert 15 <= wrong <= 65


def test_two_blocks_that_differ_by_more_than_is_assumed_count_as_they_are():
    near, far = (blocks_interval(runs((10.0, 10.1), (10.0 * by, 10.1 * by))) for by in (1.001, 1.1))
    assert near is not None and far is not None
    assert far.high / far.low > 1.1 > near.high / near.low


def test_blocks_that_only_one_side_has_are_no_pairs():
    shifted = Runs(LOW.values, (4, 4, 5, 5, 6, 6))
    assert blocks_interval(HIGH, shifted, paired=True) == blocks_interval(HIGH, shifted)


def test_a_run_without_a_block_is_refused():
    with pytest.raises(ValueError, match="zip"):
        blocks_interval(Runs((1.0, 2.0), (1,)))


def test_a_run_apart_from_the_others_is_said_beside_the_interval():
    slow = [10.0, 10.1, 9.9, 15.0]
    assert outlying_run(slow) == Doubt("odd-run", {"change": pytest.approx(0.5), "others": 3})
    assert outlying_run([10.0, 10.1, 9.9, 5.0]) == Doubt(
        "odd-run", {"change": pytest.approx(-0.5), "others": 3}
    )
    interval = ratio(slow, A)
    assert interval is not None and interval.notes[0] == outlying_run(slow)


@pytest.mark.parametrize("values", [[10.0, 15.0], [10.0, 10.1, 10.4], [8.0, 10.0, 12.0, 14.0]])
def test_common_scatter_sets_no_run_apart(values):
    assert outlying_run(values) is None


def test_sides_of_very_unequal_scatter_are_said_to_be_so():
    quiet, loud = [1.0, 1.001, 0.999, 1.0005], [1.0, 1.1, 0.9, 1.05]
    assert unequal_spread(quiet, loud) == Doubt("unequal-spread", {"times": pytest.approx(101, abs=0.5)})
    assert unequal_spread(loud, quiet) == unequal_spread(quiet, loud)
    assert unequal_spread(loud, [1.0, 1.04, 0.96, 1.02]) is None
    assert unequal_spread(loud, [1.0, 1.0]) is None
    assert unequal_spread([1.0, 1.001, 0.999], [1.0, 1.006, 0.994]) is None, "three runs show no such thing"


def test_clean_runs_seldom_carry_a_doubt():
    rng = np.random.default_rng(1)
    draws = np.exp(rng.normal(0, 0.01, (300, 2, 5)))
    assert sum(bool(ratio(*pair.tolist()).notes) for pair in draws) <= 12


def test_few_runs_say_how_often_they_would_miss_a_rare_slow_one():
    assert rare_runs_missed(5) == Doubt("rare-runs", {"runs": 5, "missed": pytest.approx(0.9**5)})
    assert rare_runs_missed(28) and rare_runs_missed(29) is None and rare_runs_missed(0) is None


@pytest.mark.parametrize("n", [3, 5, 10])
def test_the_nominal_95_percent_covers_94_to_97_5_on_small_samples(n):
    rng = np.random.default_rng(n)
    draws = 3000
    samples = np.exp(rng.normal(0, 0.01, (draws, 2, n)))
    held = sum(ratio(*pair.tolist()).includes(1.0) for pair in samples)
    assert 0.935 <= held / draws <= 0.98


def drawn(
    rng: np.random.Generator, blocks: int, n: int, level: float = 0.0, *, effects: np.ndarray | None = None
) -> Runs:
    """Runs of CV 0.5 % in blocks of CV 1 %."""
    effects = rng.normal(0, 0.01, blocks) if effects is None else effects
    logs = level + effects[:, None] + rng.normal(0, 0.005, (blocks, n))
    return runs(*np.exp(logs).tolist())


@pytest.mark.parametrize(("blocks", "n"), [(1, 10), (2, 5), (3, 4)])
@pytest.mark.parametrize("sides", [1, 2])
def test_between_machines_the_nominal_95_percent_covers_whatever_the_blocks(blocks, n, sides):
    rng = np.random.default_rng(blocks)
    intervals = [blocks_interval(*(drawn(rng, blocks, n) for _ in range(sides))) for _ in range(800)]
    assert sum(interval.includes(1.0) for interval in intervals) / 800 >= 0.93


@pytest.mark.parametrize(("blocks", "n"), [(1, 10), (2, 5), (3, 4)])
def test_on_one_machine_the_nominal_95_percent_covers_in_its_blocks(blocks, n):
    rng = np.random.default_rng(blocks)

    def paired() -> Interval | None:
        effects = rng.normal(0, 0.01, blocks)
        sides = [drawn(rng, blocks, n, effects=effects) for _ in range(2)]
        return blocks_interval(*sides, paired=True)

    assert sum(paired().includes(1.0) for _ in range(800)) / 800 >= 0.93


def test_the_interval_of_a_line_in_three_blocks_covers_its_mean():
    rng = np.random.default_rng(3)
    intervals = [blocks_interval(drawn(rng, 3, 4), paired=True, logs=False) for _ in range(800)]
    assert sum(interval.includes(1.0) for interval in intervals) / 800 >= 0.92
