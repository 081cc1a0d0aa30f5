"""What a record or a session says against itself is named. The records were measured, then changed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from harness.record import Gpu, Record, Session
from harness.record.store import Stored
from harness.summary import contradictions
from tests.helpers.here import results_here

RESULTS = results_here()
SESSION = next(session for session in RESULTS.sessions if len(session.trials) == 12)
OWN = tuple(
    sorted(
        (stored for stored in RESULTS.records if stored.record.session == SESSION.id),
        key=lambda stored: stored.record.started_at,
    )
)


def measured(record: Record, part: str, **changes: Any) -> Record:
    """The record with other values in one part of its measurement, or in the measurement itself."""
    measurement = record.measurement
    assert measurement is not None
    if part:
        changes = {part: getattr(measurement, part).model_copy(update=changes)}
    return record.model_copy(update={"measurement": measurement.model_copy(update=changes)})


def said_of(record: Record) -> str:
    return "\n".join((*contradictions.within(record), *contradictions.of_another_place(record)))


def said_across(*records: Stored, session: Session = SESSION) -> str:
    return "\n".join(contradictions.across(session, records))


def changed(stored: Stored, **changes: Any) -> Stored:
    return replace(stored, record=stored.record.model_copy(update=changes))


def test_nothing_that_was_measured_here_contradicts_itself():
    assert [said_of(stored.record) for stored in RESULTS.records if said_of(stored.record)] == []
    assert list(contradictions.among(RESULTS)) == []


def epochs(record: Record, factor: float) -> Record:
    assert record.measurement is not None
    longer = tuple(
        epoch.model_copy(update={"train_seconds": epoch.train_seconds * factor})
        for epoch in record.measurement.epochs
    )
    return measured(record, "", epochs=longer)


def faster(record: Record, factor: float) -> Record:
    """What a hand changes first: the window alone, so that the throughput grows."""
    assert record.measurement is not None
    return measured(record, "window", seconds=record.measurement.window.seconds / factor)


def larger_steps(record: Record, factor: float) -> Record:
    """Each step of more samples, and the window of as many more: the record agrees with itself in these."""
    assert record.measurement is not None
    samples = round(record.measurement.samples_per_step * factor)
    whole = measured(record, "", samples_per_step=samples)
    return measured(whole, "window", samples=samples * record.measurement.window.steps)


def shorter_epochs(record: Record, factor: float) -> Record:
    assert record.measurement is not None
    steps = round(record.measurement.protocol.steps_per_epoch * factor)
    return measured(record, "protocol", steps_per_epoch=steps)


FORGED = {
    "a fifth more samples in each step, and in the window": (
        lambda record: larger_steps(record, 1.2),
        "its steps have 840 samples, where its batches on all devices have 700",
    ),
    "epochs of half as many steps": (
        lambda record: shorter_epochs(record, 0.5),
        "an epoch has 1492 steps of 700 samples, where its data have 2088628",
    ),
    "epochs of a tenth more steps": (lambda record: shorter_epochs(record, 1.1), "an epoch has"),
    "more samples a step than there are": (
        lambda record: measured(record, "window", samples=round(record.measurement.window.samples * 1.2)),
        "samples are more than",
    ),
    "fewer samples than its steps have": (
        lambda record: measured(
            record, "", samples_per_step=round(record.measurement.samples_per_step * 1.2)
        ),
        "samples are fewer than",
    ),
    "more steps than the series has": (
        lambda record: measured(record, "window", steps=record.measurement.window.steps * 2),
        "steps, and its series has",
    ),
    "epochs that took another time": (lambda record: epochs(record, 0.9), "its epochs trained for"),
    "a window that is shorter than its epochs": (
        lambda record: faster(record, 1.1),
        "its epochs trained for",
    ),
    "a trial that is shorter than its window": (
        lambda record: record.model_copy(update={"wall_seconds": 1.0}),
        "stands in 1 s",
    ),
    "another lock": (
        lambda record: record.model_copy(
            update={"environment": record.environment.model_copy(update={"lock_sha256": "f" * 64})}
        ),
        "its lock is 'ffffffffffff'",
    ),
    "more devices": (lambda record: measured(record, "device", count=8), "it ran on 8 devices"),
    "more nodes than devices": (
        lambda record: record.model_copy(update={"nodes": 2}),
        "its 1 devices have no even place on its 2 nodes",
    ),
    "another precision": (
        lambda record: measured(record, "precision", label="amp-fp16"),
        "its precision is 'amp-fp16'",
    ),
    "another workload": (lambda record: measured(record, "", workload="mnist_cnn"), "its workload is"),
    "a card on a processor": (
        lambda record: measured(record, "device", name="NVIDIA H100 80GB HBM3"),
        "it ran on 'NVIDIA H100 80GB HBM3', which its machine does not have",
    ),
    "a name in other letters": (
        lambda record: measured(
            record,
            "device",
            name=record.measurement.device.name.replace("A", "\u0410"),
        ),
        "which its machine does not have",
    ),
    "generated data as real": (
        lambda record: measured(record, "data", source="synthetic"),
        "its data source is",
    ),
}


@pytest.mark.parametrize(("forge", "says"), FORGED.values(), ids=FORGED)
def test_what_was_changed_in_one_place_is_named(forge, says):
    record = OWN[0].record
    assert said_of(record) == ""
    assert says in said_of(forge(record))


def on_card(record: Record, kind: str, *, machine: Gpu | None, **device: Any) -> Record:
    """The record as one of a card, in a machine with `machine` or none."""
    asked = record.trial.asked.model_copy(update={"device": kind})
    host = record.machine.model_copy(update={"gpus": (machine,) if machine else ()})
    moved = record.model_copy(
        update={
            "trial": record.trial.model_copy(update={"asked": asked}),
            "environment": record.environment.model_copy(update={"device": kind}),
            "machine": host,
        }
    )
    return measured(moved, "device", kind=kind, **device)


NVIDIA = Gpu(index=0, vendor="NVIDIA", name="NVIDIA H100 80GB HBM3", unit="a" * 16)
AMD = Gpu(index=0, vendor="AMD", name="AMD Instinct MI210", unit="b" * 16, architecture="gfx90a")


@pytest.mark.parametrize(
    ("kind", "machine", "device", "fits"),
    [
        ("cuda", NVIDIA, {"name": "NVIDIA H100 80GB HBM3", "unit": "a" * 16}, True),
        ("cuda", NVIDIA, {"name": "NVIDIA H100 80GB HBM3", "unit": "c" * 16}, False),
        ("cuda", NVIDIA, {"name": "NVIDIA A100-SXM4-40GB"}, False),
        ("cuda", None, {"name": "NVIDIA H100 80GB HBM3"}, False),
        ("cuda", AMD, {"name": "AMD Instinct MI210"}, False),
        ("rocm", AMD, {"name": "AMD Radeon Graphics", "capability": "gfx90a:sramecc+:xnack-"}, True),
        ("rocm", AMD, {"name": "AMD Instinct MI210", "capability": "gfx942"}, False),
        ("rocm", AMD, {"name": "AMD Instinct MI210", "unit": "c" * 16}, False),
        ("rocm", NVIDIA, {"name": "NVIDIA H100 80GB HBM3"}, False),
    ],
)
def test_the_card_that_was_measured_is_one_of_its_machines(
    kind: str, machine: Gpu | None, device: dict[str, Any], *, fits: bool
):
    said = said_of(on_card(OWN[0].record, kind, machine=machine, **device))
    assert ("which its machine does not have" in said) is not fits


def test_a_record_of_another_plan_or_seed_is_not_its_session_s():
    assert f"{OWN[0].path}: its plan is not its session's" in said_across(changed(OWN[0], plan="other"))
    trial = OWN[0].record.trial.model_copy(update={"seed": 99})
    assert "its trial is not its session's" in said_across(changed(OWN[0], trial=trial))


def test_trials_at_one_moment_before_their_session_or_in_blocks_without_a_pause_are_named():
    first, second = OWN[:2]
    begun = first.record.started_at
    assert "had ended" in said_across(first, changed(second, started_at=begun))
    early = SESSION.started_at - timedelta(days=1)
    assert "it started before its session" in said_across(changed(first, started_at=early))
    assert "it is of block 2, and no hour lies before it" in said_across(first, changed(second, block=2))
    later = second.record.started_at + timedelta(hours=1, minutes=2)
    assert said_across(first, changed(second, block=2, started_at=later)) == ""


def test_an_attempt_after_one_that_was_measured_is_named():
    again = Stored("again.json", OWN[0].record.model_copy(update={"attempt": 2}))
    assert "again.json: attempt 1 of it was measured already" in said_across(OWN[0], again)
