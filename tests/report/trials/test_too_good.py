"""Figures that are too good, and honest ones beside them that are not. Every record here is constructed."""

from __future__ import annotations

import random
from typing import Any

import pytest

from harness.record import DeviceUsed, Flops, Record, Series, Window
from report.trials.table import trials_of
from tests.helpers.records_devices import runs, summed, with_parameters
from tests.helpers.trial_tables import table
from tests.helpers.watched_records import record

NEW = {"above-ceiling", "contradicts-itself", "too-alike", "ends-too-well", "starts-too-well"}


def marks(records: list[Record]) -> list[tuple[str, set[str]]]:
    """Of each trial the verdict, and what is too good of it."""
    trials = trials_of(table(records))
    return [
        (trial.verdict, {cause.name for cause in trial.causes} & NEW)
        for trial in sorted(trials, key=lambda trial: trial.repeat)
    ]


def changed(made: Record, **changes: Any) -> Record:
    assert made.measurement is not None
    return made.model_copy(update={"measurement": made.measurement.model_copy(update=changes)})


def seeds(count: int, *, ahead: float = 0.0) -> list[Record]:
    """Runs of one cell that end alike, but for the first, which ends by `ahead` better."""
    noise = random.Random(1)
    runs = []
    for repeat in range(1, count + 1):
        made = record(repeat=repeat)
        assert made.measurement is not None
        moved = noise.gauss(0, 0.005) - (ahead if repeat == 1 else 0.0)
        *before, last = made.measurement.epochs
        last = last.model_copy(update={"train_loss": 0.7 + moved, "valid_loss": 0.7, "quality": 0.84})
        runs.append(changed(made, epochs=(*before, last)))
    return runs


def test_a_run_that_ends_beyond_what_the_other_seeds_predict_is_marked_and_still_shown():
    assert marks(seeds(6, ahead=0.3)) == [("warn", {"ends-too-well"}), *[("valid", set())] * 5]
    assert marks(seeds(6)) == [("valid", set())] * 6
    assert marks(seeds(6, ahead=-0.3))[0] == ("valid", set())
    assert marks(seeds(4, ahead=0.3))[0] == ("valid", set())


def test_a_run_that_starts_below_where_all_others_end_is_marked():
    runs = [record(repeat=repeat) for repeat in (1, 2, 3)]
    assert runs[0].measurement is not None
    first, *later = runs[0].measurement.epochs
    learned = first.model_copy(update={"valid_loss": 0.1})
    assert marks([changed(runs[0], epochs=(learned, *later)), *runs[1:]]) == [
        ("warn", {"starts-too-well"}),
        ("valid", set()),
        ("valid", set()),
    ]


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
    first = trials_of(table([work, *ceilings]))[0]
    assert first.verdict == ("warn" if marked else "valid")
    assert {cause.name for cause in first.causes} == ({"above-ceiling"} if marked else set())


def test_a_trial_that_was_over_before_its_steps_can_have_been_is_invalid():
    short = record().model_copy(update={"wall_seconds": 60.0})
    assert marks([short, record(repeat=2)]) == [("invalid", {"contradicts-itself"}), ("valid", set())]


def test_runs_that_share_every_step_are_no_runs_and_neither_are_steps_without_any_spread():
    first, second, third = (record(repeat=repeat) for repeat in (1, 2, 3))
    assert first.measurement is not None
    copied = changed(second, step_us=first.measurement.step_us, window=first.measurement.window)
    assert marks([first, copied, third]) == [
        ("invalid", {"too-alike"}),
        ("invalid", {"too-alike"}),
        ("valid", set()),
    ]
    even = Series.of([300_000] * 300)
    assert marks([changed(first, step_us=even), second])[0] == ("invalid", {"too-alike"})


def test_three_runs_whose_windows_are_equal_to_a_microsecond_are_no_runs():
    same = Window(seconds=91.0, steps=300, samples=300 * 64)
    runs = [changed(record(repeat=repeat), window=same) for repeat in (1, 2, 3)]
    assert {names for _, mark in marks(runs) for names in mark} == {"too-alike"}
    assert marks(runs[:2]) == [("valid", set())] * 2
