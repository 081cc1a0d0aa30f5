"""The short training that a challenge decides: what changes its numbers, and what does not."""

from __future__ import annotations

import json
import os
import subprocess

import pytest

from tests.helpers.workload_runner import PYTHON, WORKLOADS

pytestmark = pytest.mark.torch

RESNET = {"workload": "convnet", "variant": {"model": "resnet18", "options": {"classes": 10}}}
TINY = {"workload": "llm_step", "variant": {"model": "tiny", "options": {}}}
LSTM = {"workload": "word_lm", "variant": {"model": "LSTM", "options": {"nhid": 16, "emsize": 16}}}
FASTAI = {"workload": "cifar_fastai", "variant": {"model": "resnet18", "options": {}}}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("proofs")

    def answer(questions, threads="2"):
        (folder / "questions.json").write_text(json.dumps(questions))
        environ = os.environ | {"GPUDYNO_IN": str(folder), "GPUDYNO_OUT": str(folder)}
        environ |= {"OMP_NUM_THREADS": threads}
        subprocess.run([PYTHON, "-m", "parts.proof"], cwd=WORKLOADS, env=environ, check=True)
        return [json.loads(line) for line in (folder / "answers.jsonl").read_text().splitlines()]

    return answer


def question(asked, *, trial="t1", nonce="7f3a-1", unit="0" * 12):
    return {"asked": asked, "trial": trial, "challenge": {"nonce": nonce, "unit": unit}}


def numbers(answer):
    return [*answer["losses"], *answer["gradient_norms"]]


def test_an_answer_is_three_steps_that_are_alike_over_threads(answers):
    asked = [question(one) for one in (RESNET, TINY, LSTM, FASTAI)]
    for one, other in zip(answers(asked, "1"), answers(asked, "2"), strict=True):
        assert len(one["losses"]) == len(one["gradient_norms"]) == 3
        assert numbers(one) == pytest.approx(numbers(other), rel=1e-10)
        assert len(set(numbers(one))) == 6


def test_another_nonce_trial_unit_or_model_gives_other_numbers(answers):
    whole, *others = answers(
        [
            question(TINY),
            question(TINY, nonce="7f3a-2"),
            question(TINY, trial="t2"),
            question(TINY, unit="1" * 12),
            question({"workload": "llm_step", "variant": {"model": "tiny", "options": {"lora_rank": 2}}}),
        ]
    )
    for other in others:
        assert all(abs(a / b - 1) > 1e-6 for a, b in zip(whole["losses"], other["losses"], strict=True))


def test_what_cannot_be_answered_says_why_and_stops_no_other(answers):
    unknown = {"workload": "convnet", "variant": {"model": "resnet19", "options": {}}}
    first, second = answers([question(unknown), question(TINY)])
    assert "resnet19" in first["why"]
    assert second["nonce"] == "7f3a-1"
