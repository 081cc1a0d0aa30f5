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

from frameworks.tensorflow import tensorflow_device as device
from frameworks.tensorflow.keras_fit import KerasFit
from frameworks.tensorflow.low_level import LowLevel
from parts.chexnet import process
from parts.chexnet.network import parameters
from parts.chexnet.protocol import terms

TRAINERS = {"tensorflow": LowLevel, "keras-tensorflow": KerasFit}


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, dict.fromkeys(TRAINERS, tuple(device.WAYS)))
    kind = trial.asked["device"]
    with trial.phase("device"):
        devices = device.choose(kind, asked.devices)
        arithmetic = device.prepare(asked.precision, devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    with trial.phase("model"):
        trainer = TRAINERS[asked.framework](asked, device.strategy(devices))

    def collect(batch: Any) -> dict[str, Any]:
        return {
            "device": device.facts(kind, asked.devices),
            "versions": device.software(),
            "precision": dict(
                arithmetic,
                output_dtypes=dict(trainer.output_types),
                parameter_dtypes={"float32": parameters()},
            ),
            "framework": dict(trainer.facts(), ways=device.WAYS),
        }

    return process.measure_training(trial, asked, trainer, device.clock_on(devices), collect)


if __name__ == "__main__":
    main(run)
