"""The loop around a framework's training step, and a trial's measurement of it: alike for all frameworks.

A framework brings a Trainer, a StepClock that knows how to wait for it, and the facts that only it has.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from parts.chexnet import network
from parts.chexnet.protocol import CLASSES, LOADING, Terms
from parts.chexnet.synthetic import ArrayBatch
from parts.timing.measurement import make_measurement
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess


def area_under_curve(labels: np.ndarray, scores: np.ndarray) -> float | None:
    """Return the area under the ROC curve of one label; None where all images have it, or none.

    It is U ÷ (positives × negatives), where U is the Mann-Whitney statistic by ranks, ties at their mean rank
    (Hanley and McNeil, "The meaning and use of the area under a receiver operating characteristic curve",
    Radiology 143:29-36, 1982).
    """
    positive = labels > 0.5
    positives, negatives = int(positive.sum()), int((~positive).sum())
    if not positives or not negatives:
        return None
    above = _mean_ranks(scores)[positive].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def _mean_ranks(scores: np.ndarray) -> np.ndarray:
    """Return the ranks of scores, from 1; equal scores get the mean of their ranks."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place.reshape(-1)]


class Trainer:
    """DenseNet-121 under a trial's terms, in one framework."""

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Take over `network.neutral_weights()` by its names, and begin again with Adam's state."""
        raise NotImplementedError

    def arrange(self, batch: ArrayBatch) -> ArrayBatch:
        """Return a batch as `step` takes it, in the host's memory: what is done here is in no step."""
        return batch

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """Return the 14 outputs before the sigmoid, with the running means; nothing is changed."""
        raise NotImplementedError

    def evaluate(self, batches: Iterable[ArrayBatch]) -> ArrayBatch:
        """Return outputs and labels of a part's batches; of all ranks where there are several."""
        outputs, seen = [np.empty((0, CLASSES))], [np.empty((0, CLASSES))]
        for images, labels in batches:
            outputs.append(self.outputs(images))
            seen.append(np.asarray(labels))
        return np.concatenate(outputs), np.concatenate(seen)

    def step(self, images: Any, labels: Any) -> Any:
        """Take one training step on an arranged batch, from its copy on; the loss, where the framework
        leaves it."""
        raise NotImplementedError

    def train(
        self,
        trial: TrialProcess,
        clock: StepClock,
        terms: Terms,
        batches: Any,
        valid: Evaluation | None,
        over: Callable[[], object] | None = None,
    ) -> list[dict[str, Any]]:
        """Train until the protocol or the trial's limit ends; one record an epoch. `over` is for ranks.

        `batches` is a list whose batches come round, or a loader, which begins again with each epoch.
        """
        come_round, every = isinstance(batches, list), terms.reads_loss_every

        def coming() -> Iterable[tuple[int, ArrayBatch]]:
            if valid and terms.valid_ahead:
                valid.begin()
            return enumerate(itertools.cycle(batches) if come_round else batches, 1)

        def trained(numbered: tuple[int, ArrayBatch]) -> None:
            number, (images, labels) = numbered
            clock.ready(None if come_round else images)
            loss = self.step(images, labels)
            if every and number % every == 0:
                clock.values([loss])
            clock.step(loss, len(labels))

        def after(epoch: dict[str, Any]) -> None:
            if valid:
                validate(trial, valid, epoch)

        return clock.run(coming, trained, over, after)


@dataclass(frozen=True)
class Scores:
    """What a part's images gave: the mean loss, and the area under the ROC curve of each label."""

    loss: float
    of_each: list[float | None]

    @property
    def auc(self) -> float | None:
        """The mean over the labels; None where one of them is in no image, or in all."""
        known = [value for value in self.of_each if value is not None]
        return sum(known) / len(known) if len(known) == len(self.of_each) else None


class Evaluation:
    """A part's images put through the network, which learns nothing from them.

    `batches` gives them each time it is gone through, and `whole` is how many batches they are in all.
    """

    def __init__(self, trainer: Trainer, batches: Iterable[ArrayBatch], whole: int) -> None:
        self.trainer, self.batches, self.whole = trainer, batches, whole
        self._coming: Any = None

    def begin(self) -> None:
        """Start the loader ahead of time."""
        self._coming = iter(self.batches)

    def __call__(self) -> Scores:
        """Raise Failed where the outputs are not finite."""
        coming, self._coming = self._coming or iter(self.batches), None
        logits, labels = self.trainer.evaluate(coming)
        loss = float(np.mean(np.maximum(logits, 0) - logits * labels + np.log1p(np.exp(-np.abs(logits)))))
        if not math.isfinite(loss):
            raise Failed("not-finite", "the loss of a validation is %s" % loss)
        return Scores(loss, [area_under_curve(*column) for column in zip(labels.T, logits.T)])


def validate(trial: TrialProcess, valid: Evaluation, epoch: dict[str, Any]) -> None:
    """Validate after an epoch's training, and add what came of it to the epoch's record."""
    limit = trial.valid_batches(valid.whole)
    if not limit:
        return
    trial.stage("valid")
    began = time.perf_counter()
    scores = valid()
    epoch.update(valid_seconds=time.perf_counter() - began, valid_batches=limit, valid_loss=scores.loss)
    epoch["quality"] = scores.auc
    trial.stage("train")


def score_test(trial: TrialProcess, test: Evaluation | None, labels: tuple[str, ...]) -> dict[str, Any]:
    """Return what the last epoch's weights make of the images that nothing was chosen by."""
    if test is None:
        return {}
    trial.stage("test")
    with trial.phase("test"):
        scores = test()
    return {"test_quality": scores.auc, "test_qualities": dict(zip(labels, scores.of_each))}


def begin(trainer: Trainer, batch: ArrayBatch, arrays: dict[str, np.ndarray] | None = None) -> None:
    """Take one step that is not counted, for autotuning and graphs, then the weights that all begin with."""
    arrays = arrays or network.neutral_weights()
    trainer.load(arrays)
    trainer.step(*batch)
    trainer.load(arrays)


def load_epochs(clock: StepClock, batches: Iterable[ArrayBatch]) -> list[dict[str, Any]]:
    """Load batches as `train` does and return its epochs, but train nothing: a step is a batch that came."""

    def came(batch: ArrayBatch) -> None:
        clock.ready()
        clock.step(None, len(batch[1]))

    return clock.run(lambda: batches, came)


def make_chexnet_measurement(
    terms: Terms,
    clock: StepClock,
    epochs: list[dict[str, Any]],
    data: dict[str, Any],
    found: dict[str, Any],
    valid: Evaluation | None = None,
) -> dict[str, Any]:
    """Return a measurement with `found`: framework, device, versions, precision."""
    flops = {"per_sample": float(network.operations_per_image(terms.image_size)), "method": network.METHOD}
    parts = {
        "data": dict(
            {"name": terms.data_name, "weights": "random", "weights_sha256": network.WEIGHTS_SHA256}, **data
        ),
        "sample_unit": "image",
        "samples_per_step": terms.global_batch_size,
        "structure": {
            "parameters": network.parameters(),
            "classes": CLASSES,
            "image_size": terms.image_size,
        },
        "valid_batches": valid.whole if valid else 0,
        "quality_name": "auc" if valid else None,
        "flops": {} if terms.protocol == LOADING else flops,
        "parallel": terms.parallel if terms.devices > 1 else None,
        "notes": terms.notes,
    }
    return make_measurement(clock, epochs, clock.series(), **dict(parts, **found))
