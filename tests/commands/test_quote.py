from __future__ import annotations

import io
import subprocess
from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from commands import quote
from harness.errors import UserError
from report.buying.purchase import Offer, parse_purchase
from tests.helpers import ROOT, invoked
from tests.helpers.here import results_here

NAMES = quote.Known(
    ("Card A", "Card B"),
    (("cifar_fastai", "resnet50", "fp32-ieee", 48), ("word_lm", "LSTM", "amp-bf16", 20)),
)
RUNNING = ("3 4 5", "0.5", "0.25", "", "", "", "")
LIMITS = ("60000", "", "8", "", "")
OFFER = ("1800", "", "2026-01-05", "an offer", "300")
BOUGHT = ("EUR", "", "Card A", *OFFER, "", *RUNNING, *LIMITS)
WORK = ("word_lm", "", "fp32-ieee", "20", "", "Card A")
WHOLE = (*BOUGHT, *WORK, "y")


class FakeConsole(Console):
    """A console that has its answers, and keeps what it said."""

    def __init__(self, answers: Sequence[str]) -> None:
        super().__init__(file=io.StringIO(), width=200)
        self._left: Iterator[str] = iter(answers)

    def input(self, prompt: Any = "", **options: Any) -> str:
        self.print(prompt)
        try:
            return next(self._left)
        except StopIteration:
            raise EOFError from None

    @property
    def said(self) -> list[str]:
        return self.file.getvalue().splitlines()  # type: ignore[attr-defined]


def asked(path: Path, answers: Sequence[str], *, without_asking: bool = False) -> tuple[bool, list[str]]:
    console = FakeConsole(answers)
    done = quote.run(path, console, NAMES, without_asking=without_asking)
    assert next(console._left, None) is None, "not all answers were asked for"
    return done, console.said


def test_answers_become_a_file_that_the_report_reads(tmp_path):
    path = tmp_path / "purchase.toml"
    assert asked(path, WHOLE)[0]
    found = parse_purchase(path.read_text())
    assert (found.offer[0].cost, found.use) == ((1800, 1800, 1800), "shared")
    assert found.life_years and found.life_years.values == (3, 4, 5)
    assert found.electricity_price and found.electricity_price.best == 0.25
    work = found.work[0]
    assert (work.workload, work.model, work.hours_per_year, found.hours_on) == ("word_lm", None, 20, "Card A")


def test_a_value_that_cannot_be_meant_is_asked_for_again_with_the_reason(tmp_path):
    answers = list(WHOLE)
    assert answers[10] == "0.5"
    answers[10:10] = ["1.7", "half", ""]
    done, said = asked(tmp_path / "purchase.toml", answers)
    assert done
    assert any("1.7 cannot be meant: it has to be at least 0.001 and at most 1" in line for line in said)
    assert sum(line.startswith("utilisation") for line in said) == 5  # four questions, and the file


def test_years_of_life_may_be_left_out(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = list(WHOLE)
    assert answers[9] == "3 4 5"
    answers[9] = ""
    assert asked(path, answers)[0]
    assert parse_purchase(path.read_text()).life_years is None


def test_a_rented_card_is_asked_for_no_life(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = ("EUR", "", "Card A", "", "0.5", "", "2026-01-05", "a page", "", "", *LIMITS, "", "y")
    done, said = asked(path, answers)
    assert done and parse_purchase(path.read_text()).offer[0].rented
    assert not [line for line in said if "years of life" in line]


@pytest.mark.parametrize("answer", ["", "n"])
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


def test_the_file_is_shown_before_it_is_written_and_a_no_leaves_it_unwritten(tmp_path):
    path = tmp_path / "purchase.toml"
    done, said = asked(path, (*WHOLE[:-1], "n"))
    assert not done and not path.exists()
    assert "price = 1800" in said


def test_answers_that_end_early_write_nothing(tmp_path):
    path = tmp_path / "purchase.toml"
    with pytest.raises(UserError, match=r"the answers ended before purchase\.toml was whole"):
        asked(path, WHOLE[:9])
    assert not path.exists()


def answered(path: Path) -> subprocess.CompletedProcess[str]:
    return invoked(ROOT, "quote", "--yes", "--to", str(path), given="\n".join(WHOLE[:-1]) + "\n")


def test_a_full_disk_is_answered_in_a_sentence_with_the_code_of_the_machine():
    done = answered(Path("/dev/full"))
    assert (done.returncode, "No space left on device); look at" in done.stderr) == (4, True)
    assert "Traceback" not in done.stderr


def test_the_verb_takes_its_answers_from_standard_input(tmp_path):
    path = tmp_path / "mine.toml"
    done = answered(path)
    assert done.returncode == 0, done.stderr
    assert parse_purchase(path.read_text()).budget == 60000


@pytest.mark.parametrize("text", ["1,800", "1.800,00", "dear", "1e-300", "-3", "2026"])
def test_what_is_no_price_or_date_is_refused_with_a_reason(text):
    with pytest.raises(ValueError, match=r"\w"):
        quote.answered(Offer, "date" if text == "2026" else "price", text)


def test_no_date_stands_for_today(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = list(WHOLE)
    answers[5:6] = ["5.1.2026", ""]
    assert asked(path, answers)[0]
    assert parse_purchase(path.read_text()).offer[0].date == date.today()


def test_another_card_and_work_are_taken_from_the_list_or_by_name(tmp_path):
    path = tmp_path / "purchase.toml"
    work = ("2", "", "0.3", "a program to come", "", "", "", "0.2", "", "1")
    assert asked(path, ("EUR", "alone", "1", *OFFER, "Card B", *OFFER, "", *RUNNING, *LIMITS, *work, "y"))[0]
    found = parse_purchase(path.read_text())
    assert ([offer.card for offer in found.offer], found.use) == (["Card A", "Card B"], "alone")
    line, other = found.work
    assert (line.workload, line.model, line.precision, line.batch_size) == ("word_lm", "LSTM", "amp-bf16", 20)
    assert (line.share, other.workload, other.share) == (0.3, "a program to come", 0.2)
    assert found.hours_on == "1"


def test_the_names_on_record_are_those_that_were_measured_on_one_device_here():
    names = quote.known([stored.record for stored in results_here().records])
    assert ("word_lm", "LSTM", "fp32-ieee", 20) in names.work
    assert names.cards and all(size > 0 for *_, size in names.work)
