"""The file that `invoke quote` writes: nothing in it counts before it is edited; then the report reads it."""

from __future__ import annotations

import re

import pytest

from commands import quote
from harness.errors import UserError
from report.buying.purchase import FILE, load_purchase, parse_purchase
from tests.helpers.here import results_here

FOUND = (["Card A", "Card B"], [("word_lm", "LSTM", "amp-bf16", 20)])


def filled(text: str, **values: str) -> str:
    """The file with these keys given in their first place, and the comment signs of their tables gone."""
    for name, value in values.items():
        text = re.sub(rf"^# {name} = .*$", f"{name} = {value}", text, count=1, flags=re.M)
    known = r"^# (\[\[\w+\]\]|card = .*A.*|(?:workload|model|precision|batch_size) = .*)$"
    head, second = text.split('\n# [[offer]]\n# card = "Card B"')
    return re.sub(known, r"\1", head + second[second.index("\n# [[work]]") :], flags=re.M)


def test_the_file_as_written_is_no_purchase_and_needs_a_card_a_price_and_hours_alone(tmp_path):
    text = quote.purchase_text(*FOUND)
    assert all(not line or line.startswith("# ") for line in text.splitlines())
    needed = [line.split()[1] for line in text.splitlines() if "# needed" in line]
    assert needed == ["price", "price", "hours_per_year"]
    (tmp_path / FILE).write_text(text)
    assert load_purchase(tmp_path) is None


def test_a_fresh_clone_s_file_says_what_to_type_and_an_empty_card_is_refused_in_a_clear_sentence():
    text = quote.purchase_text([], [])
    assert '# card = ""  # needed: any card by its name' in text
    for name, value in {"price_per_hour": "2", "card": '""'}.items():
        text = re.sub(rf"^# {name} = .*$", f"{name} = {value}", text, count=1, flags=re.M)
    with pytest.raises(UserError, match=r"'offer 1\.card': it is empty"):
        parse_purchase(text.replace("# [[offer]]", "[[offer]]"))


def test_the_file_with_its_values_given_is_one_that_the_report_reads():
    found = parse_purchase(filled(quote.purchase_text(*FOUND), price="1800", hours_per_year="20"))
    assert (found.offer[0].card, found.offer[0].cost, found.life_years) == ("Card A", (1800,) * 3, None)
    (work,) = found.work
    assert (work.model, work.precision, work.batch_size, work.hours_per_year) == ("LSTM", "amp-bf16", 20, 20)


def test_a_file_that_is_there_stays(tmp_path):
    path = tmp_path / "purchase.toml"
    path.write_text("mine")
    with pytest.raises(UserError, match="is there already"):
        quote.quote(tmp_path)
    assert path.read_text() == "mine"
    path.unlink()
    quote.quote(tmp_path)
    assert "# [[offer]]" in path.read_text()


def test_the_names_on_record_are_those_of_trainings_on_one_device_here():
    cards, works = quote.recorded_works([stored.record for stored in results_here().records])
    assert ("word_lm", "LSTM", "fp32-ieee", 20) in works
    assert cards and "ceilings" not in {workload for workload, *_ in works}
