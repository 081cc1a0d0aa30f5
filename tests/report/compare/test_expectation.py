from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.record import Limit
from report.compare import pairs as expectation
from report.compare.cells import Ratio
from report.stats.intervals import Interval
from tests.helpers import records_builder as build
from tests.report.compare.test_groups import CARD, LEAD, elsewhere, found, series

ON = build.machine(CARD, label="card-a", digits="a")

SHORT = {"complete": False, "limit": Limit(steps=40)}


def ratio(low: float, estimate: float, high: float) -> Ratio:
    return Ratio(estimate, Interval(low, estimate, high, (5, 5), 8.0), (5, 5))


def test_the_range_for_any_units_holds_that_of_these_two():
    (one,) = expectation.expectations(found([*series(repeats=5), *elsewhere(repeats=5)]))
    assert one.fast.card == "Constructed Card B" and one.best == pytest.approx(1.25)
    assert one.units is not None and one.model is not None
    for end, wide in ((one.units.low, one.model.low), (one.units.high, one.model.high)):
        runs, units = math.log(end / one.best), 1.96 * 2 * 0.03
        assert abs(math.log(wide / one.best)) == pytest.approx(math.hypot(runs, units), rel=1e-4)


def test_a_range_for_other_units_that_includes_one_is_a_tie():
    (one,) = expectation.expectations(found([*series(repeats=5), *elsewhere(seconds=0.095, repeats=5)]))
    assert one.tied and one.standing == "tied"
    assert one.units is not None and not one.units.includes(1.0)


def test_windows_too_short_are_a_first_look_that_ranks_nothing():
    records = [*series(verdict="unproven", **SHORT), *elsewhere(verdict="unproven", **SHORT)]
    (one,) = expectation.expectations(found(records))
    assert not one.ranked and one.standing == "first look"


def test_single_runs_give_no_range():
    (one,) = expectation.expectations(found([*series(repeats=1), *elsewhere(repeats=1)]))
    assert (one.units, one.model, one.standing) == (None, None, "single runs")


def test_unlike_work_expects_nothing():
    assert expectation.expectations(found([*series(), *elsewhere(batch_size=40)])) == ()


def test_the_card_that_beats_the_own_one_leads_and_the_level_holds_for_all_pairs():
    third = build.machine("Constructed Card C", label="card-c", digits="c")
    records = [
        *series(),
        *elsewhere(seconds=0.2),
        *elsewhere(seconds=0.08, on=third, card="Constructed Card C", session="20260129-cccccc"),
    ]
    first, second = expectation.expectations(found(records))
    assert first.fast.card == "Constructed Card C" and second.slow.card == "Constructed Card B"
    assert first.band.comparisons == 2
    assert all(each.ratio.interval and each.ratio.interval.comparisons == 2 for each in first.benchmarks)


def test_each_benchmark_has_an_equal_share_of_the_slower_system_s_time():
    records = [*series(), *elsewhere(seconds=0.05), *series(kind=build.CIFAR), *elsewhere(kind=build.CIFAR)]
    assert expectation.expectations(found(records))[0].best == pytest.approx(1 / (0.25 + 0.4))


@given(st.lists(st.tuples(st.floats(0.2, 5), st.floats(1.01, 2)), min_size=1, max_size=6))
def test_a_mix_lies_between_its_benchmarks_and_its_range_holds_it(benchmarks: list[tuple[float, float]]):
    ratios = [ratio(value / reach, value, value * reach) for value, reach in benchmarks]
    best, span = expectation.mix(ratios)
    assert span is not None and span.low <= best <= span.high
    values = [value for value, _ in benchmarks]
    assert min(values) <= best * (1 + 1e-9) and best <= max(values) * (1 + 1e-9)


def test_a_single_benchmark_keeps_its_own_interval():
    best, span = expectation.mix([ratio(1.5, 1.6, 1.7)])
    assert best == pytest.approx(1.6) and span is not None
    assert (span.low, span.high) == (pytest.approx(1.5), pytest.approx(1.7))


def test_three_units_of_each_model_make_the_band_a_measured_one():
    records = []
    for card, digits, seconds in (("Constructed Card A", "abc", 0.1), ("Constructed Card B", "def", 0.05)):
        for place, digit in enumerate(digits):
            on = build.machine(card, label=f"card-{digit}", digits=digit)
            session = LEAD if digit == "a" else f"20260130-{digit * 6}"
            made = series(seconds=seconds * (1 + 0.01 * place), on=on, card=card, session=session)
            records += [build.changed(one, measurement__device__unit=digit * 16) for one in made]
    first = expectation.expectations(found(records))[0]
    assert first.band.measured and first.band.units == 3


def test_a_pair_that_ran_in_one_block_of_time_says_so_and_one_of_three_does_not():
    def of(blocks: int) -> tuple[int | None, str]:
        records = [
            one.model_copy(update={"block": 1 + place % blocks})
            for made in (series(repeats=6), elsewhere(repeats=6))
            for place, one in enumerate(made)
        ]
        (pair,) = expectation.expectations(found(records))
        return pair.blocks_assumed, pair.standing

    assert [of(blocks) for blocks in (1, 2)] == [(1, "first look"), (2, "first look")]
    assert of(3) == (None, "faster")


def test_cards_that_are_each_faster_at_other_works_are_told_by_the_work():
    works = [(build.LM, 0.1, 0.5), (build.CIFAR, 0.1, 0.02)]
    made = [series(seconds=own, kind=kind) for kind, own, _ in works]
    made += [elsewhere(seconds=other, kind=kind) for kind, _, other in works]
    records = [one.model_copy(update={"block": 1 + at % 3}) for run in made for at, one in enumerate(run)]
    (pair,) = expectation.expectations(found(records))
    assert (pair.standing, pair.units, pair.model) == ("by the work", None, None)
