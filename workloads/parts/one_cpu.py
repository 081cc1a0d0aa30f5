"""CheXNet by frameworks that compute on one CPU in fp32 alone: refusals, what they tell, the whole trial."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from parts.chexnet import reader, training
from parts.chexnet.protocol import EPOCHS, Terms
from parts.numerics import arithmetic
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess, processor_name


def refuse_others(trial: TrialProcess, because: str) -> None:
    """Raises Failed, saying why, for anything but one CPU in fp32."""
    if trial.asked["device"] != "cpu" or trial.variant["gpus"] != 1:
        raise Failed("no-device", f"{because}; it runs on one CPU")
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))


def precision(
    trial: TrialProcess,
    output_types: dict[str, int],
    parameters: int,
    matmul: Callable[[Any, Any], Any],
    convolution: Callable[[Any, Any], Any],
) -> dict[str, Any]:
    """Label, types and probes as a measurement has them; the two operations take and give NumPy arrays."""
    return {
        "label": trial.variant["precision"],
        "output_dtypes": output_types,
        "parameter_dtypes": {"float32": parameters},
        "method": "none",
        "probes": arithmetic.probes({"matmul": matmul, "convolution": convolution}),
    }


def facts() -> dict[str, Any]:
    """The processor, with the threads that a framework takes."""
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return {"kind": "cpu", "name": processor_name(), "threads": threads}


def measured(
    trial: TrialProcess,
    asked: Terms,
    trainer: training.Trainer,
    clock_of: Callable[..., StepClock],
    found: dict[str, Any],
) -> dict[str, Any]:
    """Data, a first step, training, validation and test; `found` is what the framework tells of itself."""
    trial.stage("data")
    with trial.phase("data"):
        given = reader.given(trial, asked, trainer)
        asked = given.terms
    trial.stage("setup")
    with trial.phase("first_step"):
        training.begin(trainer, given.first)
    clock = clock_of(trial, steps_per_epoch=asked.steps_per_epoch, epochs=EPOCHS)
    epochs = training.train(trial, clock, asked, given.train, trainer, valid=given.valid)
    score = training.tested(trial, given.test, given.labels)
    trial.stage("collect")
    framework = dict(found["framework"], loader=reader.named(asked))
    found = {**found, **score, "framework": framework, "device": facts()}
    data = {**clock.batches(), **given.facts}
    return training.measurement(trial, asked, clock, epochs, data, found, given.valid)
