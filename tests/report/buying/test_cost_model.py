from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from report.buying.cost_inputs import Numbers
from report.buying.cost_model import CardAnswer, Draws, answer, spread, triangular, uniform
from report.buying.costs import most_moving, with_value
from tests.helpers.purchase_builder import around, card, numbers, random_buyer

prices = st.floats(300, 40_000)
times = st.floats(10, 5000)
seeds = st.integers(0, 10_000)
FEW = 64
"""Draws, where best values alone are compared, or ranges of the same draws."""


def pair(first: float, second: float, *seconds: float, **changes: object) -> Numbers:
    """Two cards by their prices, and their seconds on two rows each."""
    own, other = (seconds[0], seconds[1]), (seconds[2], seconds[3])
    return numbers(
        card("A", around(first, 0.0), own),
        card("B", around(second, 0.0), other),
        **changes,  # type: ignore[arg-type]
    )


def best(found: CardAnswer) -> float:
    assert found.cost is not None
    return found.cost[1]


def test_the_cost_of_a_mix_is_the_one_worked_out_by_hand():
    found = answer(numbers(card("A", around(2000.0, 0.0), (100.0, 50.0)))).cards[0]
    hourly = (2000 + 1500) * 0.9 / (4 * 8760 * 0.5) + (300 + 120) * 1.3 * 0.25 / 1000
    assert found.cost == pytest.approx((40 * hourly,) * 3)
    assert found.kwh == pytest.approx((40 * 420 * 1.3 / 1000,) * 3)


def test_an_hour_of_a_rented_card_costs_its_price_and_no_power():
    found = answer(numbers(card("A", around(0.8, 0.0), (100.0, 50.0), rented=True))).cards[0]
    assert found.cost == pytest.approx((32.0,) * 3)


def test_a_card_that_does_nothing_else_bears_its_whole_year_worked_out_by_hand():
    buyer = pair(2000.0, 4000.0, 100.0, 100.0, 50.0, 50.0)
    found = answer(buyer, "alone").cards
    first, second = (
        (price + 1500) * 0.9 / 4 + hours * (300 + 120) * 1.3 * 0.25 / 1000
        for price, hours in ((2000, 40.0), (4000, 20.0))
    )
    assert (best(found[0]), best(found[1])) == pytest.approx((first, second))
    assert Draws(buyer, "alone").ratio(1, 0)[1] == pytest.approx(second / first)


def test_alone_is_the_shared_computation_with_the_work_s_own_hours_as_utilisation():
    buyer = numbers(card("A", around(2000.0, 0.0), (100.0, 50.0)))
    own = 40.0 / 8760
    shared = answer(replace(buyer, inputs={**buyer.inputs, "utilisation": (own, own, own)}))
    assert answer(buyer, "alone").cards[0].cost == pytest.approx(shared.cards[0].cost)


def test_alone_a_rented_card_costs_as_much_as_shared_and_a_year_that_is_too_short_nothing():
    owned = card("A", around(2000.0, 0.0), (100.0, 50.0))
    rented = card("B", around(0.8, 0.0), (100.0, 50.0), rented=True)
    assert best(answer(numbers(owned, rented), "alone").cards[1]) == pytest.approx(32.0)
    long = answer(numbers(owned, rented, hours=(9000.0, 0.0)), "alone")
    assert (long.cards[0].cost, long.cards[0].break_even, long.order) == (None, None, (1,))


@given(first=prices, second=prices, more=st.floats(0, 20_000), a=times, b=times, c=times, d=times)
@settings(max_examples=40)
def test_a_higher_price_never_makes_a_card_cheaper(first, second, more, a, b, c, d):
    before = answer(pair(first, second, a, b, c, d, life_years=(2.0, 4.0, 6.0))).cards[0]
    after = answer(pair(first + more, second, a, b, c, d, life_years=(2.0, 4.0, 6.0))).cards[0]
    assert before.cost and after.cost
    assert all(new >= old for new, old in zip(after.cost, before.cost, strict=True))


@given(first=prices, second=prices, a=times, b=times, c=times, d=times)
@settings(max_examples=40)
def test_at_the_break_even_price_both_cards_cost_the_same(first, second, a, b, c, d):
    buyer = replace(pair(first, second, a, b, c, d), draws=FEW)
    for place, found in enumerate(answer(buyer).cards):
        assert found.break_even is not None
        if found.break_even[1] > 0:
            even = answer(with_value(buyer, "price", place, found.break_even[1])).cards
            assert best(even[0]) == pytest.approx(best(even[1]), rel=1e-9)


@given(first=prices, second=prices, a=times, b=times, c=times, d=times)
@settings(max_examples=25)
def test_swapping_two_cards_swaps_their_figures_and_inverts_their_ratio(first, second, a, b, c, d):
    # The hours are on the first card, so both rows are given the hours that they take on it.
    one = pair(first, second, a, b, c, d, hours=(a, b))
    other = pair(second, first, c, d, a, b, hours=(c, d))
    mine, swapped = answer(one).cards, answer(other).cards
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
    buyer = replace(random_buyer(seed), draws=FEW)
    hours = tuple(each * factor for each in buyer.hours)
    before, after = answer(buyer), answer(replace(buyer, hours=hours))
    assert after.order == before.order
    for new, old in zip(after.cards, before.cards, strict=True):
        assert new.ratio == (old.ratio and pytest.approx(old.ratio))
        assert new.break_even == (old.break_even and pytest.approx(old.break_even, rel=1e-6))
        if old.cost and new.cost:
            assert new.cost == pytest.approx(tuple(factor * one for one in old.cost))


