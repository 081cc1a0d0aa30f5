"""UniLu 2019's ResNet-44 on CIFAR-10 in Keras and by TensorFlow's own distribution, in one process.

Protocol and network are those of `frameworks/tensorflow/resnet44.py`. `keras-tensorflow` is Keras' own loop,
Model.fit, whose loss has the L2 in it; `tensorflow` is a loop of TensorFlow's own over the same network. Both
share a step by MirroredStrategy; on a CPU the devices are logical ones. What is validated has the mean of the
devices' statistics.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from typing import Any

import keras
import numpy as np
import tensorflow as tf

from frameworks.tensorflow import resnet44
from frameworks.tensorflow import tensorflow_device as device
from frameworks.tensorflow.keras_fit import Marks, Steps, fit_epochs, take_step
from frameworks.tensorflow.resnet44 import After, EpochOfBatches
from parts.launcher import ALONE
from parts.timing.step_clock import StepClock

OPTIONS: dict[str, Any] = {"framework": "tensorflow", "parallel": "dp", "train_images": 50_000}


class Mirrored(resnet44.Training):
    """The network on each of several devices."""

    def __init__(self, devices: list[str], mean: np.ndarray) -> None:
        self.strategy = device.strategy(devices)
        with self.strategy.scope():
            super().__init__(mean, len(devices))

    def take_step(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """Take one step of all devices; the loss is the mean over them."""
        return self.step(device.share_batch(self.strategy, images), device.share_batch(self.strategy, labels))

    def _step(self, images: Any, labels: Any) -> tf.Tensor:
        losses = self.strategy.run(self._one_device, (images, labels))
        return self.strategy.reduce(tf.distribute.ReduceOp.MEAN, losses, axis=None)

    def _one_device(self, images: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
        with tf.GradientTape() as tape:
            loss, whole = self.losses(images, labels)
            # Adam takes the sum of the devices' gradients.
            part = whole / self.strategy.num_replicas_in_sync
        variables = self.model.trainable_variables
        self.adam.apply_gradients(zip(tape.gradient(part, variables), variables, strict=True))
        return loss


class Fitted(Mirrored):
    """The same as a compiled Keras model."""

    def __init__(self, devices: list[str], mean: np.ndarray) -> None:
        super().__init__(devices, mean)
        with self.strategy.scope():
            self.model.compile(self.adam, keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def take_step(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """Take one step, as Model.fit takes it."""
        return take_step(self.model, images, labels)

    def epochs(self, clock: StepClock, epoch: EpochOfBatches, after: After) -> list[dict[str, Any]]:
        """Run epochs of Model.fit until the protocol or the trial's limit ends; one record each."""
        steps, size = Steps(clock.steps_per_epoch, epoch), len(epoch(0, 0)[1])
        return fit_epochs(self.model, Marks(clock, size, after, steps))


TRAINERS = {"keras-tensorflow": Fitted, "tensorflow": Mirrored}


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    trial.choose("data mode", trial.variant["data_mode"], ("host",))
    options = resnet44.read_options(trial, OPTIONS, TRAINERS, device.WAYS)
    framework = {"name": "TensorFlow", "version": tf.__version__, "ways": device.WAYS}
    if options["framework"] == "keras-tensorflow":
        framework.update(name="Keras", version=keras.__version__)
    return resnet44.measure_training(trial, options, TRAINERS[options["framework"]], framework, ALONE)


if __name__ == "__main__":
    main(run)
