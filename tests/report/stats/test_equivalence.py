from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Seeds
from report.stats.contrast import assumed_hours, contrast_interval
from report.stats.equivalence import (
    Verdict,
    bound_holds,
    equivalence,
    non_inferior,
    range_holds,
    seeds_hold,
    structure_holds,
)
from report.stats.intervals import BETWEEN_SESSIONS, Interval, Runs, blocks_interval

AROUND_100 = Runs((99.5, 100.0, 100.5, 100.2, 99.8))


def level(side: Runs) -> Interval | None:
    """The 90 % interval of one side at any hour."""
    return blocks_interval(side, level=0.9, assumed=BETWEEN_SESSIONS)


def contrast(of: Runs, over: Runs, *, paired: bool = False) -> Interval | None:
    """That of the first over the second."""
    hours = assumed_hours(of, over, paired=paired)
    return contrast_interval(of, over, paired=paired, assumed=hours, level=0.9)


def scaled(factor: float) -> Runs:
    return Runs(tuple(factor * value for value in AROUND_100.values))


@pytest.mark.parametrize(
    ("factor", "word"),
    [
        (1.0, "holds"),
        (1.04, "holds"),
        (0.96, "holds"),
        (1.06, "fails"),
        (0.94, "fails"),
        (1.05, "open"),
        (1 / 1.05, "open"),
    ],
)
def test_a_figure_is_reproduced_only_when_its_whole_interval_lies_within_the_margin(factor, word):
    assert equivalence(level(scaled(factor)), 100, 0.05).state == word


def test_the_interval_of_a_verdict_is_the_90_percent_one():
    verdict = equivalence(level(AROUND_100), 100, 0.05)
    logs = np.log(AROUND_100.values)
    reach = 2.132 * logs.std(ddof=1) / math.sqrt(5)
    assert verdict.interval is not None
    assert math.log(verdict.interval.high) == pytest.approx(logs.mean() - math.log(100) + reach, abs=1e-5)
    assert verdict.margin == 0.05


def test_rounding_of_the_published_figure_counts_against_both_findings():
    near = scaled(1.04)
    assert equivalence(level(near), 100, 0.05).state == "holds"
    assert equivalence(level(near), 100, 0.05, half_digit=1).state == "open"
    assert equivalence(level(scaled(1.06)), 100, 0.05, half_digit=1).state == "open"
    assert equivalence(level(near), 0.4, 0.05, half_digit=0.5).state == "open"


def test_wide_scatter_is_inconclusive_however_near_its_mean_and_one_run_gives_no_interval():
    verdict = equivalence(level(Runs((80, 100, 125))), 100, 0.05, other_unit=0.08)
    assert (verdict.state, verdict.other_unit) == ("open", None)
    verdict = equivalence(level(Runs((100.0,))), 100, 0.05)
    assert (verdict.state, verdict.interval) == ("open", None)


def test_another_card_of_the_model_may_explain_a_difference_but_not_make_a_reproduction():
    verdict = equivalence(level(scaled(1.1)), 100, 0.05, other_unit=0.08)
    assert (verdict.state, verdict.other_unit) == ("open", 0.08)
    assert equivalence(level(scaled(1.2)), 100, 0.05, other_unit=0.08).state == "fails"
    assert equivalence(level(AROUND_100), 100, 0.05, other_unit=0.08).state == "holds"


def test_an_assumed_spread_of_two_percent_leaves_three_runs_no_power():
    assert equivalence(level(Runs((100.0, 100.01, 99.99))), 100, 0.05, spread=2.0).state == "open"
    assert equivalence(level(Runs((100.0, 100.01, 99.99))), 100, 0.05, spread=1.0).state == "holds"


@given(st.floats(0.5, 2), st.floats(0.01, 0.3), st.floats(1e-3, 1e3))
def test_a_verdict_does_not_depend_on_the_unit(factor, margin, unit):
    one = equivalence(level(scaled(factor)), 100, margin)
    other = equivalence(level(scaled(factor * unit)), 100 * unit, margin)
    assert one.interval is not None and other.interval is not None
    assert other.interval.low == pytest.approx(one.interval.low)


def test_the_size_of_the_test_is_five_percent_at_the_edge_of_the_margin():
    rng = np.random.default_rng(2)
    draws = 105 * np.exp(rng.normal(0, 0.01, (1500, 5)))
    wrong = sum(equivalence(level(Runs(tuple(draw.tolist()))), 100, 0.05).state == "holds" for draw in draws)
    assert 0.035 <= wrong / len(draws) <= 0.065


@pytest.mark.parametrize(("factor", "word"), [(1.62, "holds"), (1.75, "fails"), (1.54, "open")])
def test_a_published_ratio_holds_where_ours_lies_within_the_margin(factor, word):
    assert equivalence(contrast(scaled(factor), AROUND_100), 1.62, 0.05).state == word


@pytest.mark.parametrize(
    ("factor", "relation", "word"),
    [
        (0.9, "less", "holds"),
        (1.1, "less", "fails"),
        (1.1, "greater", "holds"),
        (0.9, "greater", "fails"),
        (1.001, "less", "open"),
    ],
)
def test_an_order_holds_where_the_interval_lies_on_its_side_of_one(factor, relation, word):
    verdict = bound_holds(contrast(scaled(factor), AROUND_100), relation)
    assert verdict.state == word
    assert bound_holds(contrast(Runs((1.0,)), Runs((2.0, 2.1))), relation).state == "open"


