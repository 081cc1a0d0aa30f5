"""What a plan could judge, held against the records of that plan."""

from __future__ import annotations

from typing import Any

import pytest

from harness.plan import plan_file
from harness.plan.plan_file import PlanContext
from harness.record import Claim, Record, TrialSpec
from report.claims.answers import WAYS, answers
from report.claims.judge import judge
from report.claims.judgeable import TargetDevice, judgeable
from report.compare.batch_sweeps import without_sweeps
from report.compare.cells import cells_of
from report.compare.groups import comparison_groups
from report.metrics import CLAIMED
from tests.helpers import ROOT
from tests.helpers import records_builder as build
from tests.helpers.claims_builder import CARDS
from tests.helpers.here import claims_here, results_here
from tests.helpers.trial_tables import trials_of

CLAIMS = claims_here().claims
UNSEEN = "NVIDIA Unseen GPU"
ON_A_CPU = {"20261121-38cb4c": 0, "20261123-bba217": 5}
"""Sessions of this clone, and how many claims their runs judge."""
EPOCHS = {
    ("tensorcore_mlp", "published/1"): 3,
    ("tensorcore_mlp", "warmed/1"): 100,
    ("mnist_cnn", "published/1"): 20,
}


def planned(name: str, device: str, source: str = "real") -> list[TrialSpec]:
    asked = plan_file.load(ROOT, name)
    sources: Any = dict.fromkeys(plan_file.datasets(asked, device), source)  # type: ignore[arg-type]
    weights = dict.fromkeys(plan_file.pretrained_models(asked, device), source == "real")  # type: ignore[arg-type]
    context = PlanContext(device, device, None, sources, weights)  # type: ignore[arg-type]
    return [item.trial for item in plan_file.trials(asked, context, 0)]


def could(trials: list[TrialSpec], device: TargetDevice) -> set[str]:
    return set(judgeable(CLAIMS, trials, device, CARDS))


def compared(records: list[Record]) -> set[str]:
    trials = trials_of(records)
    session = records[0].session
    groups = comparison_groups(without_sweeps(cells_of(trials), session), session, baseline=None)
    own = [entry.cell for group in groups for entry in group.entries if entry.own]
    found = answers(judge(CLAIMS, groups, CARDS), own, CARDS, {}, {})
    answered = (one for one in found if one.state not in WAYS and not one.first_look)
    return {one.claim.id for one in answered if CLAIMED[one.claim.metric].needs_run}


def measured(trial: TrialSpec, place: int) -> Record:
    """A trial of the plan as the builder of records makes it."""
    variant = trial.asked.variant
    workload = trial.asked.workload
    kind: dict[str, Any] = {
        "workload": workload,
        "protocol": trial.asked.protocol,
        "unit": "sample",
        "quality": {"cifar_fastai": "accuracy", "word_lm": "perplexity"}.get(workload),
        "steps_per_epoch": 50,
        "epochs": EPOCHS[workload, trial.asked.protocol],
        "valid_batches": 6,
    }
    whole = variant.limit.steps is None and variant.limit.seconds is None
    on = build.machine(UNSEEN, label="unseen", digits="d")
    made = build.measurement(
        kind, trial, 0.1, card=UNSEEN, complete=whole, seed=place, structure={"parameters": 1}
    )
    used = made.device.model_copy(update={"capability": "9.0"})
    short = (variant.limit.seconds or 75) < 60
    return build.record(
        trial, made.model_copy(update={"device": used}), on=on, verdict="unproven" if short else "valid"
    )


def test_a_plan_judges_on_an_unseen_gpu_what_was_said_that_it_could():
    trials = planned("tensorcore", "cuda")
    found = could(trials, TargetDevice("cuda", UNSEEN, "9.0"))
    assert found == compared([measured(trial, place) for place, trial in enumerate(trials)])
    assert found


@pytest.mark.parametrize(("session", "by_runs"), ON_A_CPU.items())
def test_the_committed_records_of_a_cpu_judge_what_was_said_that_they_could(session, by_runs):
    records = [stored.record for stored in results_here().records if stored.record.session == session]
    found = could([record.trial for record in records], TargetDevice("cpu", "a CPU"))
    assert found == compared(records)
    assert len(found) == by_runs


def test_one_epoch_of_thirty_judges_what_was_published_of_the_first_alone():
    found = could(planned("cpu-claims", "cpu"), TargetDevice("cpu", "a CPU"))
    assert {"004-rtx-2080-ti-resnet34-first-epoch-accuracy"} <= found
    assert not {"004-2080ti-resnet34-fp32-accuracy", "004-2080ti-resnet18-fp32-accuracy"} & found


def test_a_card_without_matrix_units_is_not_asked_what_is_claimed_for_those():
    trials = planned("tensorcore", "cuda")
    with_units, without = (could(trials, TargetDevice("cuda", UNSEEN, number)) for number in ("7.5", "6.1"))
    assert "001-mlp-amp-speed-up" in with_units - without
    assert "001-mlp-amp-memory" in with_units & without


def test_an_absolute_figure_is_asked_for_on_any_card_and_a_ratio_of_two_cards_on_none():
    found = could(planned("mission", "cuda"), TargetDevice("cuda", UNSEEN, "9.0"))
    assert {claim.kind for claim in CLAIMS if claim.id in found} >= {"absolute", "quality", "ratio", "order"}
    assert "004-2080ti-resnet50-fp32-seconds" in found
    on_own = could(planned("mission", "cuda"), TargetDevice("cuda", "NVIDIA GeForce RTX 2080 Ti", "7.5"))
    assert "004-resnet18-fp16-1080ti-over-2080ti" not in on_own


def test_a_claim_names_the_trials_that_its_verdict_would_rest_on():
    trials = planned("tensorcore", "cuda")
    found = judgeable(CLAIMS, trials, TargetDevice("cuda", UNSEEN, "9.0"), CARDS)
    asked = [trial.asked for trial in trials if trial.id in found["001-mlp-amp-speed-up"]]
    assert len(asked) == 20
    assert {one.variant.precision for one in asked} == {"fp32-ieee", "amp-fp16"}
    assert {(one.workload, one.protocol) for one in asked} == {("tensorcore_mlp", "published/1")}


def test_a_ratio_of_batches_takes_the_whole_search():
    trials = planned("published", "cuda")
    found = judgeable(CLAIMS, trials, TargetDevice("cuda", UNSEEN, "9.0"), CARDS)
    asked = [trial.asked.variant for trial in trials if trial.id in found["004-resnet50-batch-ratio"]]
    assert {one.model for one in asked} == {"resnet50"}
    assert len({one.batch_size for one in asked}) == 10


def test_a_count_needs_no_run():
    by_id = {claim.id: claim for claim in CLAIMS}
    assert not CLAIMED[by_id["001-mlp-parameters"].metric].needs_run
    assert not CLAIMED[by_id["004-train-images"].metric].needs_run
    assert CLAIMED[by_id["001-mlp-amp-memory"].metric].needs_run


def test_no_claim_is_judgeable_that_has_no_figure_and_is_no_order():
    silent: list[Claim] = [one for one in CLAIMS if one.value is None and one.kind != "order"]
    found = judgeable(silent, planned("mission", "cuda"), TargetDevice("cuda", UNSEEN, "9.0"), CARDS)
    assert silent
    assert not found
