"""A bundle's answers to a challenge, made again by an interpreter that stands for PyTorch's."""

from __future__ import annotations

import sys

import pytest

from harness.bundle import challenge
from harness.errors import UserError
from harness.record.measurement import Proof
from tests.helpers import records_builder as build
from tests.helpers.bundled import one_card

NONCE = "7f3a-order-1"
PROOF = "workloads/parts/proof.py"
ANSWERS = """import json, os
from pathlib import Path
asked = json.loads((Path(os.environ["GPUDYNO_IN"]) / "questions.json").read_text())
lines = [json.dumps({"losses": [1.0, 2.0, 3.0], "gradient_norms": [4.0, 5.0, 6.0]}) for _ in asked]
(Path(os.environ["GPUDYNO_OUT"]) / "answers.jsonl").write_text("\\n".join(lines) + "\\n")
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "workloads" / "parts").mkdir(parents=True)
    (tmp_path / PROOF).write_text(ANSWERS)
    return tmp_path


def answering(record, **changed):
    given = {"nonce": NONCE, "unit": record.measurement.device.unit or record.machine.id}
    given |= {"losses": (1.0, 2.0, 3.0), "gradient_norms": (4.0, 5.0, 6.0)}
    return build.changed(record, measurement__proof=Proof(**{**given, **changed}))


def checked(records, root):
    return challenge.answered(records, NONCE, sys.executable, root)


def test_answers_that_come_out_alike_are_counted_and_what_has_none_is_not_proven(root):
    first, second, third = one_card(repeats=3)[:3]
    found = checked([answering(first), answering(second, losses=(1.0, 2.0, 3.0 + 1e-11)), third], root)
    assert (found.alike, found.differing, found.left) == (2, (), 0)
    assert dict(found.unproven) == {third.trial.asked.workload: 1}


@pytest.mark.parametrize(
    ("changed", "clause"),
    [
        ({"nonce": "7f3a-order-2"}, "answers to the challenge '7f3a-order-2'"),
        ({"unit": "f" * 12}, "that of another unit"),
        ({"losses": (1.0, 2.0, 3.0 + 1e-6)}, "the loss of step 3 is 3.000001, and 3 here"),
        ({"gradient_norms": (5.0, 4.0, 6.0)}, "the gradient norm of step 1 is 5, and 4 here"),
        ({"losses": (1.0,)}, "has 1 steps where the proof has 3"),
    ],
)
def test_an_answer_to_something_else_is_named(changed, clause, root):
    (problem,) = checked([answering(one_card(repeats=1)[0], **changed)], root).differing
    assert clause in problem


def test_an_interpreter_without_what_answers_need_is_said_in_its_own_last_line(root):
    (root / PROOF).write_text("raise SystemExit('no torch here')")
    with pytest.raises(UserError, match="no torch here"):
        checked([answering(one_card(repeats=1)[0])], root)


@pytest.mark.parametrize("nonce", ["", "abc", "a b c d", "x" * 65, "drop;table"])
def test_what_is_no_nonce_is_refused(nonce):
    with pytest.raises(UserError, match="is no challenge"):
        challenge.refuse_malformed(nonce)
    challenge.refuse_malformed(challenge.new())
