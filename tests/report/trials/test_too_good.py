"""Figures that are too good, and honest ones beside them that are not. Every record here is constructed."""

from __future__ import annotations

from typing import Any

import pytest

from harness.record import DeviceUsed, Flops, Record
from tests.helpers.records_devices import runs, summed, with_parameters
from tests.helpers.trial_tables import trials_of
from tests.helpers.watched_records import record

NEW = {"above-ceiling", "contradicts-itself"}


def marks(records: list[Record]) -> list[tuple[str, set[str]]]:
    """Of each trial the verdict, and what is too good of it."""
    trials = trials_of(records)
    return [
        (trial.verdict, {cause.name for cause in trial.causes} & NEW)
        for trial in sorted(trials, key=lambda trial: trial.repeat)
    ]


def changed(made: Record, **changes: Any) -> Record:
    assert made.measurement is not None
    return made.model_copy(update={"measurement": made.measurement.model_copy(update=changes)})


@pytest.mark.parametrize(("products", "marked"), [((1.0, 1.02), True), ((1.0, 4.0), False), ((), False)])
def test_work_above_every_run_of_its_device_s_ceiling_is_marked(products, marked):
    device = DeviceUsed(kind="cuda", name="Constructed Card")
    ceilings = [
        changed(record(repeat=10 + at), device=device, ceilings={"gemm_fp32-ieee_tflops": value})
        for at, value in enumerate(products)
    ]
    # 213 images a second of 10 GFLOP are 2.1 TFLOP/s.
    work = changed(record(), device=device, flops=Flops(per_sample=10e9))
    assert marks([work, *ceilings])[0] == (("warn", {"above-ceiling"}) if marked else ("valid", set()))


@pytest.mark.parametrize(("reached_gb", "marked"), [((0.5, 0.9), True), ((0.5, 1.2), False), ((), False)])
def test_a_step_shorter_than_the_sum_of_its_gradients_in_every_run_is_marked(reached_gb, marked):
    # 25 million gradients of 4 bytes are 0.111 s at 0.9 GB/s.
    changes = with_parameters("fp32-ieee", 25_000_000)
    (work,) = runs("fp32-ieee", 0.1, repeats=1, way="ddp", gpus=2, changes=changes)
    ceilings = [one for at, gb in enumerate(reached_gb, 1) for one in summed(2, gb, repeats=at)[-1:]]
    first = trials_of([work, *ceilings])[0]
    assert first.verdict == ("warn" if marked else "valid")
    assert {cause.name for cause in first.causes} == ({"above-ceiling"} if marked else set())


def test_a_trial_that_was_over_before_its_steps_can_have_been_is_invalid():
    short = record().model_copy(update={"wall_seconds": 60.0})
    assert marks([short, record(repeat=2)]) == [("invalid", {"contradicts-itself"}), ("valid", set())]
