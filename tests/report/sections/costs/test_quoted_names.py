"""Which card or machine a quote and hours of work are of."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from commands.quote import known
from harness.errors import UserError
from harness.record import Record
from tests.helpers import records_builder as build
from tests.helpers.priced_pages import LEAD, A, B, beneath, column, looked, money, powered
from tests.helpers.purchase_builder import FILE


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('card = "Card A"', 'card = "Constructed Card"', "quote 1: 'Constructed Card' is a part of several"),
        ("currency", 'hours_on = "Card Z"\ncurrency', "'hours_on' names 'Card Z'"),
    ],
)
def test_a_name_that_fits_several_cards_or_none_is_refused_with_what_there_is(old, new, says):
    with pytest.raises(UserError) as caught:
        looked(build.two_cards(), FILE.replace(old, new, 1))
    assert says in str(caught.value)
    assert A in str(caught.value) and B in str(caught.value)


def test_a_line_of_the_mix_that_fits_several_is_refused_with_the_key_that_tells_them_apart():
    card = "Constructed Card A"
    more = build.series_of(
        build.LM,
        "fp32-ieee",
        0.02,
        batch_size=40,
        on=build.machine(card, label="card-a", digits="a"),
        card=card,
        session=LEAD,
        first_order=70,
    )
    with pytest.raises(UserError, match=r"work 1 fits several lines .* differ in batch_size: 20, 40"):
        looked([*build.two_cards(), *more])


def test_one_card_quoted_to_buy_and_to_rent_is_two_offers():
    rent = FILE.replace("price = 2000", "price_per_hour = 0.9").replace('card = "Card A"', 'card = "Card B"')
    assert beneath(money(build.two_cards(), rent).offers)[A] == "no quote, and its power is not known"
    costs = money(powered(build.two_cards(), {"a": 250.0, "b": 200.0}), rent)
    assert list(beneath(costs.offers)) == [f"{B}, rented", f"{B}, bought", A]
    assert beneath(costs.offers)[A] == "no quote"
    assert column(costs.offers, "Costs least below")[A] not in ("–", "no price")


def on_processors(labels: Sequence[str]) -> list[Record]:
    """The first card's records as those of machines that share a processor and nothing else."""
    within = build.environment(image="cpu", device="cpu")
    return [
        record
        for place, (label, session) in enumerate(zip(labels, (LEAD, "20260130-bbbbbb"), strict=True))
        for record in build.series_of(
            build.LM,
            "fp32-ieee",
            0.1 + place,
            batch_size=20,
            within=within,
            on=build.machine("Constructed CPU", label=label, digits="ab"[place]),
            card="Constructed CPU",
            session=session,
        )
    ]


def test_a_processor_that_two_machines_have_is_quoted_by_the_machine_s_label():
    records = on_processors(["2-cores", "1-core"])
    by_card, by_label = (FILE.replace('"Card A"', f'"{name}"') for name in ("Constructed CPU", "1-core"))
    with pytest.raises(UserError, match=r"is a part of several: .*2-cores.*1-core.*machine's label"):
        looked(records, by_card)
    strangers = on_processors(["1-core", "1-core"])
    with pytest.raises(UserError, match=r"is a part of several: .*\(aaaa\).*\(bbbb\)"):
        looked(strangers, FILE.replace('"Card A"', '"constructed-1-core"'))
    costs = money(records, by_label)
    assert set(beneath(costs.offers)) == {"machine constructed-1-core", "this machine"}
    assert column(costs.offers, "Cost a year")["this machine"] == "–"


def test_the_hours_may_be_given_on_a_machine_as_quote_offers_it_and_never_on_two_at_once():
    records = on_processors(["2-cores", "1-core"])
    one, two = known(records).cards
    text = FILE.replace('"Card A"', f'"{one}"').replace('"Card B"', f'"{two}"')
    costs = money(records, text.replace("currency", f'hours_on = "{two}"\ncurrency', 1))
    assert costs.setting == "Your work is 1,040 hours a year of LSTM in fp32-ieee on this machine."
    with pytest.raises(UserError, match=r"'Constructed CPU', several of .*1-core.*2-cores"):
        money(records, text.replace("currency", 'hours_on = "Constructed CPU"\ncurrency', 1))


def test_a_card_that_two_machines_have_is_quoted_once_and_the_page_says_whose_figures_count():
    records = [
        record
        for digits, step_seconds, session in (("a", 0.1, LEAD), ("b", 0.11, "20260130-bbbbbb"))
        for record in build.series_of(
            build.LM,
            "fp32-ieee",
            step_seconds,
            batch_size=20,
            on=build.machine(A, label=digits, digits=digits),
            card=A,
            session=session,
        )
    ]
    costs = money(records)
    assert set(beneath(costs.offers)) == {A}
    said = f"2 machines have the {A}: its quote is set against the figures of this machine."
    assert said in costs.caveats


def test_a_machine_may_be_named_by_its_label():
    costs = money(build.two_cards(), FILE.replace('card = "Card A"', 'card = "constructed-card-a"'))
    assert set(beneath(costs.offers)) == {A, B}
