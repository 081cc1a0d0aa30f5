from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.record import Record
from harness.record.telemetry import Energy
from report.buying.cost_model import OfferNumbers, ranged
from report.buying.purchase import parse_purchase
from report.expected.relative import CardsOnPaper
from tests.helpers import records_builder as build
from tests.helpers.purchase_builder import FILE, around, bought, model, random_model, rented
from tests.helpers.record_sets import OTHER, elsewhere, series
from tests.helpers.records_watched import telemetry
from tests.helpers.trial_tables import analysed

prices = st.floats(300, 40_000)
hours = st.floats(10, 20_000)
seeds = st.integers(0, 10_000)
H200, RTX_5090, L40S = bought(31_000, 700, 1100), bought(2900, 575, 2200), bought(8200, 350, 3000)


@pytest.mark.parametrize(
    ("offer", "cards", "cost"),
    [
        (H200, 1, 8608.75),
        (RTX_5090, 1, 1748.75),
        (L40S, 1, 3050.00),
        # Two cards: 2 · (2,900 + 2,500) ÷ 4 + 8,000 h · 725 W · 0.25.
        (bought(2900, 575, 8000), 2, 4150.00),
        (bought(2900, 575, 7008), 1, 2620.20),
        (bought(2900, 575, 7009), 2, 3970.38),
        (rented(0.9, 8000), 2, 7200.00),
    ],
)
def test_a_year_costs_what_leaves_the_account_to_the_cent(offer: OfferNumbers, cards: int, cost: float):
    found = model(offer).cost(0)
    assert found.cards == (cards,) * 3
    assert [round(end, 2) for end in found.cost] == [pytest.approx(cost, abs=0.006)] * 3


def test_residual_power_of_the_room_and_a_site_without_tariff_are_in_the_sum_as_they_are_given():
    whole = model(RTX_5090, residual_share=0.1, pue=1.3).cost(0)
    assert whole.cost[1] == pytest.approx(5400 * 0.9 / 4 + 398.75 * 1.3)
    assert whole.power == pytest.approx(398.75 * 1.3)
    assert model(RTX_5090, electricity_price=0.0).cost(0).cost[1] == pytest.approx(1350)


def test_hours_at_their_ends_give_cards_and_cost_at_each():
    found = model(bought(2900, 575, 6000, part=0.5)).cost(0)
    assert found.cards == (1, 1, 2)
    assert found.cost == pytest.approx((1350 + 4000 * 0.18125, 1350 + 6000 * 0.18125, 2700 + 9000 * 0.18125))
    assert found.use == pytest.approx(6000 / 8760)


@given(seed=seeds, more=st.floats(0, 20_000))
@settings(max_examples=40)
def test_a_higher_price_never_makes_a_card_cheaper(seed, more):
    before = random_model(seed)
    offer = before.offers[0]
    dear = replace(offer, price=tuple(end + more for end in offer.price))
    after = replace(before, offers={**before.offers, 0: dear})
    assert all(new >= old for new, old in zip(after.cost(0).cost[1:], before.cost(0).cost[1:], strict=True))


@given(first=prices, second=prices, a=hours, b=hours)
@settings(max_examples=40)
def test_at_the_turning_price_both_offers_cost_the_same(first, second, a, b):
    found = model(bought(first, 300, a), bought(second, 300, b))
    order = found.order()
    price = found.turning(order[0], order[1:]).price
    if price is not None:
        dear = replace(found.offers[order[0]], price=around(price[1]))
        even = replace(found, offers={**found.offers, order[0]: dear})
        assert even.cost(0).cost[1] == pytest.approx(even.cost(1).cost[1], rel=1e-9)


def test_what_turns_an_answer_is_a_multiple_of_the_work_a_price_and_a_rent():
    turning = model(RTX_5090, L40S, H200).turning(0, (1, 2))
    assert turning.another_card == pytest.approx((7008 / 2200,) * 3)
    assert turning.price == pytest.approx(((3050 - 398.75) * 4 - 2500,) * 3)
    assert turning.rent == pytest.approx((1748.75 / 2200,) * 3)
    assert turning.idle_hours == pytest.approx(7008 - 2200)
    assert turning.idle_worth == pytest.approx(4808 * (1748.75 / 2200 - 0.18125))


def test_more_work_turns_to_the_offer_that_needs_fewer_cards_and_from_rent_to_buying():
    # A second slow card, from 7,008 of 2,000 h on, costs more than the one fast one.
    slow, fast = bought(2900, 575, 2000), bought(6000, 575, 1000)
    assert model(slow, fast).turning(0, (1,)).other_best == (pytest.approx(3.504), 1)
    # 1.5 EUR an hour and 1,350 EUR a year with 0.18125 EUR an hour, of 500 and 400 hours.
    assert model(rented(1.5, 500), bought(2900, 575, 400)).turning(0, (1,)).other_best == (
        pytest.approx(1350 / (1.5 * 500 - 0.18125 * 400)),
        1,
    )
    assert model(RTX_5090, H200).turning(0, (1,)).other_best is None


