"""A trial of the protocol in one process that a framework drives alone: alike for all but PyTorch.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from parts.chexnet.feed import HostLoading, dataset
from parts.chexnet.protocol import EPOCHS, Terms
from parts.chexnet.training import Trainer, begin, make_chexnet_measurement, score_test
from parts.numerics import arithmetic
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess, processor_name


def measure_training(
    trial: TrialProcess,
    asked: Terms,
    trainer: Trainer,
    clock_of: Callable[..., StepClock],
    collect: Callable[[Any], dict[str, Any]],
) -> dict[str, Any]:
    """Train as far as the limit lets it go, and return the measurement's own part.

    `collect` is given a batch, and gives framework, device, versions and precision. Raises Failed for
    ImageNet's weights.
    """
    if trial.asked["weights"] == "pretrained":
        raise Failed("unsupported", "PyTorch alone reads the file of ImageNet's weights")
    loading = HostLoading(trainer)
    trial.stage("data")
    with trial.phase("data"):
        read = dataset(trial, asked, loading)
    trial.stage("setup")
    with trial.phase("first_step"):
        begin(trainer, read.first)
    clock = clock_of(trial, steps_per_epoch=read.terms.steps_per_epoch, epochs=EPOCHS)
    epochs = trainer.train(trial, clock, read.terms, read.train, read.valid)
    score = score_test(trial, read.test, read.labels)
    trial.stage("collect")
    found = dict(collect(read.first), tested=score)
    found["framework"] = dict({"loader": loading.loader_name(asked)}, **found["framework"])
    return make_chexnet_measurement(read.terms, clock, epochs, read.facts, found, read.valid)


def refuse_all_but_one_cpu(trial: TrialProcess, because: str) -> None:
    """Raise Failed, saying why, for anything but one CPU in fp32."""
    if trial.asked["device"] != "cpu" or trial.variant["gpus"] != 1:
        raise Failed("no-device", "%s; it runs on one CPU" % because)
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))


def one_cpu(
    trial: TrialProcess,
    output_types: dict[str, int],
    parameters: int,
    matmul: Callable[[Any, Any], Any],
    convolution: Callable[[Any, Any], Any],
) -> dict[str, Any]:
    """Return device and precision of a framework that computes on one CPU in fp32 alone.

    The two operations take and give NumPy arrays.
    """
    threads = int(os.environ.get("OMP_NUM_THREADS") or len(os.sched_getaffinity(0)))
    return {
        "device": {"kind": "cpu", "name": processor_name(), "threads": threads},
        "precision": {
            "label": trial.variant["precision"],
            "output_dtypes": output_types,
            "parameter_dtypes": {"float32": parameters},
            "method": "none",
            "probes": arithmetic.probes({"matmul": matmul, "convolution": convolution}),
        },
    }
