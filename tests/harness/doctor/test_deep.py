"""How the records of plan `deep` are read: each path works, is broken, or is not here."""

from __future__ import annotations

from typing import Any

import pytest

from harness.doctor.deep import REMEDIES, TITLES, Path, judge, lines
from harness.plan.plan import Plan, load, variants
from harness.record import (
    Energy,
    Failure,
    LeftOut,
    Limit,
    Record,
    Session,
    Telemetry,
    Trace,
    TrialSpec,
    finding,
)
from tests.helpers import ROOT
from tests.helpers import records_builder as build

CARD = "Constructed Card"
PATHS = {
    **build.CIFAR,
    "workload": "smoke",
    "protocol": "smoke/1",
    "image_size": None,
    "quality": None,
    "unit": "sample",
    "steps_per_epoch": 1,
    "epochs": 1,
    "valid_batches": 0,
}


def plan() -> Plan:
    return load(ROOT, "deep")


def path_trial(model: str, precision: str = "fp32-ieee", **told: Any) -> TrialSpec:
    return build.trial(
        PATHS, precision, 1, model=model, batch_size=1, data="synthetic", limit=Limit(steps=1), **told
    )


def measured(trial: TrialSpec, kind: dict[str, Any] = PATHS, **changes: Any) -> Record:
    record_changes = {
        name: changes.pop(name) for name in ("telemetry", "causes", "verdict") if name in changes
    }
    found = build.measurement(kind, trial, 0.1, card=CARD, complete=False, steps=5, **changes)
    return build.record(trial, found, on=build.machine(CARD, label="card"), **record_changes)


def failed(trial: TrialSpec, reason: str, message: str, **changes: Any) -> Record:
    failure = Failure(kind="trial", stage="train", reason=reason, message=message)  # type: ignore[arg-type]
    return build.record(trial, None, on=build.machine(CARD, label="card"), failure=failure, **changes)


def session(trials: tuple[TrialSpec, ...] = (), left: tuple[LeftOut, ...] = ()) -> Session:
    return Session(
        session=1, id="20260131-abcdef", plan="deep", plan_sha256="0" * 64, machine="c" * 12, label="x",
        started_at=build.STARTED, order_seed=1, trials=trials, left_out=left,
    )  # fmt: skip


def paths_of(
    *records: Record, trials: tuple[TrialSpec, ...] = (), left: tuple[LeftOut, ...] = ()
) -> list[Path]:
    """What is said of the records."""
    asked = trials or tuple(record.trial for record in records)
    return list(judge(session(asked, left), records))


def telemetry(**energy: Any) -> Telemetry:
    return Telemetry(
        source="nvml", interval_seconds=0.1, seconds=4.0, samples=40, seconds_per_value=0.1,
        times=Trace.of([0.0], 0.1), cards=({"index": 0},), energy=Energy(**energy), ended="asked",
    )  # type: ignore[arg-type] # fmt: skip


def test_a_check_that_ended_well_works_and_says_what_it_found():
    found = measured(path_trial("eager", "amp-bf16"), notes=("product bfloat16", "convolution bfloat16"))
    assert paths_of(found) == [
        Path("works", "arithmetic in amp-bf16", "product bfloat16; convolution bfloat16")
    ]


def test_what_the_device_lacks_is_not_here():
    found = failed(path_trial("apex"), "unsupported", "Apex is not in this environment")
    assert paths_of(found) == [Path("not here", "Apex", "Apex is not in this environment")]


@pytest.mark.parametrize(
    ("model", "reason", "remedy"),
    [
        ("compiled", "error", "leave the profile 'tuned' out"),
        ("memory-wall", "error", "report the words"),
        ("memory-wall", "out-of-memory", "report the words"),
        ("collectives", "timeout", "longer time limit"),
        ("folders", "disk-full", "make room"),
    ],
)
def test_a_check_that_failed_is_broken_with_a_remedy_of_its_own(model, reason, remedy):
    (path,) = paths_of(failed(path_trial(model), reason, "RuntimeError: words\nand more"))
    assert (path.word, path.sentence) == ("broken", f"{reason} at train: RuntimeError: words")
    assert remedy in path.remedy


