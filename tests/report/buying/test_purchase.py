from __future__ import annotations

import re

import pytest

from harness.errors import UserError
from report.analysis import evidence_in
from report.buying.purchase import (
    FILE,
    UNFILLED,
    Offer,
    Purchase,
    PurchaseWork,
    load_purchase,
    parse_purchase,
)
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.here import results_here
from tests.helpers.purchase_builder import FILE as BUYER
from tests.helpers.record_sets import series
from tests.helpers.trial_tables import analysed

DOCS = ROOT / "docs" / "buying.md"
EXAMPLE = """\
currency = "EUR"
host_watts = 120
life_years = { low = 3, best = 4, high = 5 }
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


def refused(old: str, new: str) -> str:
    assert old in EXAMPLE
    with pytest.raises(UserError) as caught:
        parse_purchase(EXAMPLE.replace(old, new, 1))
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("host_watts =", "host_wats =", "'host_wats': unknown key"),
        ("host_watts = 120", "host_watts = true", "'host_watts': it has to be a number"),
        ("host_watts = 120", "host_watts = 1e9", "'host_watts': 1e+09 cannot be meant"),
        ("host_watts = 120", "busy_share = 0", "'busy_share': 0 cannot be meant"),
        ("host_watts = 120", "busy_share = 1.5", "'busy_share': 1.5 cannot be meant"),
        ("low = 3", "low = 6", "'life_years': 6, 4, 5 are not low ≤ best ≤ high"),
        ("low = 3, ", "", "'life_years.low': it is missing"),
        ("life_years = { low = 3, best = 4, high = 5 }", "life_years = 90", "'life_years': 90 cannot be"),
        ("price = 1800", "price = 0", "'offer 1.price': 0 cannot be meant"),
        ("price = 1800", "price = -3", "'offer 1.price': -3 cannot be meant"),
        ("price = 1800", "price = nan", "'offer 1.price.low': Input should be a finite number"),
        ("price = 1800", 'price = "dear"', "'offer 1.price': it has to be a number, or { low"),
        ("price = 1800", "", "it needs either 'price' or 'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nprice_per_hour = 1", "'price_per_hour', and not both"),
        ("price = 1800", "price = 1800\nwatts = 0", "'offer 1.watts': 0 cannot be meant"),
        ("date = 2026-01-05", 'date = "soon"', "'offer 1.date'"),
        ("date = 2026-01-05", "date = 2099-01-05", "2099-01-05 is no date of an offer"),
        ("date = 2026-01-05", "date = 1926-01-05", "1926-01-05 is no date of an offer"),
        ('currency = "EUR"', 'currency = "euro"', "'currency': it has to be three capital letters"),
        ("fp32-ieee", "fp31", "'work 1.precision': Input should be 'fp32-ieee'"),
        ("hours_per_year = 1040", "hours_per_year = 0", "hours_per_year': Input should be greater than 0"),
        ("hours_per_year = 1040", "Hours = 20\nhours_per_year = 9", "'work 1.Hours': unknown key"),
        ("hours_per_year = 1040", "", "'work 1.hours_per_year': it is missing"),
        ("host_watts = 120", "residual_share = 1", "'residual_share': 1 cannot be meant"),
        ("host_watts = 120", "pue = 0.9", "'pue': 0.9 cannot be meant"),
        ("hours_per_year = 1040", "hours_per_year = 9\nbatch_size = 2.5", "Input should be a valid integer"),
        ("[[work]]", "[[work]", "is not TOML"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused_in_one_sentence_that_names_the_key(old, new, says):
    assert says in refused(old, new)


def test_a_card_its_price_and_hours_are_enough_and_the_sum_is_without_power():
    text = '[[offer]]\ncard = "A"\nprice = 1800\n[[work]]\nworkload = "word_lm"\nhours_per_year = 9000'
    found = analysed(series(repeats=3), parse_purchase(text)).costs
    assert found is not None and not found.powered
    (cost,) = (found.model.cost(n) for n in found.order)
    # 9,000 h are more than 7,008, and the life is assumed.
    assert cost.cards == (2, 2, 2) and cost.cost == pytest.approx((450, 900, 1800))


def test_a_file_that_is_not_there_or_without_a_price_is_none_and_one_of_other_bytes_is_refused(tmp_path):
    assert load_purchase(tmp_path) is None
    (tmp_path / FILE).write_text('currency = "EUR"\n[[offer]]\ncard = "Card A"\n')
    assert load_purchase(tmp_path) is None and evidence_in(tmp_path).results.problems == (UNFILLED,)
    (tmp_path / FILE).write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="is not UTF-8"):
        load_purchase(tmp_path)


@pytest.fixture
def example() -> Purchase:
    """The file that the page on it shows."""
    shown = re.search(r"```toml\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.S)
    assert shown
    return parse_purchase(shown[1])


def test_the_example_s_work_is_on_record_in_a_fresh_clone_under_the_names_that_it_has(example):
    given = [(work.workload, work.model) for work in example.work]
    recorded = {
        (asked.workload, model)
        for stored in results_here().records
        for asked in (stored.record.trial.asked,)
        for model in (asked.variant.model, None)
    }
    assert given and set(given) <= recorded


@pytest.mark.parametrize("hours_on", ["Constructed Card A", "RTX 3090"])
def test_every_offer_of_a_long_file_stands_and_the_hours_are_on_the_card_that_it_names(hours_on):
    one = '[[offer]]\ncard = "Card {}"\nprice = 2000\ndate = 2026-01-05\nsource = "constructed"\n'
    head, work = BUYER.partition("[[offer]]")[0], BUYER.partition("[[work]]")
    text = head + f'hours_on = "{hours_on}"\n' + "".join(map(one.format, range(9))) + "".join(work[1:])
    found = analysed(series(repeats=3), parse_purchase(text)).costs
    assert found is not None and len(found.offers) == 9
    assert found.cards[found.base].card == hours_on


@pytest.mark.parametrize(
    ("offer", "card", "is_it"),
    [
        ("H20", "NVIDIA H200", False),
        ("L4", "NVIDIA L40S", False),
        ("A10", "NVIDIA A100-SXM4-40GB", False),
        ("RTX 3060", "NVIDIA GeForce RTX 3060 Ti", False),
        ("RTX 4090", "NVIDIA GeForce RTX 4090 Laptop GPU", False),
        ("A100", "NVIDIA A100-SXM4-40GB MIG 1g.5gb", False),
        ("A100", "NVIDIA A100-SXM4-40GB", True),
        ("nvidia h100", "NVIDIA H100 80GB HBM3", True),
    ],
)
def test_an_offer_is_not_the_card_on_record_whose_name_only_begins_as_its_own(offer, card, is_it):
    on = build.machine(card, label="desk", digits="a")
    asked = parse_purchase(EXAMPLE.replace("Constructed Card A", offer))
    found = analysed(series(repeats=3, on=on, card=card), asked).costs
    assert found is not None and [one.measured for one in found.offers if one.offer] == [is_it]


def test_the_page_on_the_file_has_an_example_that_is_valid_and_every_key(example):
    page = DOCS.read_text(encoding="utf-8")
    assert len(example.offer) > 1 and example.work
    for name in {*Purchase.model_fields, *Offer.model_fields, *PurchaseWork.model_fields}:
        assert f"`{name}`" in page, name
