"""The answer of a card's check on the terminal, and its exit code under --strict."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from commands.measure import refuse_faulty_card
from commands.report import answer
from harness.errors import CardError
from report.analysis import Question, analyse, evidence_in
from tests.helpers import records_builder as build
from tests.helpers.records_card import checked_card


def test_a_faulty_card_leaves_exit_code_5_and_the_answer_is_the_terminals(tmp_path):
    sound, weak = checked_card("c", machine="a"), checked_card("d", machine="a", speed=0.8)
    build.write(tmp_path, [*sound, *weak, *checked_card("e", machine="a")])
    refuse_faulty_card(tmp_path, sound[0].session)
    with pytest.raises(CardError, match=r"is slow in 9 of 9: .* reaches 0\.80 of what it should") as refused:
        refuse_faulty_card(tmp_path, weak[0].session)
    assert refused.value.exit_code == 5
    question = Question(datetime(2026, 2, 1, tzinfo=UTC), weak[0].session)
    said = answer(analyse(evidence_in(tmp_path, purchase=False), question))
    assert said.startswith("This Constructed Card A is slow in 9 of 9")