@given(seed=seeds)
@settings(max_examples=40)
def test_every_range_holds_its_best_value_and_a_ratio_swapped_is_its_inverse(seed):
    found = random_model(seed)
    for i, j in product(found.offers, repeat=2):
        low, best, high = found.cost(i).cost
        assert low <= best <= high
        ratio, swapped = found.ratio(i, j), found.ratio(j, i)
        assert ratio[0] <= ratio[1] <= ratio[2]
        assert ratio == pytest.approx(tuple(1 / end for end in reversed(swapped)))


def test_what_both_offers_share_moves_both_and_what_each_has_alone_does_not():
    # Hours alone cost, so that a ratio is as uncertain as the hours.
    free = {"host_price": 0.0, "host_watts": 0.0}
    one, other = bought(0.01, 400, 2000, part=0.2), bought(0.01, 400, 1000, part=0.2)
    together = model(one, other, shared=True, life_years=(1.0, 4.0, 8.0), **free)
    assert together.cost(0).cost[2] == pytest.approx(1.2 * together.cost(0).cost[1], rel=1e-3)
    assert together.ratio(0, 1) == pytest.approx((2.0, 2.0, 2.0), rel=1e-3)
    apart = model(one, other, **free).ratio(0, 1)
    assert apart == pytest.approx((2 / 1.2**2**0.5, 2.0, 2 * 1.2**2**0.5), rel=1e-3)


def test_a_range_adds_in_squares_what_each_input_moves_the_value_by_alone():
    inputs = {"a": (7.0, 10.0, 14.0), "b": (1.0, 5.0, 8.0), "sure": (2.0, 2.0, 2.0)}
    assert ranged(lambda at: at["a"] - at["b"] + at["sure"], inputs) == pytest.approx(
        (7 - (3**2 + 3**2) ** 0.5, 7.0, 7 + (4**2 + 4**2) ** 0.5)
    )


def test_the_range_of_a_cost_holds_nineteen_in_twenty_costs_of_inputs_drawn_between_their_ends():
    offer = replace(bought(2000, 300, 2600), price=(1600.0, 2000.0, 2400.0))
    low, _, high = model(offer, life_years=(3.0, 4.0, 6.0), pue=(1.1, 1.3, 1.6)).cost(0).cost
    random, inside = numpy.random.default_rng(5), 0
    for _ in range(2000):
        price, life, pue = (
            random.triangular(*ends) for ends in ((1600, 2000, 2400), (3, 4, 6), (1.1, 1.3, 1.6))
        )
        inside += low <= (price + 2500) / life + 2600 * 0.45 * pue * 0.25 <= high
    assert inside / 2000 >= 0.95


def test_a_card_whose_memory_the_work_did_not_fit_is_never_the_one_to_buy_though_papers_know_its_speed():
    cifar = {"kind": build.CIFAR, "batch_size": 64, "repeats": 3}
    records = [*series(repeats=3), *series("fp16-master", **cifar), *elsewhere(repeats=3)]
    asked = build.trial(build.CIFAR, "fp16-master", 1, batch_size=64)
    on, lost = records[-1].machine, build.out_of_memory()
    records.append(build.record(asked, None, on=on, session=OTHER, order=50, failure=lost))
    analysis = analysed(records, parse_purchase(FILE))
    found = analysis.costs
    assert found is not None
    cards, works = [one.card for one in found.offers], [line.name for line in (*found.lines, *found.left_out)]
    paper = CardsOnPaper(times={each: (0.8, 1.0, 1.2) for each in product(cards, cards, works)})
    told = analysis.with_request(analysis.request, paper).costs
    assert told is not None and ([*told.model.offers], told.order, told.fits[1]) == ([0, 1], (0,), False)


def test_a_run_that_is_invalid_gives_no_power():
    def drew(records: list[Record], watts: float) -> list[Record]:
        energy = Energy(joules=60 * watts, window_seconds=60, band=0.05)
        return [build.changed(one, telemetry=telemetry(energy=energy)) for one in records]

    sound = drew(series(repeats=3), 300)
    spoiled = drew(series(repeats=4, verdict="invalid")[3:], 600)
    found = analysed([*sound, *spoiled, *elsewhere(repeats=3)], parse_purchase(FILE)).costs
    assert found is not None
    assert found.model.offers[0].watts == pytest.approx((285, 300, 315))
