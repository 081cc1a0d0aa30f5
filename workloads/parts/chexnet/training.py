"""The loop around a framework's training step, and what a trial tells of it: alike for all frameworks.

A framework brings a Trainer, a StepClock that knows how to wait for it, and the facts that only it can tell.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from parts.chexnet import network, weights
from parts.chexnet.data import Batch, sha256
from parts.chexnet.protocol import CLASSES, EPOCHS, Terms
from parts.step_clock import StepClock
from parts.trial import Failed, Trial


class Trainer:
    """DenseNet-121 under a trial's terms, in one framework."""

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        """Takes over `weights.neutral()` by its names, and begins Adam anew."""
        raise NotImplementedError

    def arranged(self, batch: Batch) -> Batch:
        """A batch as `step` takes it, in the host's memory: what is done here is in no step."""
        return batch

    def outputs(self, images: np.ndarray) -> np.ndarray:
        """The 14 outputs before the sigmoid, with the running means and variances; nothing is changed."""
        raise NotImplementedError

    def step(self, images: Any, labels: Any) -> Any:
        """One training step on an arranged batch, from its copy on; the loss, where the framework leaves
        it."""
        raise NotImplementedError

    def parameters(self) -> int:
        """Trained numbers, as the framework counts them."""
        raise NotImplementedError


def begin(trainer: Trainer, batch: Batch) -> None:
    """One step that is not counted, for autotuning and graphs, and then the weights that all begin with.

    Raises Failed where the network is not DenseNet-121 with 14 outputs.
    """
    if trainer.parameters() != network.parameters():
        counts = (trainer.parameters(), network.parameters())
        raise Failed("error", "the network has %d trained numbers, and DenseNet-121 has %d" % counts)
    arrays = weights.neutral()
    trainer.load(arrays)
    trainer.step(*batch)
    trainer.load(arrays)


def train(
    trial: Trial,
    clock: StepClock,
    terms: Terms,
    batches: list[Batch],
    trainer: Trainer,
    over: Callable[[], object] | None = None,
) -> list[dict[str, Any]]:
    """Epochs until the protocol or the trial's limit ends; one each. `over` is for ranks."""
    trial.stage("train")
    over = over or clock.over
    every = terms.manner.reads_loss_every
    epochs: list[dict[str, Any]] = []
    ended = False
    while len(epochs) < clock.epochs and not ended:
        clock.start()
        for number in range(clock.steps_per_epoch):
            images, labels = batches[number % len(batches)]
            clock.ready()
            loss = trainer.step(images, labels)
            if every and (number + 1) % every == 0:
                clock.values([loss])
            clock.step(loss, len(labels))
            ended = bool(over())
            if ended:
                break
        epochs.append(clock.stop())
        trial.event("epoch", **epochs[-1])
    return epochs


def measurement(
    trial: Trial,
    terms: Terms,
    clock: StepClock,
    epochs: list[dict[str, Any]],
    batches: list[Batch],
    found: dict[str, Any],
) -> dict[str, Any]:
    """A measurement's part that all frameworks tell alike, and `found`: framework, device, versions,
    precision."""
    protocol = {"steps_per_epoch": clock.steps_per_epoch, "epochs": EPOCHS, "valid_batches": 0}
    flops = {"per_sample": float(network.operations_per_image(terms.image_size)), "method": network.METHOD}
    return dict(
        {
            "data": {
                "name": terms.data_name,
                "source": trial.asked["data"],
                "sha256": sha256(batches),
                "distinct_batches": len({images.tobytes() for images, _ in batches}),
                "looked_at_batches": len(batches),
                "weights": "random",
                "weights_sha256": weights.SHA256,
            },
            "protocol": dict(protocol, **clock.ended(epochs, whole=True)),
            "sample_unit": "image",
            "samples_per_step": terms.global_batch_size,
            "epochs": epochs,
            "flops": flops,
            "structure": {
                "parameters": network.parameters(),
                "classes": CLASSES,
                "image_size": terms.image_size,
            },
            "parallel": terms.parallel if terms.devices > 1 else None,
            "notes": terms.notes,
        },
        **clock.series(),
        **found,
    )
