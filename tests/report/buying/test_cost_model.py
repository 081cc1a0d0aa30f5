from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.record import Record
from harness.record.telemetry import Energy
from report.buying.cost_model import CostNumbers, OfferCost, ranged, rank_costs
from report.buying.purchase import parse_purchase
from report.expected.relative import CardsOnPaper, RelativeSpeed
from tests.helpers import records_builder as build
from tests.helpers.purchase_builder import FILE, around, card, numbers, random_buyer
from tests.helpers.record_sets import OTHER, elsewhere, series
from tests.helpers.records_watched import telemetry
from tests.helpers.trial_tables import analysed

prices = st.floats(300, 40_000)
times = st.floats(10, 5000)
seeds = st.integers(0, 10_000)


def pair(first: float, second: float, *seconds: float, **changes: object) -> CostNumbers:
    """Two cards by their prices, and their seconds on two rows each."""
    own, other = (seconds[0], seconds[1]), (seconds[2], seconds[3])
    return numbers(
        card("A", around(first, 0.0), own),
        card("B", around(second, 0.0), other),
        **changes,  # type: ignore[arg-type]
    )


def best(found: OfferCost) -> float:
    assert found.cost is not None
    return found.cost[1]


def test_the_cost_of_a_mix_is_the_one_worked_out_by_hand():
    found = rank_costs(numbers(card("A", around(2000.0, 0.0), (100.0, 50.0)))).offers[0]
    hourly = (2000 + 1500) * 0.9 / (4 * 8760 * 0.5) + (300 + 120) * 1.3 * 0.25 / 1000
    assert found.cost == pytest.approx((40 * hourly,) * 3)


def test_an_hour_of_a_rented_card_costs_its_price_and_no_power():
    found = rank_costs(numbers(card("A", around(0.8, 0.0), (100.0, 50.0), rented=True))).offers[0]
    assert found.cost == pytest.approx((32.0,) * 3)


@given(first=prices, second=prices, more=st.floats(0, 20_000), a=times, b=times, c=times, d=times)
@settings(max_examples=40)
def test_a_higher_price_never_makes_a_card_cheaper(first, second, more, a, b, c, d):
    before = rank_costs(pair(first, second, a, b, c, d, life_years=(2.0, 4.0, 6.0))).offers[0]
    after = rank_costs(pair(first + more, second, a, b, c, d, life_years=(2.0, 4.0, 6.0))).offers[0]
    assert before.cost and after.cost
    assert all(new >= old for new, old in zip(after.cost, before.cost, strict=True))


@given(first=prices, second=prices, a=times, b=times, c=times, d=times)
@settings(max_examples=40)
def test_at_the_turning_price_price_both_cards_cost_the_same(first, second, a, b, c, d):
    buyer = pair(first, second, a, b, c, d)
    for place, found in enumerate(rank_costs(buyer).offers):
        assert found.turning_price is not None
        if found.turning_price[1] > 0:
            price = found.turning_price[1]
            changed = replace(buyer.offers[place], price=(price, price, price))
            even = rank_costs(
                replace(buyer, offers=(*buyer.offers[:place], changed, *buyer.offers[place + 1 :]))
            ).offers
            assert best(even[0]) == pytest.approx(best(even[1]), rel=1e-9)


@given(first=prices, second=prices, a=times, b=times, c=times, d=times)
@settings(max_examples=25)
def test_swapping_two_cards_swaps_their_figures_and_inverts_their_ratio(first, second, a, b, c, d):
    # The hours are on the first card, so both rows are given the hours that they take on it.
    one = pair(first, second, a, b, c, d, hours=(a, b))
    other = pair(second, first, c, d, a, b, hours=(c, d))
    mine, swapped = rank_costs(one).offers, rank_costs(other).offers
    assume(best(mine[0]) != pytest.approx(best(mine[1])))
    for here, there in ((mine[0], swapped[1]), (mine[1], swapped[0])):
        assert best(here) == pytest.approx(best(there))
        assert here.ratio and there.ratio
        assert here.ratio[1] == pytest.approx(there.ratio[1])
        assert here.ratio == pytest.approx(there.ratio, rel=0.02)
    assert best(mine[0]) / best(mine[1]) == pytest.approx(best(swapped[1]) / best(swapped[0]))


@given(seed=seeds, factor=st.floats(0.01, 100))
@settings(max_examples=25)
def test_more_hours_of_the_same_mix_cost_in_proportion_and_turn_no_ranking(seed, factor):
    buyer = random_buyer(seed)
    hours = tuple(each * factor for each in buyer.hours)
    before, after = rank_costs(buyer), rank_costs(replace(buyer, hours=hours))
    assert after.order == before.order
    for new, old in zip(after.offers, before.offers, strict=True):
        assert new.ratio == (old.ratio and pytest.approx(old.ratio))
        assert new.turning_price == (old.turning_price and pytest.approx(old.turning_price, rel=1e-6))
        if old.cost and new.cost:
            assert new.cost == pytest.approx(tuple(factor * one for one in old.cost))


