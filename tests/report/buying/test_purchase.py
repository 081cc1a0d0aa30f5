from __future__ import annotations

import re
import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.quote import as_toml
from harness.errors import UserError
from harness.record.store import read_all
from report.buying.purchase import FILE, Purchase, Quote, WorkloadHours, load_purchase, parse_purchase
from tests.helpers import ROOT

DOCS = ROOT / "docs" / "buying.md"
EXAMPLE = """\
currency = "EUR"
budget = 60000
life_years = { low = 3, best = 4, high = 5 }
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
hours_per_year = 1040
"""


def refused(old: str, new: str) -> str:
    assert old in EXAMPLE
    with pytest.raises(UserError) as caught:
        parse_purchase(EXAMPLE.replace(old, new, 1))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("budget =", "bugdet =", "'bugdet': unknown key"),
        ("budget = 60000", "budget = true", "'budget': it has to be a valid number"),
        ("budget = 60000", "budget = 0", "'budget': 0 cannot be meant"),
        ("utilisation = 0.5", "utilisation = 0", "'utilisation': 0 cannot be meant"),
        ("utilisation = 0.5", "utilisation = 1.5", "'utilisation': 1.5 cannot be meant"),
        ("low = 3", "low = 6", "'life_years': 6, 4, 5 are not low ≤ best ≤ high"),
        ("low = 3, ", "", "'life_years.low': it is missing"),
        ("electricity_price = 0.25", "", "a card that is bought needs 'electricity_price'"),
        ("life_years = { low = 3, best = 4, high = 5 }", "life_years = 90", "'life_years': 90 cannot be"),
        ("price = 1800", "price = 0", "'quote 1.price': 0 cannot be meant"),
        ("price = 1800", "price = 1e-300", "'quote 1.price': 1e-300 cannot be meant"),
        ("price = 1800", "price = -3", "'quote 1.price': -3 cannot be meant"),
        ("price = 1800", "price = nan", "'quote 1.price.low': it has to be a finite number"),
        ("price = 1800", "price = inf", "'quote 1.price.low': it has to be a finite number"),
        ("price = 1800", 'price = "dear"', "'quote 1.price': it has to be a number, or { low"),
        ("price = 1800", "", "it needs either 'price' or 'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nprice_per_hour = 1", "'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nwatts = 0", "'quote 1.watts': 0 cannot be meant"),
        ("date = 2026-01-05", 'date = "soon"', "'quote 1.date'"),
        ("date = 2026-01-05", "date = 2099-01-05", "2099-01-05 is no date of a quote"),
        ("hours_per_year = 1040", "hours_per_year = 1e6", "1,000,000 hours a year, more than one card has"),
        ("date = 2026-01-05", "date = 1926-01-05", "1926-01-05 is no date of a quote"),
        ('source = "a constructed offer"', "", "'quote 1.source': it is missing"),
        ('currency = "EUR"', 'currency = "USD"', "currencies are not mixed"),
        ('currency = "EUR"', 'currency = "euro"', "'currency': it has to be three capital letters"),
        ("fp32-ieee", "fp31", "'work 1.precision': it has to be 'fp32-ieee'"),
        ("hours_per_year = 1040", "hours_per_year = 0", "'work 1.hours_per_year': 0 cannot be meant"),
        ("hours_per_year = 1040", "Hours = 20", "'work 1.hours_per_year': it is missing"),
        ("hours_per_year = 1040", 'hours = "20"', "'hours' is of a week and no number"),
        ("budget = 60000", "residual_share = 1", "'residual_share': 1 cannot be meant"),
        ("budget = 60000", "pue = 0.9", "'pue': 0.9 cannot be meant"),
        ("budget = 60000", "slots = 2.5", "'slots': it has to be a valid integer"),
        ("[[work]]", "[[work]", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_in_one_sentence_that_names_the_key(old, new, says):
    assert says in refused(old, new)


def test_a_file_of_rented_cards_alone_needs_no_life_and_no_price_of_electricity():
    text = EXAMPLE.replace("price = 1800", "price_per_hour = { low = 0.4, best = 0.5, high = 0.5 }")
    text = re.sub(r"^(life_years|utilisation|electricity_price).*\n", "", text, flags=re.M)
    quote = parse_purchase(text).quote[0]
    assert quote.rented
    assert quote.cost == (0.4, 0.5, 0.5)


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
    quote = {"card": card, "price": price, "currency": "EUR", "date": "2026-01-05", "source": source}
    found = Purchase.model_validate(
        {
            "currency": "EUR",
            "budget": budget,
            "life_years": 4,
            "utilisation": 0.5,
            "electricity_price": 0,
            "quote": [quote],
        }
    )
    assert parse_purchase(as_toml(found)) == found


def test_the_example_s_work_is_on_record_in_a_fresh_clone_under_the_names_that_it_has():
    page = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example
    given = [(work.workload, work.model, work.precision) for work in parse_purchase(example[1]).work]
    recorded = {
        (asked.workload, asked.variant.model, asked.variant.precision)
        for stored in read_all(ROOT).records
        for asked in (stored.record.trial.asked,)
    }
    assert given and set(given) <= recorded


def test_the_page_on_the_file_has_an_example_that_is_valid_and_every_key():
    page = DOCS.read_text(encoding="utf-8")
    example = re.search(r"```toml\n(.*?)```", page, re.S)
    assert example
    found = parse_purchase(example[1])
    assert len(found.quote) > 1 and found.work
    assert set(tomllib.loads(example[1])) >= set(Purchase.model_fields) - {"slots"}
    for name in {*Purchase.model_fields, *Quote.model_fields, *WorkloadHours.model_fields}:
        assert f"`{name}`" in page, name