@given(seed=seeds)
@settings(max_examples=40)
def test_every_range_holds_its_best_value(seed):
    for found in answer(random_buyer(seed)).cards:
        named = ("hours", "cost", "kwh", "ratio", "break_even")
        ranges = [getattr(found, name) for name in named]
        assert all(low <= middle <= high for low, middle, high in filter(None, ranges))


def test_where_only_the_measured_speed_is_uncertain_the_cost_is_as_uncertain_as_it():
    found = answer(pair(2000, 2000, 200.0, 200.0, 100.0, 100.0, part=0.1)).cards[0]
    assert found.ratio is not None
    assert found.ratio == pytest.approx((2 / 1.1, 2.0, 2 * 1.1), rel=0.01)


def test_what_both_cards_share_cancels_as_far_as_it_does_in_truth():
    alike = pair(2000, 2000, 200.0, 200.0, 100.0, 100.0, part=0.0, life_years=(1.0, 4.0, 8.0))
    found = answer(alike).cards[0]
    assert found.cost and found.cost[2] > 1.5 * found.cost[0]
    assert found.ratio == pytest.approx((2.0, 2.0, 2.0))


def test_a_card_that_does_not_fit_has_no_total_and_cannot_win():
    cheap = card("A", around(1.0, 0.0), (10.0, 10.0), fits=False)
    found = answer(numbers(cheap, card("B", around(9000.0, 0.0), (900.0, 900.0))))
    assert found.order == (1,)
    assert found.cards[0].cost is None
    assert found.cards[0].count == 0


def test_a_row_that_failed_or_was_not_measured_leaves_its_card_without_a_total_unless_it_has_no_hours():
    gap = card("A", around(1.0, 0.0), (10.0, None))
    whole = card("B", around(9000.0, 0.0), (900.0, 900.0))
    assert answer(numbers(whole, gap)).order == (0,)
    assert answer(numbers(whole, gap, hours=(30.0, 0.0))).order == (1, 0)


@pytest.mark.parametrize(
    ("limits", "count"),
    [
        ({}, None),
        ({"cards": 5.0}, 5),
        ({"slots": 3.0}, 3),
        ({"budget": 35_000.0}, 10),
        ({"budget": 34_999.0}, 9),
        ({"watts": 419.0}, 0),
        ({"watts": 420.0}, 1),
        ({"cards": 5.0, "slots": 8.0, "budget": 14_000.0, "watts": 3000.0}, 4),
    ],
)
def test_the_tightest_limit_says_how_many_cards_fit(limits, count):
    buyer = numbers(card("A", around(2000.0, 0.0), (100.0, 50.0)))
    assert answer(replace(buyer, limits={**buyer.limits, **limits})).cards[0].count == count


@pytest.mark.parametrize("use", ["shared", "alone"])
@given(seed=seeds)
@example(seed=374)
@settings(max_examples=25)
def test_at_the_turning_point_both_cards_cost_the_same(use, seed):
    buyer = replace(random_buyer(seed), draws=FEW)
    before = answer(buyer, use)
    order = before.order
    assume(len(order) > 1)
    # A turning point where both cost next to nothing is held to what they cost before it.
    rounding = 1e-6 * best(before.cards[order[0]])
    lever = most_moving(buyer, order[0], order[1], use)
    if lever is not None and lever.flip is not None and lever.name != "speed":
        cards = answer(with_value(buyer, lever.name, lever.of, lever.flip), use).cards
        assert best(cards[order[0]]) == pytest.approx(best(cards[order[1]]), rel=1e-6, abs=rounding)


def test_the_input_that_moves_the_answer_most_is_found():
    buyer = pair(2000, 5000, 200.0, 200.0, 100.0, 100.0, part=0.01, residual_share=(0.0, 0.1, 0.5))
    found = most_moving(buyer, 0, 1)
    assert found is not None and (found.name, found.of) == ("residual_share", None)
    sure = pair(2000, 5000, 200.0, 200.0, 100.0, 100.0, part=0.0)
    assert most_moving(sure, 0, 1) is None


def test_cards_are_counted_in_whole_offers():
    buyer = numbers(card("A", around(2000.0, 0.0), (100.0, 50.0), units=8))
    assert answer(replace(buyer, limits={**buyer.limits, "cards": 20.0})).cards[0].count == 16


def test_a_card_that_loses_even_for_nothing_has_no_price_at_which_both_cost_the_same():
    found = answer(pair(2000, 2000, 100.0, 100.0, 5000.0, 5000.0)).cards[1]
    assert found.break_even is not None and found.break_even[1] < 0


def test_draws_are_even_and_the_same_each_time():
    drawn = uniform(3, 100_000)
    assert drawn.tolist() == uniform(3, 100_000).tolist()
    assert 0 < drawn.min() < 1e-4 and 1 - 1e-4 < drawn.max() < 1
    assert drawn.mean() == pytest.approx(0.5, abs=0.005)
    assert abs(float(((drawn - 0.5) * (uniform(4, 100_000) - 0.5)).mean())) < 0.001
    between = triangular((1.0, 2.0, 4.0), 5, 100_000)
    assert between.mean() == pytest.approx(7 / 3, rel=0.005)
    assert (spread(-0.1, 0.2, 6, 100_000) > 2.718281828**0.2).mean() == pytest.approx(0.025, abs=0.003)
