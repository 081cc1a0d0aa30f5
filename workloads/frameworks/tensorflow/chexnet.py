"""Karmanov 2018's CheXNet in TensorFlow 2 and in Keras 3: images per second of DenseNet-121.

The terms are those of every framework (`parts.chexnet.protocol`). `tensorflow` is TensorFlow itself, as far
from Keras as the study's was (`low_level`); `keras-tensorflow` is Keras' own network and loop on TensorFlow
(`keras_fit`). Several devices are driven by one process, MirroredStrategy; on a CPU they are logical ones.

Not as published: both have their channels last, which is what TensorFlow has on a CPU; the study's
hand-written towers, estimator and checkpoints are gone from TensorFlow, and so is Keras' multi_gpu_model.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from typing import Any

import tensorflow as tf

from frameworks.tensorflow import device
from frameworks.tensorflow.keras_fit import KerasFit
from frameworks.tensorflow.low_level import LowLevel
from parts.chexnet import reader, training
from parts.chexnet.network import parameters
from parts.chexnet.protocol import EPOCHS, Terms, terms

DATA = ("synthetic", "real")
TRAINERS = {"tensorflow": LowLevel, "keras-tensorflow": KerasFit}


def trainer_of(asked: Terms, devices: list[str]) -> LowLevel | KerasFit:
    """A framework's own trainer on these devices."""
    return TRAINERS[asked.framework](asked, device.strategy(devices))


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, dict.fromkeys(TRAINERS, tuple(device.WAYS)), device.PRECISIONS, data=DATA)
    kind = trial.asked["device"]
    with trial.phase("device"):
        devices = device.choose(kind, asked.devices)
        arithmetic = device.prepare(asked.precision, kind, devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    with trial.phase("model"):
        trainer = trainer_of(asked, devices)
    trial.stage("data")
    with trial.phase("data"):
        given = reader.given(trial, asked, trainer)
        asked = given.terms
    trial.stage("setup")
    with trial.phase("first_step"):
        training.begin(trainer, given.first)
    clock = device.Clock(trial, devices, steps_per_epoch=asked.steps_per_epoch, epochs=EPOCHS)
    if isinstance(trainer, KerasFit):
        epochs = trainer.train(trial, clock, given.train, given.valid)
    else:
        epochs = training.train(trial, clock, asked, given.train, trainer, valid=given.valid)
    score = training.tested(trial, given.test, given.labels)
    trial.stage("collect")
    found = {
        **score,
        "device": device.facts(kind, asked.devices),
        "versions": device.software(),
        "precision": dict(
            arithmetic,
            output_dtypes=dict(trainer.output_types),
            parameter_dtypes={"float32": parameters()},
        ),
        "framework": dict(trainer.facts(), ways=device.WAYS, layout="channels last"),
        "ranks": [{"rank": number, "memory": device.memory([name])} for number, name in enumerate(devices)]
        if asked.devices > 1
        else [],
    }
    data = {**clock.batches(), **given.facts}
    return training.measurement(trial, asked, clock, epochs, data, found, given.valid)


if __name__ == "__main__":
    main(run, __file__)
