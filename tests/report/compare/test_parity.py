"""Whether mixed precision works. Every loss, accuracy and record here is constructed."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from typing import Any

import pytest

from harness.record import Limit, LossScale, finding
from harness.summary.checks import loss_scale_findings
from report.compare import cells as stats
from report.compare import precisions as parity
from report.trials.trial import TrialResult
from tests.helpers import records_builder as build
from tests.helpers.records_watched import CARD, machine
from tests.helpers.trial_tables import trials_of


def falling(scatter: float = 0.0, *, seed: int = 0, steps: int = 50) -> list[tuple[int, float]]:
    noise = random.Random(seed)
    return [(step, 5 * 0.98**step * (1 + noise.gauss(0, scatter))) for step in range(1, steps + 1)]


@pytest.mark.parametrize(
    ("mixed", "word"),
    [
        (falling(), "follows"),
        (falling(0.04), "follows"),
        ([(step, 1.05 * loss) for step, loss in falling()], "departs"),
        ([*falling()[:20], (21, math.nan), *falling()[21:]], "departs"),
        (falling()[::10], "unknown"),
        ([(step + 50, loss) for step, loss in falling()], "unknown"),
    ],
)
def test_the_first_losses_follow_those_of_fp32_or_depart(mixed, word):
    assert parity.early_gate(falling(), mixed) == word


def test_a_single_bad_step_among_the_first_is_no_departure_and_later_steps_do_not_count():
    odd = dict(falling(steps=200))
    odd[7] = 50.0
    odd |= {step: 100.0 for step in range(51, 201)}
    assert parity.early_gate(falling(steps=200), list(odd.items())) == "follows"


@pytest.mark.parametrize(
    ("norms", "word"),
    [
        ([(step, 1.04 * norm) for step, norm in falling()], "follows"),
        ([(step, 512 * norm) for step, norm in falling()], "departs"),
        ([(step, 0.9 * norm) for step, norm in falling()], "departs"),
        ([*[(at, math.inf) for at in range(1, 8)], *falling()[7:]], "follows"),
        ([(step, 512 * norm) for step, norm in falling(steps=9)], "follows"),
        ([(step + 50, 512 * norm) for step, norm in falling()], "follows"),
    ],
)
def test_gradients_that_differ_are_a_departure_though_the_losses_follow(norms, word):
    assert parity.early_gate(falling(), falling(), falling(), norms) == word


def cells(
    *arms: tuple[str, list[float]], kind: dict[str, Any] = build.CIFAR, **trial: Any
) -> tuple[stats.Cell, ...]:
    """One cell for each precision, its accuracies in the order of the seeds."""
    records = []
    for precision, ends in arms:
        for repeat, quality in enumerate(ends, start=1):
            asked = build.trial(kind, precision, repeat, **trial)
            epochs = tuple(
                build.Epoch(index=at, steps=489, train_seconds=70.0, valid_seconds=7.0, quality=quality)
                for at in range(1, 31)
            )
            complete = trial.get("limit") is None
            found = build.measurement(
                kind, asked, 0.15, card=CARD, complete=complete, seed=repeat, epochs=epochs
            )
            records.append(build.record(asked, found, on=machine(), order=len(records)))
    return stats.cells_of(trials_of(records))


FP32 = [0.820, 0.824, 0.818, 0.822, 0.821]


def with_measured(trial: TrialResult, **changes: Any) -> TrialResult:
    measured = trial.record.measurement.model_copy(update=changes)
    return replace(trial, record=trial.record.model_copy(update={"measurement": measured}))


def judged(*arms: tuple[str, list[float]], **more: Any) -> parity.Parity:
    (found,) = parity.parities(cells(*arms, **more))
    return found


def word(*arms: tuple[str, list[float]], **more: Any) -> str | None:
    found = judged(*arms, **more)
    return found.verdict and found.verdict.state


def test_five_seeds_beside_one_that_ended_in_nan_are_no_parity():
    fp32, mixed = cells(("fp32-ieee", FP32), ("amp-fp16", [*FP32, 0.82]))
    nan = [with_measured(trial, losses=((9, math.nan),)) for trial in mixed.trials[5:]]
    nan = [trial.with_findings(finding("not-finite", loss=math.nan, step=9)) for trial in nan]
    (found,) = parity.parities((fp32, replace(mixed, trials=(*mixed.trials[:5], *nan))))
    assert (found.verdict, found.unjudged) == (None, "lost runs")


@pytest.mark.parametrize(
    ("mixed", "told"),
    [
        ([0.821, 0.823, 0.819, 0.822, 0.821], "holds"),
        ([0.790, 0.792, 0.788, 0.791, 0.789], "fails"),
        ([0.830, 0.800, 0.845, 0.790, 0.835], "open"),
    ],
)
def test_the_end_is_judged_over_five_seeds(mixed, told):
    assert word(("fp32-ieee", FP32), ("amp-fp16", mixed)) == told


def test_a_perplexity_is_judged_as_the_loss_that_it_comes_from():
    fp32, mixed = [110.0, 110.4, 109.8, 110.2, 110.1], [110.3, 110.1, 110.0, 110.4, 109.9]
    kind = build.LM
    assert word(("fp32-ieee", fp32), ("amp-bf16", mixed), kind=kind) == "holds"
    worse = [1.05 * value for value in mixed]
    assert word(("fp32-ieee", fp32), ("amp-bf16", worse), kind=kind) == "fails"


@pytest.mark.parametrize(
    ("arms", "more", "unjudged"),
    [
        ((("amp-fp16", FP32),), {}, "no reference"),
        ((("fp32-ieee", FP32[:4]), ("amp-fp16", FP32)), {}, "few seeds"),
        ((("fp32-ieee", FP32), ("amp-fp16", FP32)), {"limit": Limit(steps=60)}, "cut short"),
        ((("fp32-ieee", FP32), ("amp-fp16", FP32)), {"data": "generated"}, "generated data"),
        ((("fp32-ieee", FP32), ("amp-fp16", FP32)), {}, None),
    ],
)
def test_a_speed_without_a_judged_end_says_why(arms, more, unjudged):
    assert judged(*arms, **more).unjudged == unjudged


def test_the_gate_of_two_trials_reads_the_gradient_norms_of_their_records():
    both = cells(("fp32-ieee", FP32[:1]), ("amp-fp16", FP32[:1]))

    def with_norms(trial: TrialResult) -> TrialResult:
        factor = 1.0 if trial.key.precision == "fp32-ieee" else 2.0
        norms = tuple((step, factor * value) for step, value in falling())
        return with_measured(trial, losses=tuple(falling()), gradient_norms=norms)

    ((_, gate),) = parity.early_gates([with_norms(trial) for cell in both for trial in cell.trials])
    assert gate == "departs"


def test_a_gate_needs_a_twin_of_the_same_session_seed_and_work():
    both = cells(("fp32-ieee", FP32[:2]), ("amp-fp16", FP32[:3]))
    gates = parity.early_gates([trial for cell in both for trial in cell.trials])
    assert [(trial.key.precision, trial.record.trial.repeat) for trial, _ in gates] == [
        ("amp-fp16", 1),
        ("amp-fp16", 2),
    ]


def test_a_gate_takes_no_twin_of_the_session_s_other_stack():
    both = cells(("fp32-ieee", FP32[:2]), ("amp-fp16", FP32[:2]))
    trials = [trial for cell in both for trial in cell.trials]
    moved = [
        with_measured(trial, versions={"torch": "2.99.0"}) if trial.key.precision == "fp32-ieee" else trial
        for trial in trials
    ]
    assert len(parity.early_gates(trials)) == 2 and parity.early_gates(moved) == ()


def scale(last: float, skipped: int, first: float = 65536.0) -> LossScale:
    return LossScale(kind="dynamic", first=first, last=last, skipped_steps=skipped)


@pytest.mark.parametrize(
    ("found", "steps", "severity", "data"),
    [
        (scale(512.0, 7), 4000, None, {}),
        (scale(2.0**10, 22, first=2.0**32), 400, None, {}),
        (scale(512.0, 9), 4000, None, {}),
        (scale(65536.0, 57), 4000, "warn", {"skipped_steps": 57, "steps": 4000}),
        (scale(0.5, 17), 400, "invalid", {"last": 0.5}),
        (scale(math.inf, 0), 400, "invalid", {"last": "inf"}),
    ],
)
def test_a_loss_scale_is_healthy_skips_too_often_or_failed(found, steps, severity, data):
    wrong = list(loss_scale_findings(found, steps))
    assert [(one.severity, one.data) for one in wrong] == ([(severity, data)] if severity else [])