@given(seed=seeds)
@settings(max_examples=40)
def test_every_range_holds_its_best_value(seed):
    for found in rank_costs(random_buyer(seed)).offers:
        named = ("hours", "cost", "ratio", "turning_price")
        ranges = [getattr(found, name) for name in named]
        assert all(low <= middle <= high for low, middle, high in filter(None, ranges))


def test_where_only_the_measured_speed_is_uncertain_the_cost_is_as_uncertain_as_it():
    found = rank_costs(pair(2000, 2000, 200.0, 200.0, 100.0, 100.0, part=0.1)).offers[0]
    assert found.ratio is not None
    assert found.ratio == pytest.approx((2 / 1.1, 2.0, 2 * 1.1), rel=0.01)


def test_what_both_cards_share_cancels_as_far_as_it_does_in_truth():
    alike = pair(2000, 2000, 200.0, 200.0, 100.0, 100.0, part=0.0, life_years=(1.0, 4.0, 8.0))
    found = rank_costs(alike).offers[0]
    assert found.cost and found.cost[2] > 1.5 * found.cost[0]
    assert found.ratio == pytest.approx((2.0, 2.0, 2.0))


def test_a_row_that_failed_or_was_not_measured_leaves_its_card_without_a_total_unless_it_has_no_hours():
    gap = card("A", around(1.0, 0.0), (10.0, None))
    whole = card("B", around(9000.0, 0.0), (900.0, 900.0))
    assert rank_costs(numbers(whole, gap)).order == (0,)
    assert rank_costs(numbers(whole, gap, hours=(30.0, 0.0))).order == (1, 0)


def test_a_card_whose_memory_the_work_did_not_fit_has_no_cost_though_papers_know_its_speed():
    cifar = {"kind": build.CIFAR, "batch_size": 64, "repeats": 3}
    records = [*series(repeats=3), *series("fp16-master", **cifar), *elsewhere(repeats=3)]
    asked = build.trial(build.CIFAR, "fp16-master", 1, batch_size=64)
    on, lost = records[-1].machine, build.out_of_memory()
    records.append(build.record(asked, None, on=on, session=OTHER, order=50, failure=lost))
    analysis = analysed(records, parse_purchase(FILE))
    found = analysis.costs
    assert found is not None
    cards, works = [one.card for one in found.offers], [line.name for line in found.lines]
    paper = CardsOnPaper(speeds={each: RelativeSpeed(0.8, 1.0, 1.2) for each in product(cards, cards, works)})
    told = analysis.answering(analysis.request, paper).costs
    assert told is not None and [offer.cost is None for offer in told.ranking.offers] == [False, True]


def test_a_run_that_is_invalid_gives_no_power():
    def drew(records: list[Record], watts: float) -> list[Record]:
        energy = Energy(scope="cards", joules=60 * watts, window_seconds=60, band=0.05)
        return [build.changed(one, telemetry=telemetry(energy=energy)) for one in records]

    sound = drew(series(repeats=3), 300)
    spoiled = drew(series(repeats=4, verdict="invalid")[3:], 600)
    found = analysed([*sound, *spoiled, *elsewhere(repeats=3)], parse_purchase(FILE)).costs
    assert found is not None
    assert found.numbers.offers[0].watts[0] == pytest.approx((285, 300, 315))


def test_a_card_that_loses_even_for_nothing_has_no_price_at_which_both_cost_the_same():
    found = rank_costs(pair(2000, 2000, 100.0, 100.0, 5000.0, 5000.0)).offers[1]
    assert found.turning_price is not None and found.turning_price[1] < 0


def test_a_range_adds_in_squares_what_each_input_moves_the_value_by_alone():
    inputs = {"a": (7.0, 10.0, 14.0), "b": (1.0, 5.0, 8.0), "sure": (2.0, 2.0, 2.0)}
    assert ranged(lambda at: at["a"] - at["b"] + at["sure"], inputs) == pytest.approx(
        (7 - (3**2 + 3**2) ** 0.5, 7.0, 7 + (4**2 + 4**2) ** 0.5)
    )


def test_the_range_of_a_cost_holds_nineteen_in_twenty_costs_of_inputs_drawn_between_their_ends():
    buyer = numbers(
        card("A", around(2000.0, 0.2), (100.0, 50.0)), life_years=(3.0, 4.0, 6.0), pue=(1.1, 1.3, 1.6)
    )
    low, _, high = rank_costs(buyer).offers[0].cost or (0.0, 0.0, 0.0)
    random, inside = numpy.random.default_rng(5), 0
    for _ in range(2000):
        price, life, pue = (
            random.triangular(*ends) for ends in ((1600, 2000, 2400), (3, 4, 6), (1.1, 1.3, 1.6))
        )
        hourly = (price + 1500) * 0.9 / (life * 8760 * 0.5) + 420 * pue * 0.25 / 1000
        inside += low <= 40 * hourly <= high
    assert inside / 2000 >= 0.95
