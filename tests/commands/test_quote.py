from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from commands import quote
from harness.errors import UserError
from report.cost.purchase import parse_purchase
from tests.helpers import ROOT

RUNNING = ("3 4 5", "0.5", "0,25", "", "", "", "")
LIMITS = ("60000", "", "8", "", "")
BOUGHT = ("EUR", "Card A", "1800", "2026-01-05", "an offer", "300", "n", *RUNNING, *LIMITS)
WHOLE = (*BOUGHT, "word_lm", "lstm", "fp32-ieee", "", "20", "", "Card A")


def asked(path: Path, answers: Sequence[str], *, overwrite: bool = False) -> tuple[bool, list[str]]:
    left: Iterator[str] = iter(answers)
    said: list[str] = []

    def ask(question: str) -> str:
        said.append(question)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    done = quote.run(path, overwrite=overwrite, ask=ask, say=said.append)
    assert not list(left), "not all answers were asked for"
    return done, said


def test_answers_become_a_file_that_the_report_reads(tmp_path):
    path = tmp_path / "purchase.toml"
    assert asked(path, WHOLE)[0]
    found = parse_purchase(path.read_text())
    assert found.quote[0].cost == (1800, 1800, 1800)
    assert found.life_years and found.life_years.values == (3, 4, 5)
    assert found.electricity_price and found.electricity_price.best == 0.25
    assert (found.work[0].workload, found.work[0].hours, found.hours_on) == ("word_lm", 20, "Card A")


def test_a_value_that_cannot_be_meant_is_asked_for_again_with_the_reason(tmp_path):
    answers = list(WHOLE)
    answers[8:8] = ["1.7", "half"]
    done, said = asked(tmp_path / "purchase.toml", answers)
    assert done
    assert "  1.7 cannot be meant: it has to be above 0 and at most 1" in said
    assert sum(line.startswith("utilisation") for line in said) == 3


def test_a_rented_card_is_asked_for_no_life(tmp_path):
    path = tmp_path / "purchase.toml"
    answers = ("EUR", "Card A", "", "0.5", "2026-01-05", "a page", "", "n", *LIMITS, "")
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
    assert asked(path, WHOLE, overwrite=True)[0]
    assert "Card A" in path.read_text()


def test_answers_that_end_early_write_nothing(tmp_path):
    path = tmp_path / "purchase.toml"
    with pytest.raises(UserError, match=r"the answers ended before purchase\.toml was whole"):
        asked(path, WHOLE[:9])
    assert not path.exists()


def test_the_verb_takes_its_answers_from_standard_input(tmp_path):
    path = tmp_path / "mine.toml"
    line = [sys.executable, "-m", "invoke", "quote", "--to", str(path)]
    done = subprocess.run(
        line, cwd=ROOT, input="\n".join(WHOLE) + "\n", capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert parse_purchase(path.read_text()).budget == 60000
