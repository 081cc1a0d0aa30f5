"""Which question a page answers, on the committed records. Constructed inputs are none of a measurement."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from harness.plan.plan_file import plan_questions
from harness.record import Question
from report.analysis import AnalysisRequest, analyse
from tests.helpers import ROOT
from tests.helpers.here import evidence_here

NOW = datetime(2026, 12, 1, tzinfo=UTC)
QUICK, OTHER_QUICK = "20261126-cb0794", "20261121-38cb4c"
MXNET, PYTORCH = "20261123-cccefa", "20261123-f41240"


def asked(*named: str, plans: bool = True, question: Question | None = None) -> tuple[str, str | None]:
    request = AnalysisRequest(
        NOW,
        named[0],
        question=question,
        questions=plan_questions(ROOT) if plans else {},
        named=named if len(named) > 1 else (),
    )
    found = analyse(replace(evidence_here(), purchase=None), request).question
    return found.kind, found.by


@pytest.mark.parametrize(
    ("session", "by_its_plan", "by_what_varied"),
    [
        (QUICK, ("faster", "precision"), ("faster", "precision")),
        ("20261127-aee4d4", ("sound", None), ("sound", None)),
        ("20261126-6f810e", ("reach", None), ("faster", "batch")),
        ("20261125-08b1ee", ("faster", "gpus"), ("faster", "precision")),
        ("20261126-7ac9ad", ("holds", None), ("faster", None)),
        ("20261123-7d4985", ("faster", "framework"), ("faster", "framework")),
        ("20261123-f8ab7f", ("faster", "loader"), ("faster", "loader")),
        ("20261121-cb7a72", ("faster", "side"), ("faster", "side")),
        ("20261126-86cd6f", ("limits", None), ("limits", None)),
        ("20261123-238ae2", ("faster", None), ("faster", None)),
        ("20261121-8a1add", ("faster", "machine"), ("faster", None)),
    ],
)
def test_a_session_asks_what_its_plan_asks_else_by_what_it_varied(session, by_its_plan, by_what_varied):
    assert (asked(session), asked(session, plans=False)) == (by_its_plan, by_what_varied)


@pytest.mark.parametrize(
    ("named", "by"),
    [
        ((QUICK, "20261127-63ddd7"), "machine"),
        (("20261127-63ddd7", QUICK), "machine"),
        ((OTHER_QUICK, QUICK), "machine"),
        ((MXNET, PYTORCH), "framework"),
        (("20261121-cb7a72", "20261121-e09923"), "machine"),
    ],
)
def test_sessions_that_are_named_together_ask_by_what_tells_them_apart(named, by):
    assert asked(*named) == ("faster", by)


@pytest.mark.parametrize(
    ("named", "ratios"),
    [
        ((QUICK, "20261127-63ddd7"), 2),
        ((MXNET, PYTORCH), 1),
        (("20261121-cb7a72", "20261121-e09923"), 1),
        (("20261121-38cb4c", "20261121-8a1add"), 2),
    ],
)
def test_each_session_that_is_named_has_its_side_also_on_one_machine(named, ratios):
    request = AnalysisRequest(NOW, named[0], questions=plan_questions(ROOT), named=named)
    found = analyse(replace(evidence_here(), purchase=None), request).comparison
    assert found is not None and len(found.ratios) == ratios
    assert {cell.session for side in found.sides for cell in side.cells} == set(named)


def test_the_line_asks_in_place_of_all_else():
    assert asked(QUICK, OTHER_QUICK, question=Question(kind="sound")) == ("sound", None)