def test_arithmetic_of_another_kind_than_its_label_is_broken_though_it_was_measured():
    cause = finding("precision", precision="amp-bf16", outputs="4 float16")
    trial = build.trial(build.LM, "amp-bf16", 1)
    (path,) = paths_of(
        measured(
            trial, build.LM, verdict="invalid", causes=(cause, finding("memory-error", errors=1, card=0))
        )
    )
    assert (path.word, path.sentence) == ("broken", "labelled amp-bf16, but the layers gave 4 float16")


def test_a_workload_s_step_says_its_memory_and_one_that_does_not_fit_is_not_here():
    trials = [build.trial(build.CIFAR, label, 1, batch_size=48) for label in ("fp32-ieee", "fp16-master")]
    full = failed(trials[1], "out-of-memory", "CUDA out of memory")
    fits, does_not = sorted(
        paths_of(measured(trials[0], build.CIFAR), full), key=lambda path: path.word, reverse=True
    )
    assert fits.name == "cifar_fastai resnet50 224 px fp32-ieee batch 48"
    assert "5.6 GiB of memory" in fits.sentence
    assert (does_not.word, does_not.remedy) == ("not here", "")
    assert "does not fit" in does_not.sentence


def test_of_several_attempts_the_last_one_counts_and_one_that_was_not_reached_has_a_remedy():
    trial, other = path_trial("folders"), path_trial("tuning")
    first = failed(trial, "error", "words")
    again = measured(trial, notes=("written",)).model_copy(update={"attempt": 2})
    (unread, works) = paths_of(again, first, trials=(trial, other))
    assert (works.word, works.sentence) == ("works", "written")
    assert (unread.word, unread.sentence) == ("not here", "it was not taken: the time was over")
    assert unread.remedy


def test_two_sources_of_energy_are_told_with_what_lies_between_them():
    energy = {"joules": 1200.0, "method": "counter", "sampled_joules": 1212.0, "disagreement": 0.01}
    found = paths_of(measured(path_trial("clock"), telemetry=telemetry(**energy)))
    assert [(path.word, path.name) for path in found[1:]] == [("works", "telemetry"), ("works", "energy")]
    assert found[2].sentence == "1,200 J by counter, 1,212 J by sampled power: +1.0% apart"


def test_energy_that_disagrees_is_broken_and_energy_that_nobody_tells_is_not_here():
    apart = {"joules": 9.0, "method": "counter", "warning": "the two disagree"}
    (*_, broken) = paths_of(measured(path_trial("clock"), telemetry=telemetry(**apart)))
    (*_, absent) = paths_of(measured(path_trial("clock"), telemetry=telemetry(unknown_because="no counter")))
    assert (broken.word, absent) == ("broken", Path("not here", "energy", "no counter"))


def test_a_card_that_nobody_watched_is_broken():
    (*_, path) = paths_of(measured(path_trial("clock")))
    assert (path.word, path.name) == ("broken", "telemetry")


def test_what_was_left_out_is_not_here():
    left = (LeftOut(what="paths eager fp32-tf32", trials=1, reason="a CPU has no TF32"),)
    assert paths_of(left=left, trials=()) == [Path("not here", "paths eager fp32-tf32", "a CPU has no TF32")]


def test_every_check_of_the_plan_has_a_title_and_a_remedy():
    asked = [measure for measure in plan().measure if measure.workload == "smoke"]
    names = {variant.model for measure in asked for variant in variants(measure, "deep")}
    assert names == set(TITLES) == set(REMEDIES)


def test_a_line_a_path_with_its_remedy_below_and_the_counts_at_the_end():
    shown = lines([Path("works", "a", "b"), Path("broken", "c", "d", "e"), Path("not here", "f", "g")])
    assert shown == [
        "works    a: b",
        "BROKEN   c: d",
        "         → e",
        "not here f: g",
        "1 work, 1 broken, 1 not here",
    ]
