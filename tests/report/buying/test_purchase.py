from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.quote import as_toml
from harness.errors import UserError
from report.buying.purchase import FILE, Offer, Purchase, Work, load_purchase, parse_purchase
from tests.helpers import ROOT
from tests.helpers.here import results_here

DOCS = ROOT / "docs" / "buying.md"
EXAMPLE = """\
currency = "EUR"
budget = 60000
life_years = { low = 3, best = 4, high = 5 }
utilisation = 0.5
electricity_price = 0.25

[[offer]]
card = "Constructed Card A"
price = 1800
date = 2026-01-05
source = "a constructed offer"

[[work]]
workload = "word_lm"
precision = "fp32-ieee"
hours_per_year = 1040
"""
OLD = """\
currency = "EUR"
utilisation = 0.5
electricity_price = 0.25

[[quote]]
card = "Constructed Card A"
price = 1800
currency = "EUR"
date = 2026-01-05
source = "a constructed offer"

[[work]]
workload = "word_lm"
model = "lstm"
precision = "fp32-ieee"
hours = 20
"""
"""A file of the first shape: quotes, each in a currency, and hours of a week."""


def refused(old: str, new: str) -> str:
    assert old in EXAMPLE
    with pytest.raises(UserError) as caught:
        parse_purchase(EXAMPLE.replace(old, new, 1))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("budget =", "bugdet =", ":2: bugdet: unknown key"),
        ("budget = 60000", "budget = true", ":2: budget: Input should be a valid number"),
        ("budget = 60000", "budget = 0", ":2: budget: 0 cannot be meant"),
        ("utilisation = 0.5", "utilisation = 0", ":4: utilisation: 0 cannot be meant"),
        ("utilisation = 0.5", "utilisation = 1.5", ":4: utilisation: 1.5 cannot be meant"),
        ("low = 3", "low = 6", ":3: life_years: 6, 4, 5 are not low ≤ best ≤ high"),
        ("low = 3, ", "", ":3: life_years.low: it is missing"),
        ("electricity_price = 0.25", "", "a card that is bought needs 'electricity_price'"),
        ("life_years = { low = 3, best = 4, high = 5 }", "life_years = 90", ":3: life_years: 90 cannot be"),
        ("price = 1800", "price = 0", "offer 1.price: 0 cannot be meant"),
        ("price = 1800", "price = 1e-300", "offer 1.price: 1e-300 cannot be meant"),
        ("price = 1800", "price = -3", "offer 1.price: -3 cannot be meant"),
        ("price = 1800", "price = nan", ":9: offer 1.price.low: Input should be a finite number"),
        ("price = 1800", "price = inf", ":9: offer 1.price.low: Input should be a finite number"),
        ("price = 1800", 'price = "dear"', ":9: offer 1.price: it has to be a number, or { low"),
        ("price = 1800", "", "it needs either 'price' or 'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nprice_per_hour = 1", "'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nwatts = 0", "offer 1.watts: 0 cannot be meant"),
        ("date = 2026-01-05", 'date = "soon"', ":10: offer 1.date"),
        ("date = 2026-01-05", "date = 2099-01-05", "2099-01-05 is no date of an offer"),
        (
            "hours_per_year = 1040",
            "hours_per_year = 1e6",
            "1,000,000 hours a year, more than 1 of the cards have",
        ),
        ("date = 2026-01-05", "date = 1926-01-05", "1926-01-05 is no date of an offer"),
        ('source = "a constructed offer"', "", ":7: offer 1.source: it is missing"),
        ("price = 1800", 'price = 1800\ncurrency = "USD"', "currencies are not mixed"),
        ('currency = "EUR"', 'currency = "euro"', ":1: currency: it has to be three capital letters"),
        ("fp32-ieee", "fp31", ":15: work 1.precision: Input should be 'fp32-ieee'"),
        ("hours_per_year = 1040", "hours_per_year = 0", ":16: work 1.hours_per_year: 0 cannot be meant"),
        ("hours_per_year = 1040", "Hours = 20", ":16: work 1.Hours: unknown key"),
        ("hours_per_year = 1040", 'hours = "20"', ":16: work 1.hours: unknown key"),
        ("hours_per_year = 1040", "", ":13: work 1: it needs either 'hours_per_year' or 'share'"),
        ("hours_per_year = 1040", "share = 1.5", "work 1.share: 1.5 cannot be meant"),
        ("hours_per_year = 1040", "share = 1e-300", "work 1.share: 1e-300 cannot be meant"),
        (
            'source = "a constructed offer"',
            'source = "x"\nunits = 0',
            "offer 1.units: Input should be greater",
        ),
        ("budget = 60000", 'use = "both"', ":2: use: Input should be 'shared' or 'alone'"),
        ("budget = 60000", "residual_share = 1", ":2: residual_share: 1 cannot be meant"),
        ("budget = 60000", "pue = 0.9", ":2: pue: 0.9 cannot be meant"),
        ("budget = 60000", "slots = 2.5", ":2: slots: Input should be a valid integer"),
        ("[[work]]", "[[work]", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_in_one_sentence_that_names_the_key(old, new, says):
    assert says in refused(old, new)


def test_a_file_of_rented_cards_alone_needs_no_life_and_no_price_of_electricity():
    text = EXAMPLE.replace("price = 1800", "price_per_hour = { low = 0.4, best = 0.5, high = 0.5 }")
    text = re.sub(r"^(life_years|utilisation|electricity_price).*\n", "", text, flags=re.M)
    offer = parse_purchase(text).offer[0]
    assert offer.rented
    assert offer.cost == (0.4, 0.5, 0.5)


def test_a_file_that_is_not_there_is_none_and_one_of_other_bytes_is_refused(tmp_path):
    assert load_purchase(tmp_path) is None
    (tmp_path / FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not TOML"):
        load_purchase(tmp_path)


texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=40)
prices = st.floats(1e-3, 1e9)
ranges = st.lists(prices, min_size=3, max_size=3).map(
    lambda found: dict(zip(("low", "best", "high"), sorted(found), strict=True))
)


@given(card=texts, source=texts, price=st.one_of(prices, ranges), budget=st.one_of(st.none(), prices))
def test_a_written_file_reads_back_as_it_was(card, source, price, budget):
    offer = {"card": card, "price": price, "units": 2, "date": "2026-01-05", "source": source}
    found = Purchase.model_validate(
        {
            "currency": "EUR",
            "budget": budget,
            "life_years": 4,
            "utilisation": 0.5,
            "electricity_price": 0,
            "offer": [offer],
        }
    )
    assert parse_purchase(as_toml(found)) == found


def test_a_file_of_the_first_shape_is_the_same_as_one_of_the_last():
    found = parse_purchase(OLD)
    assert (found.offer[0].card, found.offer[0].cost, found.offer[0].units) == (
        "Constructed Card A",
        (1800,) * 3,
        1,
    )
    assert found.work[0].hours_per_year == pytest.approx(20 * 365 / 7)
    assert (found.use, parse_purchase(as_toml(found))) == ("shared", found)


def test_a_mistake_in_a_file_of_the_first_shape_has_its_line():
    with pytest.raises(UserError, match=r"purchase\.toml:7: offer 1\.price: 0 cannot be meant"):
        parse_purchase(OLD.replace("price = 1800", "price = 0"))


def test_each_cause_is_one_line_with_the_first_of_its_places():
    more = EXAMPLE[EXAMPLE.index("[[offer]]") : EXAMPLE.index("[[work]]")]
    with pytest.raises(UserError) as caught:
        parse_purchase((EXAMPLE + more * 3).replace("price = 1800", "price = 0").replace("budget", "bugdet"))
    lines = caught.value.problem.split("\n")
    assert len(lines) == 2
    assert (
        "bugdet" in lines[0]
        and lines[1].endswith("(and in 3 more places)")
        and ":9: offer 1.price" in lines[1]
    )


def test_a_card_costs_its_part_of_an_offer_and_a_year_has_the_hours_of_all_its_cards():
    text = EXAMPLE.replace("price = 1800", "price = 14400\nunits = 8")
    assert parse_purchase(text).offer[0].cost == (1800, 1800, 1800)
    assert parse_purchase(text.replace("1040", "70000")).work[0].hours_per_year == 70_000
    with pytest.raises(UserError, match="80,000 hours a year, more than 8"):
        parse_purchase(text.replace("1040", "80000"))


def test_work_needs_only_its_name_and_hours_or_a_share():
    text = EXAMPLE.replace('precision = "fp32-ieee"\n', "").replace("word_lm", "a program to come")
    shared = text.replace("hours_per_year = 1040", "share = 0.7")
    assert (parse_purchase(text).work[0].model, parse_purchase(shared).work[0].share) == (None, 0.7)
    again = shared[shared.index("[[work]]") :]
    with pytest.raises(UserError, match=r"the shares of the work are 1\.4 together"):
        parse_purchase(shared + again)
    with pytest.raises(UserError, match="hours and shares"):
        parse_purchase(shared + text[text.index("[[work]]") :])


def test_a_machine_for_its_own_work_alone_has_work():
    alone = 'use = "alone"\n' + EXAMPLE
    assert parse_purchase(alone).use == "alone"
    with pytest.raises(UserError, match="needs '\\[\\[work\\]\\]'"):
        parse_purchase(alone[: alone.index("[[work]]")])


def test_the_example_s_work_is_on_record_in_a_fresh_clone_under_the_names_that_it_has():
    page = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example
    given = [(work.workload, work.model) for work in parse_purchase(example[1]).work]
    recorded = {
        (asked.workload, model)
        for stored in results_here().records
        for asked in (stored.record.trial.asked,)
        for model in (asked.variant.model, None)
    }
    assert given and set(given) <= recorded


def test_the_page_on_the_file_has_an_example_that_is_valid_and_every_key():
    page = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example
    found = parse_purchase(example[1])
    assert len(found.offer) > 1 and found.work
    assert set(tomllib.loads(example[1])) >= set(Purchase.model_fields) - {"slots", "use"}
    for name in {*Purchase.model_fields, *Offer.model_fields, *Work.model_fields}:
        assert f"`{name}`" in page, name
