"""The page of a buyer's offers by its states, of constructed records and expectations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import pytest

from report.buying.purchase import parse_purchase
from report.expected.relative import CardsOnPaper
from report.page.one.cost import page
from report.page.values import AnswerPage, systems_of
from tests.helpers import records_builder as build
from tests.helpers.record_sets import LEAD, A, B, elsewhere, series
from tests.helpers.trial_tables import analysed

SITE = 'life_years = 4\nelectricity_price = 0.25\nhours_on = "Constructed Card A"\n'
WORK = '[[work]]\nworkload = "word_lm"\nmodel = "LSTM"\nprecision = "fp32-ieee"\nhours_per_year = {}\n'


def of_offers(
    prices: Mapping[str, float],
    hours: float | None = 2000,
    *,
    more: str = "",
    factor: float = 1.1,
    lost: bool = False,
) -> AnswerPage:
    """The page of cards at these prices, of which others than A and B are on paper alone, equally fast."""
    offers = [
        f'[[offer]]\ncard = "{card}"\nprice = {price}\nwatts = 300\n{more}' for card, price in prices.items()
    ]
    records = [*series(repeats=3), *elsewhere(repeats=3)]
    if lost:
        asked, on = build.trial(build.LM, "fp32-ieee", 1, batch_size=20), records[0].machine
        records.append(
            build.record(asked, None, on=on, session=LEAD, order=50, failure=build.out_of_memory())
        )
    text = SITE + "".join(offers) + (WORK.format(hours) if hours else "")
    found = analysed(records, parse_purchase(text))
    assert found.costs is not None
    lines = [line.name for line in (*found.costs.lines, *found.costs.left_out)]
    unmeasured = {pair for pair in permutations(prices, 2) if set(prices) - {A, B}}
    time = (1 / factor, 1.0, factor)
    paper = CardsOnPaper(times={(*pair, line): time for pair in unmeasured for line in lines})
    told = found.with_request(found.request, paper)
    return page(told, systems_of(told))


@pytest.mark.parametrize(
    ("prices", "hours", "state", "order"),
    [
        ({A: 4000, B: 20_000}, 2000, "offers", [A, B]),
        ({A: 20_000, B: 4000}, 2000, "offers", [B, A]),
        ({A: 4000, B: 4100}, 2000, "offers-tied", [B, A]),
        ({A: 4000, "Card C": 4010}, 2000, "offers-tied", [A, "Card C"]),
        ({A: 4000, B: 20_000}, None, "offers-no-hours", [A, B]),
    ],
)
def test_one_offer_is_named_where_each_other_cost_over_its_own_excludes_1(prices, hours, state, order):
    found = of_offers(prices, hours)
    assert (found.headline.state, [row.system.card for row in found.table.rows]) == (state, order)
    assert all(bool(row.cost) == bool(hours) for row in found.table.rows)


def test_without_work_each_offer_has_its_speed_in_what_all_did():
    slow, fast = of_offers({A: 4000, B: 20_000}, None).table.rows
    assert (slow.speeds[0].value, fast.speeds[0].value) == (1.0, pytest.approx(1.25, rel=0.02))


def test_an_offer_s_measurement_enters_where_each_compared_one_has_it_and_else_stands_beside():
    both, three = of_offers({A: 4000, B: 20_000}), of_offers({A: 4000, B: 20_000, "Card C": 9000})
    assert [(row.expected, row.beside) for row in both.table.rows] == [(False, ())] * 2
    assert both.following.data["commands"] == ("invoke bundle",)
    assert {row.system.card: row.expected for row in three.table.rows} == {A: False, "Card C": True, B: True}
    assert {row.system.card for row in three.table.rows if row.beside} == {A, B}
    # By the papers all are equally fast.
    assert {row.hours.value for row in three.table.rows} == {2000}


def test_a_number_below_the_need_is_a_chip_and_the_cost_is_of_what_is_needed():
    found = of_offers({A: 4000}, 8000, more="number = 1\n")
    assert [chip.data["row"].cards[1] for chip in found.chips if chip.name == "too-few"] == [2]
    assert found.table.rows[0].cost.value == pytest.approx(2 * 4000 / 4 + 8000 * 0.3 * 0.25)


def test_work_that_does_not_fit_is_never_bought_for_and_with_no_other_offer_that_is_the_answer():
    found = of_offers({A: 400, B: 20_000}, lost=True)
    assert (found.headline.state, found.table.rows[0].system.card, found.table.ranked) == ("offers", B, 1)
    assert of_offers({A: 400}, lost=True).headline.state == "offers-too-small"


def test_a_run_by_the_seller_would_narrow_the_range_of_what_it_costs():
    found = of_offers({"Card C": 4000, A: 20_000}, factor=2.0)
    after, before = found.following.data["after"], found.table.rows[0].cost
    assert before.low < after.low < before.value < after.high < before.high
    assert after.value == before.value == pytest.approx(1000 + 2000 * 0.3 * 0.25)
