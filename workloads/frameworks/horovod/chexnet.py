"""Karmanov 2018's CheXNet in TensorFlow with Horovod: images/s of DenseNet-121, one process a device.

The terms are those of every framework (`parts.chexnet.protocol`). Network, loss and Adam are those of
`frameworks.tensorflow.low_level`; each rank trains on its own part of the batch, and Horovod's gradient
tape gives the mean of all ranks' gradients. Batch norm is each rank's own, as with PyTorch's
DistributedDataParallel.

The study has no notebook of Horovod, so there is no `published/1`; UniLu 2019 trained with it.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from typing import Any

import horovod.tensorflow as hvd
import tensorflow as tf

from frameworks.horovod import framework, ranks
from frameworks.tensorflow import device
from frameworks.tensorflow.low_level import LowLevel
from parts import launcher
from parts.chexnet import data, training
from parts.chexnet.network import parameters
from parts.chexnet.protocol import EPOCHS, Terms, terms
from parts.launcher import Place


class HorovodTrainer(LowLevel):
    """A rank's own copy, whose gradients are the mean of all ranks'."""

    DIFFERS = (
        "TensorFlow 2.12's own operations on variables, without Keras, under Horovod's gradient tape",
        *LowLevel.DIFFERS[1:],
    )

    def __init__(self, asked: Terms) -> None:
        super().__init__(asked, device.strategy(["/CPU:0"]))

    def facts(self) -> dict[str, Any]:
        """The framework, as a measurement tells it."""
        own = {"loader": super().facts()["loader"], "differs": list(self.DIFFERS)}
        return framework.facts(**own)

    def gradients(self, tape: tf.GradientTape, loss: tf.Tensor) -> list[tf.Tensor]:
        """The mean over the ranks."""
        return hvd.DistributedGradientTape(tape).gradient(loss, list(self.trained.values()))


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, by itself or as the ranks that it is made of."""
    asked = terms(trial, {framework.NAME: tuple(framework.WAYS)}, device.PRECISIONS)
    framework.refuse_others(trial)
    place = launcher.here()
    if asked.devices > 1 and place is None:
        return ranks.launched(trial, asked.parallel, asked.devices)
    with ranks.together():
        return measured(trial, asked, place or Place())


def measured(trial: TrialProcess, asked: Terms, place: Place) -> dict[str, Any]:
    """The training of this process and what it measured."""
    with trial.phase("device"):
        devices = device.choose("cpu", 1)
        arithmetic = device.prepare(asked.precision, "cpu", devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    with trial.phase("model"):
        trainer = HorovodTrainer(asked)
    trial.stage("data")
    with trial.phase("data"):
        drawn = data.batches(asked)
        own = slice(place.rank * asked.batch_size, (place.rank + 1) * asked.batch_size)
        batches = [trainer.arranged((images[own], labels[own])) for images, labels in drawn]
    trial.stage("setup")
    with trial.phase("first_step"):
        training.begin(trainer, batches[0])
    clock = device.Clock(trial, devices, steps_per_epoch=asked.steps_per_epoch, epochs=EPOCHS)
    over = ranks.End(clock).over if place.count > 1 else clock.over
    epochs = training.train(trial, clock, asked, batches, trainer, over)
    trial.stage("collect")
    found = {
        "device": device.facts("cpu", 1),
        "versions": framework.software(),
        "precision": dict(
            arithmetic,
            output_dtypes=dict(trainer.output_types),
            parameter_dtypes={"float32": parameters()},
        ),
        "framework": trainer.facts(),
        "samples_per_step": asked.batch_size,
        "ranks": framework.entries(clock, place, devices),
    }
    return training.measurement(trial, asked, clock, epochs, training.of_arrays(drawn), found)


if __name__ == "__main__":
    launcher.settle()
    main(run, __file__)
