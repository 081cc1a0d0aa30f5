from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import quote
from harness.errors import UserError
from harness.record.store import read_all
from report.buying.purchase import Quote, parse_purchase
from tests.helpers import ROOT

TODAY = date(2026, 2, 3)
NAMES = quote.Known(
    ("Card A", "Card B"),
    (("cifar_fastai", "resnet50", "fp32-ieee", 48), ("word_lm", "LSTM", "amp-bf16", 20)),
    TODAY,
)
RUNNING = ("3 4 5", "0.5", "0,25", "", "", "", "")
LIMITS = ("60000", "", "8", "", "")
OFFER = ("1800", "2026-01-05", "an offer", "300")
BOUGHT = ("EUR", "Card A", *OFFER, "n", *RUNNING, *LIMITS)
WHOLE = (*BOUGHT, "word_lm", "LSTM", "fp32-ieee", "", "20", "", "Card A", "")


def asked(path: Path, answers: Sequence[str], *, without_asking: bool = False) -> tuple[bool, list[str]]:
    left: Iterator[str] = iter(answers)
    said: list[str] = []

    def ask(question: str) -> str:
        said.append(question)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    done = quote.run(path, ask=ask, say=said.append, names=NAMES, without_asking=without_asking)
    assert not list(left), "not all answers were asked for"
    return done, said


def test_answers_become_a_file_that_the_report_reads(tmp_path):
    path = tmp_path / "purchase.toml"
    assert asked(path, WHOLE)[0]
    found = parse_purchase(path.read_text())
    assert found.quote[0].cost == (1800, 1800, 1800)
    assert found.life_years and found.life_years.values == (3, 4, 5)
    assert found.electricity_price and found.electricity_price.best == 0.25
    assert (found.work[0].workload, found.work[0].hours_per_year, found.hours_on) == ("word_lm", 20, "Card A")


def test_a_value_that_cannot_be_meant_is_asked_for_again_with_the_reason(tmp_path):
    answers = list(WHOLE)
    answers[8:8] = ["1.7", "half"]
    done, said = asked(tmp_path / "purchase.toml", answers)
    assert done
    assert "  1.7 cannot be meant: it has to be above 0 and at most 1" in said
    assert sum(line.startswith("utilisation") for line in said) == 3


def test_years_of_life_may_be_left_out(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = list(WHOLE)
    assert answers[7] == "3 4 5"
    answers[7] = ""
    assert asked(path, answers)[0]
    assert parse_purchase(path.read_text()).life_years is None


def test_a_rented_card_is_asked_for_no_life(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = ("EUR", "Card A", "", "0.5", "2026-01-05", "a page", "", "n", *LIMITS, "", "")
    done, said = asked(path, answers)
    assert done and parse_purchase(path.read_text()).quote[0].rented
    assert not [line for line in said if "years of life" in line]


@pytest.mark.parametrize("answer", ["", "n", "no", "later"])
def test_a_file_that_is_there_is_kept_unless_the_user_says_yes(tmp_path, answer):
    path = tmp_path / "purchase.toml"
    path.write_text("mine")
    assert not asked(path, [answer])[0]
    assert path.read_text() == "mine"


def test_a_file_that_is_there_is_overwritten_on_yes_or_by_the_option(tmp_path):
    path = tmp_path / "purchase.toml"
    path.write_text("mine")
    assert asked(path, ["y", *WHOLE])[0]
    path.write_text("mine")
    assert asked(path, WHOLE[:-1], without_asking=True)[0]
    assert "Card A" in path.read_text()


def test_answers_that_end_early_write_nothing(tmp_path):
    path = tmp_path / "purchase.toml"
    with pytest.raises(UserError, match=r"the answers ended before purchase\.toml was whole"):
        asked(path, WHOLE[:9])
    assert not path.exists()


def answered(path: Path) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", "invoke", "quote", "--yes", "--to", str(path)]
    answers = "\n".join(WHOLE[:-1]) + "\n"
    return subprocess.run(line, cwd=ROOT, input=answers, capture_output=True, text=True, check=False)


def test_a_full_disk_is_answered_in_a_sentence_with_the_code_of_the_machine():
    done = answered(Path("/dev/full"))
    assert (done.returncode, "No space left on device); free some space" in done.stderr) == (4, True)
    assert "Traceback" not in done.stderr


def test_the_verb_takes_its_answers_from_standard_input(tmp_path):
    path = tmp_path / "mine.toml"
    done = answered(path)
    assert done.returncode == 0, done.stderr
    assert parse_purchase(path.read_text()).budget == 60000


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1800", 1800),
        ("0,25", 0.25),
        ("0.250", 0.25),
        ("12,5", 12.5),
        ("1,800,000", 1_800_000),
        ("1.800.000", 1_800_000),
        ("1,234.50", 1234.5),
        ("1.234,50", 1234.5),
        ("1800.125", 1800.125),
    ],
)
def test_a_number_is_read_as_people_write_one(text, number):
    assert quote.checked(Quote, "price", text).best == number


@pytest.mark.parametrize("text", ["1,800", "1.800", "12.345", "2 1,800 3"])
def test_a_number_with_two_meanings_is_asked_for_again(text):
    with pytest.raises(ValueError, match="has two meanings: write 1"):
        quote.checked(Quote, "price", text)


@given(st.integers(min_value=1, max_value=10**9))
def test_no_price_that_is_written_in_groups_of_three_becomes_a_smaller_one(price):
    for grouped in (f"{price:,}", f"{price:,}".replace(",", ".")):
        try:
            assert quote.checked(Quote, "price", grouped).best == price
        except ValueError as error:
            assert "two meanings" in str(error)


def test_no_date_stands_for_today_and_a_date_that_is_none_is_answered_in_a_sentence(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = list(WHOLE)
    answers[3:4] = ["5.1.2026", ""]
    done, said = asked(path, answers)
    assert done and parse_purchase(path.read_text()).quote[0].date == TODAY
    assert "  '5.1.2026' is no date: write the year, the month and the day, as 2026-01-31" in said


def test_another_card_may_be_named_at_once_or_taken_from_the_list(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = ("EUR", "1", *OFFER, "Card B", *OFFER, "", *RUNNING, *LIMITS, "2", "30", "", "1", "")
    assert asked(path, answers)[0]
    found = parse_purchase(path.read_text())
    assert [offer.card for offer in found.quote] == ["Card A", "Card B"]
    line = found.work[0]
    assert (line.workload, line.model, line.precision, line.batch_size, line.hours_per_year) == (
        *("word_lm", "LSTM", "amp-bf16", 20),
        30,
    )
    assert found.hours_on == "Card A"


def test_an_answer_is_corrected_in_the_review_before_anything_is_written(tmp_path):
    path = tmp_path / "purchase.toml"
    corrected = (*WHOLE[:-1], "3", "1900", "99", "")
    done, said = asked(path, corrected)
    assert done and parse_purchase(path.read_text()).quote[0].cost == (1900, 1900, 1900)
    assert "   3  its price: 1800" in said and "   3  its price: 1900" in said
    assert "  there is no line '99'" in said


def test_a_review_that_ends_in_no_writes_nothing(tmp_path):
    path = tmp_path / "purchase.toml"
    assert not asked(path, (*WHOLE[:-1], "no"))[0]
    assert not path.exists()


def test_the_names_on_record_are_those_that_were_measured_on_one_device_here():
    names = quote.known([stored.record for stored in read_all(ROOT).records])
    assert ("word_lm", "LSTM", "fp32-ieee", 20) in names.work
    assert names.cards and all(size > 0 for *_, size in names.work)
