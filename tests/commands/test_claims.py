from __future__ import annotations

import re

import pytest

from commands import claims, run
from commands.prospects import plan_images
from harness.errors import UserError
from harness.image.images import load_images
from harness.plan import plan_file
from harness.run.choice import choose_trials, narrow_plan
from harness.settings import Settings
from report.claims.answers import JudgingPlan
from tests.helpers import ROOT
from tests.helpers.here import claims_here


def figures_in(lines):
    """The ids in a printed list: each figure's line begins with its own, and what is below is indented."""
    return [line.partition(":")[0] for line in lines[1:-1] if re.match(r"[\w.-]+: ", line)]


def test_the_list_names_every_claim_once(capsys):
    claims.list_claims(ROOT)
    told = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in told) <= 80
    assert sorted(figures_in(told)) == sorted(c.id for c in claims_here().claims)
    assert told[-1].startswith("651 claims")


@pytest.mark.parametrize("asked", ["Perbos 2019", "004-perbos"])
def test_the_list_of_one_study_is_had_by_its_name_and_by_its_id(asked, capsys):
    claims.list_claims(ROOT, asked)
    told = capsys.readouterr().out.splitlines()
    own = [claim.id for claim in claims_here().claims if claim.study == "004-perbos"]
    assert figures_in(told) == own
    assert told[-1].startswith(f"{len(own)} claims; ")


def test_a_study_that_there_is_not_is_refused():
    with pytest.raises(UserError, match="no study 'Nobody 2020'"):
        claims.list_claims(ROOT, "Nobody 2020")


def test_a_card_of_amd_by_its_name_can_judge_claims_of_each_of_the_five_studies(capsys):
    claims.list_answers(ROOT, Settings(), "MI300X")
    named = re.findall(r"\b(00[0-4])-[a-z]", capsys.readouterr().out)
    assert set(named) == {"000", "001", "002", "003", "004"}


def test_a_plan_is_counted_in_every_image_that_its_measures_name():
    asked = plan_file.load_plan(ROOT, "chexnet-cpu")
    images = load_images(ROOT)
    assert plan_images(asked, "cpu", images) == (None, "tensorflow", "mxnet", "chainer")
    assert plan_images(asked, "cuda", images) == (None,)
    assert plan_images(plan_file.load_plan(ROOT, "quick"), "cpu", images) == (None,)


def ways(name: str, image: str | None = None, **claimed: dict[str, float]) -> dict[str, JudgingPlan]:
    """Each claim in a plan with the seconds of the trials that it needs."""
    return {claim: JudgingPlan(name, seconds, image) for claim, seconds in claimed.items()}


def test_trials_that_another_claim_needs_too_cost_nothing_more():
    both = ways("both", one={"a": 900.0}, two={"a": 900.0, "b": 10.0})
    assert list(claims.choose_cheapest(both | ways("alone", three={"a": 905.0}), None)) == [
        "one",
        "two",
        "three",
    ]
    assert list(claims.choose_cheapest(both | ways("both", "mxnet", three={"a": 1.0}), None)) == [
        "three",
        "one",
        "two",
    ]


def test_a_claim_runs_the_trials_that_it_needs_and_no_others(monkeypatch):
    seen = []

    def planned(root, settings, how):
        seen.extend(
            choose_trials(
                narrow_plan(run.prepare_with_pins(root, settings, how), how.keep), keep=how.keep
            ).planned
        )

    monkeypatch.setattr(run, "run_plan", planned)
    asked = Settings(device="cpu", engine="venv")
    claims.run_claims(ROOT, asked, ["001-mlp-fp32-peak-by-arithmetic"], "", run.RunOptions())
    (item,) = seen
    variant = item.trial.asked.variant
    assert (item.trial.asked.workload, variant.precision) == ("tensorcore_mlp", "fp32-ieee")
    assert variant.batch_size == 512


def test_a_budget_takes_the_claims_that_cost_the_least():
    found = ways("plan", one={"a": 100.0}, two={"b": 300.0}, three={"c": 50.0})
    assert list(claims.choose_cheapest(found, 160.0)) == ["three", "one"]
    assert claims.choose_cheapest(found, 10.0) == {}


def test_without_a_claim_the_whole_plan_is_run_and_other_places_than_here_are_refused(monkeypatch):
    ran, how = [], run.RunOptions()
    monkeypatch.setattr(run, "run_plan", lambda root, settings, how: ran.append(how))
    claims.run_claims(ROOT, Settings(), [], "", how)
    assert ran == [how]
    for ids, where in (([], "there"), (["a"], "here")):
        with pytest.raises(UserError, match=f"'--claims {where}' is not known, or --claim was given too"):
            claims.run_claims(ROOT, Settings(), ids, where, how)


def test_a_time_that_nobody_knows_is_called_unknown(capsys):
    unknown = "timm-program-resnet152-nhwc-gain"
    claims.list_answers(ROOT, Settings(), "RTX 4090")
    printed = capsys.readouterr().out.splitlines()
    minutes = dict(zip(figures_in(printed), (line for line in printed if line[0] == " "), strict=True))
    assert "? min" in minutes[unknown] and not all("? min" in line for line in minutes.values())
    claims.show_answer(ROOT, Settings(), unknown, "RTX 4090")
    assert ", unknown, stopped after " in capsys.readouterr().out