def test_a_structure_holds_within_its_printed_digits():
    assert structure_holds(25_557_032, 25_600_000, 50_000).state == "holds"
    assert structure_holds(25_557_032, 25_500_000, 50_000).state == "fails"
    assert structure_holds(0.35, 0.3, 0.05).state == "holds"


FP32 = [0.780, 0.782, 0.781, 0.779, 0.783]


@pytest.mark.parametrize(
    ("shift", "word"), [(0.001, "holds"), (0.01, "holds"), (-0.05, "fails"), (0.0, "open")]
)
def test_mixed_precision_is_at_parity_unless_it_may_lose_more_than_the_margin(shift, word):
    assert non_inferior(FP32, [value + shift for value in FP32]).state == word


def test_the_margin_is_the_spread_of_the_fp32_seeds_with_a_floor():
    assert non_inferior(FP32, FP32).margin == pytest.approx(np.std(FP32, ddof=1))
    assert non_inferior([0.78] * 5, FP32).margin == 0.001
    assert non_inferior(FP32, FP32[:4]).interval is None, "parity needs five seeds an arm"
    assert non_inferior([4.0] * 5, [4.0] * 5, greater_is_better=False).margin == pytest.approx(0.02)


@pytest.mark.parametrize("runs", [2, 3])
def test_a_published_spread_of_few_runs_is_wrong_in_no_more_than_six_percent(runs):
    rng = np.random.default_rng(10 + runs)

    def word() -> str:
        published = np.exp(rng.normal(0, 0.01, runs))
        own = Runs(tuple(np.exp(rng.normal(math.log(1.05), 0.005, 10)).tolist()))
        spread = float(published.std(ddof=1))
        return equivalence(level(own), float(published.mean()), 0.05, spread=spread, runs=runs).state

    assert Counter(word() for _ in range(2000))["holds"] / 2000 <= 0.06


def test_several_comparisons_with_one_reference_ask_more_of_each_parity():
    higher = [value + 0.0005 for value in FP32]
    assert non_inferior(FP32, higher).state == "holds"
    assert non_inferior(FP32, higher, comparisons=3).state == "open"


DRAWS = 4000


def one_run(measured: float, seeds: Seeds, published: float, margin: float = 1e-6) -> Verdict:
    return seeds_hold([Runs((measured,))], seeds, published, margin)


def drawn_verdicts(true_ratio: float, spread: float, pairs: int) -> Counter[str]:
    """One run against one published run, the spread taken from as many drawn pairs of equal runs."""
    random = np.random.default_rng(20)
    differences = random.normal(0, math.sqrt(2) * spread, (DRAWS, pairs))
    found = np.sqrt((differences**2).sum(axis=1) / 2 / pairs)
    ours, theirs = random.normal(0, spread, (2, DRAWS))
    return Counter(
        one_run(true_ratio * math.exp(own), Seeds(spread=seen, pairs=pairs), math.exp(other)).state
        for own, other, seen in zip(ours, theirs, found, strict=True)
    )


def test_of_equal_protocols_one_run_against_one_is_rarely_told_apart_and_mostly_holds():
    words = drawn_verdicts(1.0, 0.01, 8)
    assert words["fails"] / DRAWS < 0.005
    assert words["holds"] / DRAWS > 0.94


def test_at_the_edge_of_its_own_margin_one_run_holds_in_one_case_of_twenty():
    spread, pairs = 0.01, 8
    edge = math.exp((1.8595 + 2.306) * math.sqrt(2) * spread)
    random = np.random.default_rng(21)
    seeds = Seeds(spread=spread, pairs=pairs)
    words = Counter(
        one_run(edge * math.exp(own), seeds, math.exp(other)).state
        for own, other in random.normal(0, spread, (DRAWS, 2))
    )
    assert words["holds"] / DRAWS < 0.05


def test_a_margin_that_is_declared_wider_than_the_seeds_allow_is_kept():
    seeds = Seeds(spread=0.001, pairs=8)
    assert one_run(1.04, seeds, 1.0, 0.05).margin == 0.05
    assert one_run(1.04, seeds, 1.0, 0.05).state == "holds"
    assert one_run(1.04, seeds, 1.0, 0.0125).state == "fails"


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [
        (1.75, 1.85, "holds"),
        (1.7, 2.1, "open"),
        (2.1, 2.3, "fails"),
        (1.0, 1.5, "fails"),
    ],
)
def test_what_lies_between_two_bounds_holds_only_where_both_do(low, high, word):
    assert range_holds(low, high, 1.8, 0.1).state == word


def test_a_finding_on_fewer_than_three_blocks_says_by_how_much_hours_are_assumed_to_differ():
    values = (1.0, 1.002, 0.998, 1.001, 0.999, 1.0)
    found = []
    for slow in (Runs(values, blocks) for blocks in ((1,) * 6, (1, 2) * 3, (1, 2, 3) * 2)):
        fast = Runs(tuple(0.8 * value for value in slow.values), slow.blocks)
        verdicts = [bound_holds(contrast(fast, slow, paired=paired), "less") for paired in (False, True)]
        assert {verdict.state for verdict in verdicts} == {"holds"}
        found.append([verdict.hour_assumed for verdict in verdicts])
    assert found == [[0.01, 0], [0.01, 0], [0, 0]]
    assert bound_holds(contrast(fast, fast), "less").hour_assumed == 0
