"""What the plans that claims name can do for them on each class of cards."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from functools import cache

import pytest

from commands.judging_plan import TargetDevice
from commands.prospects import device_prospects, find_prospects, plan_on_device, target_device
from harness.plan import estimate, plan_file
from harness.record import Claim, Cpu, TrialSpec
from harness.run.setup import prepare_for_cards
from harness.settings import Settings
from report.analysis import AnalysisRequest, analyse
from report.claims.answers import LADDER, JudgingPlan, Prospects
from report.compare.batch_sweeps import FEWEST_BATCHES
from report.metrics import CLAIMED
from report.trials.key import grouped_by, key_of_asked
from tests.helpers import ROOT
from tests.helpers.claims_builder import CARDS
from tests.helpers.here import analysis_here, claims_here, evidence_here

CLAIMS = {claim.id: claim for claim in claims_here().claims}
ANSWERED = {
    "RTX 2080 Ti": 356,
    "GTX 1080 Ti": 321,
    "Tesla T4": 356,
    "16x H200 SXM": 472,
    "16x MI300X": 360,
    "": 47,
}
"""How many claims the plans that they name would answer on a class of cards, and on a processor."""
CPU = TargetDevice("cpu", "a CPU")
SETTLED_SECONDS = 60.0
"""A window of less is taken to be unproven."""


def device_like(card: str) -> TargetDevice:
    if not card:
        return CPU
    setup = prepare_for_cards(ROOT, Settings(engine="venv"), card)
    return target_device(setup.machine, setup.selection)


@cache
def found_on(card: str) -> Prospects:
    return device_prospects(device_like(card), ROOT, CLAIMS.values(), Cpu(), CARDS, estimate.Speeds())


@cache
def planned_by(name: str, card: str, image: str | None) -> dict[str, TrialSpec]:
    planned = plan_on_device(plan_file.load_plan(ROOT, name), device_like(card), image, Cpu())
    return {item.trial.id: item.trial for item in planned}


def enough(claim: Claim) -> int:
    """Two runs show a spread; bytes have none, seeds bring theirs, an absolute figure gets a first look."""
    exact = CLAIMED[claim.metric].kind == "memory" and (claim.kind == "structure" or claim.over is not None)
    return 1 if exact or claim.seeds is not None or claim.kind == "absolute" else 2


def shortcomings(claim: Claim, way: JudgingPlan, card: str) -> list[str]:
    trials = [planned_by(way.plan, card, way.image)[trial] for trial in way.seconds_by_trial]
    asked = grouped_by(trials, lambda trial: (key_of_asked(trial.asked), trial.asked.variant.limit))
    if claim.metric == "batch_ratio":
        return [] if len(asked) >= 2 * FEWEST_BATCHES else ["batches"]
    metric = CLAIMED[claim.metric]
    limits = [limit for _, limit in asked]
    whole = [limit.steps is None and limit.seconds is None for limit in limits]
    told = {
        "sides": len(asked) < 1 + (claim.over is not None),
        "repeats": min(map(len, asked.values())) < enough(claim),
        "learning": (metric.kind == "quality" or claim.target is not None) and not all(whole),
        "one length": not metric.steady and len(set(whole)) > 1,
        "window": metric.kind == "duration"
        and claim.kind != "absolute"
        and any(
            limit.steps is not None or (limit.seconds is not None and limit.seconds < SETTLED_SECONDS)
            for limit in limits
        ),
    }
    return [name for name, lacks in told.items() if lacks]


@pytest.mark.parametrize(("card", "answered"), ANSWERED.items())
def test_the_plans_of_claims_hold_every_side_often_enough_on_each_class_of_cards(card, answered):
    ways = found_on(card).ways
    lacking = {name: told for name, way in ways.items() if (told := shortcomings(CLAIMS[name], way, card))}
    assert not lacking
    assert len(ways) == answered


def test_a_plan_that_a_claim_or_a_row_of_its_table_names_holds_it_where_no_card_or_image_is_the_obstacle():
    found = [found_on(card) for card in ANSWERED]
    named = [claim for claim in CLAIMS.values() if claim.plans and claim.can_be_judged]
    for of_table in grouped_by(named, lambda claim: (claim.study, claim.metric, *claim.plans)).values():
        if not any(claim.id in one.ways for claim in of_table for one in found):
            kinds = {one.barred[claim.id].kind for claim in of_table for one in found}
            assert "plan" not in kinds, of_table[0].id


def test_what_cannot_be_measured_has_one_reason_each():
    assert Counter(one.kind for one in found_on("16x H200 SXM").barred.values()) == {
        "card": 43,
        "cards": 24,
        "framework": 40,
        "plan": 41,
        "figure": 13,
        "metric": 10,
        "trend": 8,
    }


def test_a_figure_of_a_processor_that_no_plan_has_needs_a_plan_and_no_gpu():
    claim = next(one for one in CLAIMS.values() if one.workload == "convnet" and one.kind == "absolute")
    changes = {"plans": {}, "of": claim.of.model_copy(update={"card": "AMD EPYC", "model": "mpl"})}
    asked = [claim.model_copy(update=changes), claim.model_copy(update={"plans": {}})]
    kinds = [
        device_prospects(CPU, ROOT, [one], Cpu(), CARDS, estimate.Speeds()).barred[one.id].kind
        for one in asked
    ]
    assert kinds == ["plan", "gpu"]


def test_an_unmet_claim_has_a_plan_for_the_records_own_device():
    found = analysis_here("20261121-38cb4c")
    ahead = find_prospects(ROOT, found)
    met = {result.claim.id for result in found.verdicts}
    assert ahead.ways and not met & ahead.ways.keys()
    assert {way.plan for way in ahead.ways.values()} >= {"cpu-claims"}
    assert all(way.seconds > 0 for way in ahead.ways.values())
    assert not ahead.ways.keys() & ahead.barred.keys()


@pytest.mark.parametrize(
    ("session", "times"),
    [("20261126-cb0794", [3.53, 4.44, 7.45, 8.94]), ("20261127-63ddd7", [3.89, 4.89, 7.98, 9.57])],
)
def test_the_committed_gpus_answer_four_figures_of_resnet18_beside_two_cards(session, times):
    found = analyse(
        evidence_here(), AnalysisRequest(datetime(2026, 12, 1, tzinfo=UTC), session=session)
    ).answers
    assert all(one.state in LADDER for one in found if one.claim.kind == "absolute")
    beside = [one for one in found if one.state == "on another card"]
    assert sorted(round(one.times or 0, 2) for one in beside) == times
    assert {one.claim.of.card for one in beside} == {"RTX 2080 Ti", "GTX 1080 Ti"}
    assert all(one.differs == ("card", "software", "loader") and one.without_range for one in beside)
