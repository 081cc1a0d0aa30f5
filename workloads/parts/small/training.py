"""The loop around a framework's training step and its tests, and what a trial tells of it, alike for all.

A framework brings a Trainer, a StepClock that knows how to wait for it, and the facts that only it can tell.
The clock starts before the first step, so what a framework compiles is in it, as in the study. After each
epoch the test data are seen outside the clock; the study saw them once, at the end. Its loop wrote all
training data down in their new order before an epoch; here each batch is gathered by itself, inside its step.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import numpy as np

from parts.small.terms import FAIR, Data, Split, Terms, Work
from parts.timing.step_clock import StepClock
from parts.trial import Failed, Trial

METHOD = "products and convolutions by the layers' sizes, forward and backward"


class Trainer:
    """One of the networks under a trial's terms, in one framework, with its own initial weights."""

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes over weights by their neutral names, and begins the optimiser anew."""
        raise NotImplementedError

    def arranged(self, inputs: np.ndarray) -> np.ndarray:
        """Inputs as `step` takes them, in the host's memory: what is done here is in no step."""
        return inputs

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> Any:
        """One training step on arranged inputs; the loss, where the framework leaves it."""
        raise NotImplementedError

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        """The scores of each class for arranged inputs, without dropout; nothing is changed."""
        raise NotImplementedError

    def parameters(self) -> int:
        """Trained numbers, as the framework counts them."""
        raise NotImplementedError


def begin(trainer: Trainer, terms: Terms) -> None:
    """The weights that the protocol begins with; raises Failed where the network is another one."""
    work = terms.work
    if trainer.parameters() != work.parameters:
        counts = f"{trainer.parameters()} parameters where the protocol has {work.parameters}"
        raise Failed("error", f"the network has {counts}")
    if terms.protocol == FAIR:
        trainer.load(work.neutral())


def arranged(trainer: Trainer, data: Data) -> Data:
    """The data as the framework's steps take it."""
    train, test = (Split(trainer.arranged(half.inputs), half.targets) for half in (data.train, data.test))
    return Data(data.name, data.sha256, train, test)


def train(trial: Trial, clock: StepClock, terms: Terms, data: Data, trainer: Trainer) -> list[dict[str, Any]]:
    """Epochs until the protocol or the trial's limit ends; one each."""
    epochs: list[dict[str, Any]] = []
    ended = False
    given = data.train
    whole = terms.steps(len(data.test.targets))
    limit = trial.valid_batches(whole)
    while len(epochs) < clock.epochs and not ended:
        trial.stage("train")
        clock.start()
        for chosen in terms.batches(len(given.targets), len(epochs)):
            inputs, targets = given.inputs[chosen], given.targets[chosen]
            clock.ready(inputs)
            clock.step(trainer.step(inputs, targets), len(targets))
            ended = bool(clock.over())
            if ended:
                break
        epoch = clock.stop()
        if limit:
            trial.stage("valid")
            epoch.update(tested(trainer, terms, data.test, clock.valid_batches(limit)))
        epochs.append(epoch)
        trial.event("epoch", **epoch)
    return epochs


def tested(trainer: Trainer, terms: Terms, test: Split, batches: int) -> dict[str, Any]:
    """Mean loss and accuracy over so many batches of the test data; raises Failed if not finite."""
    began = time.perf_counter()
    loss = right = 0.0
    seen = 0
    for chosen in itertools.islice(terms.batches(len(test.targets), None), batches):
        targets = test.targets[chosen]
        scores = trainer.scores(test.inputs[chosen]).astype(np.float64)
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        loss -= float(logs[np.arange(len(targets)), targets].sum())
        right += float((scores.argmax(axis=1) == targets).sum())
        seen += len(targets)
    if not math.isfinite(loss):
        raise Failed("not-finite", f"the loss of a test is {loss}")
    seconds = time.perf_counter() - began
    return {
        "valid_seconds": seconds,
        "valid_batches": batches,
        "valid_loss": loss / seen,
        "quality": right / seen,
    }


def measurement(
    trial: Trial,
    terms: Terms,
    clock: StepClock,
    epochs: list[dict[str, Any]],
    data: Data,
    found: dict[str, Any],
) -> dict[str, Any]:
    """A measurement's part that all frameworks tell alike, and `found`: framework, device, versions,
    precision."""
    work = terms.work
    whole = terms.steps(len(data.test.targets))
    complete = trial.valid_batches(whole) == whole
    protocol = {"steps_per_epoch": clock.steps_per_epoch, "epochs": work.epochs, "valid_batches": whole}
    return dict(
        {
            "data": dict(data_found(trial, data), **weights_found(terms), **clock.batches()),
            "protocol": dict(protocol, **clock.ended(epochs, whole=complete)),
            "sample_unit": work.sample_unit,
            "samples_per_step": terms.batch_size,
            "epochs": epochs,
            "quality_name": "accuracy",
            "flops": {"per_sample": work.operations_per_sample, "method": METHOD},
            "structure": structure(work),
            "notes": terms.notes,
        },
        **clock.series(),
        **found,
    )


def data_found(trial: Trial, data: Data) -> dict[str, Any]:
    """What was read, for the record."""
    return {
        "name": data.name,
        "source": trial.asked["data"],
        "sha256": data.sha256,
        "train_items": len(data.train.targets),
        "valid_items": len(data.test.targets),
    }


def weights_found(terms: Terms) -> dict[str, Any]:
    """The hash of the weights that training began with, where all frameworks have the same."""
    return {"weights_sha256": terms.work.weights_sha256 if terms.protocol == FAIR else None}


def structure(work: Work) -> dict[str, int]:
    """Counts of the network."""
    return {"classes": work.classes, "parameters": work.parameters}
