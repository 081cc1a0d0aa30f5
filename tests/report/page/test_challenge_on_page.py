"""How many trials answered a challenge stands on the page, with what that does not show."""

from __future__ import annotations

from harness.record.measurement import Proof
from report.analysis import Question, analyse, evidence_in
from report.page.parts import ran
from report.page.values import systems_of
from tests.helpers import records_builder as build
from tests.helpers.cases import MADE


def test_answers_are_counted_by_their_challenge(tmp_path):
    records = build.two_cards()
    proof = Proof(nonce="7f3a-1", unit="0" * 12, losses=(1.0,) * 3, gradient_norms=(2.0,) * 3)
    for place in (0, 1):
        records[place] = build.changed(records[place], measurement__proof=proof)
    build.write(tmp_path, records)
    found = analyse(evidence_in(tmp_path, purchase=False), Question(MADE))
    view = ran.view(found, systems_of(found))
    assert view is not None and view.challenges == (("7f3a-1", 2),)
