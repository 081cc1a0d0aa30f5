"""UniLu 2019's ResNet-44 on CIFAR-10 in Keras and by TensorFlow's own distribution, in one process.

Protocol and network are those of `frameworks/tensorflow/resnet44.py`. `keras-tensorflow` is Keras' own loop,
Model.fit, whose loss has the L2 in it; `tensorflow` is a loop of TensorFlow's own over the same network. Both
share a step by MirroredStrategy; on a CPU the devices are logical ones.

Batches come from the host as bytes; the network's first layer centres, shifts and flips them on their device.
What is validated has the mean of the devices' statistics.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import time
from collections.abc import Iterator
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from frameworks.tensorflow import device, resnet44
from frameworks.tensorflow.keras_fit import Marks, Steps
from frameworks.tensorflow.resnet44 import EPOCHS, LARGEST_SHIFT, VALID_BATCH_SIZE, Images
from parts.timing.step_clock import StepClock

NAMES = {"keras-tensorflow": "Keras", "tensorflow": "TensorFlow"}
OPTIONS: dict[str, Any] = {"framework": "tensorflow", "parallel": "dp", "train_images": 50_000}


class Prepared(keras.layers.Layer):
    """Pixels less the mean image; in training shifted by whole pixels with the edge repeated, and flipped."""

    def __init__(self, mean: np.ndarray) -> None:
        super().__init__()
        self.mean = mean

    def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
        """fp32 images."""
        centred = tf.cast(images, tf.float32) / 255 - self.mean
        if not training:
            return centred
        count, along = tf.shape(centred)[0], tf.range(32)
        shifts = tf.random.uniform((2, count, 1), -LARGEST_SHIFT, LARGEST_SHIFT + 1, tf.int32)
        rows, columns = (tf.clip_by_value(along + shift, 0, 31) for shift in tf.unstack(shifts))
        columns = tf.where(tf.random.uniform((count, 1)) < 0.5, columns[:, ::-1], columns)
        return tf.gather(tf.gather(centred, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)


class Mirrored(resnet44.Training):
    """The network on each of several devices."""

    def __init__(self, strategy: tf.distribute.Strategy, mean: np.ndarray) -> None:
        self.strategy = strategy
        with strategy.scope():
            super().__init__(strategy.num_replicas_in_sync, Prepared(mean))

    def warmed(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Takes a step and an output."""
        self.stepped(images, labels)
        self.scores(tf.constant(images))

    def stepped(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """One step of all devices; the loss is the mean over them."""
        return self.step(device.shared(self.strategy, images), device.shared(self.strategy, labels))

    def epochs(
        self, trial: TrialProcess, clock: StepClock, train: Images, size: int, after: Any
    ) -> list[dict[str, Any]]:
        """Epochs until the protocol or the trial's limit ends; one each."""

        def batches() -> Iterator[tuple[np.ndarray, np.ndarray]]:
            drawn = resnet44.order(len(train.labels), clock.segments, trial.seed)
            for first in range(0, clock.steps_per_epoch * size, size):
                chosen = drawn[first : first + size]
                yield train.pixels[chosen], train.labels[chosen]

        def step(batch: tuple[np.ndarray, np.ndarray]) -> None:
            clock.ready(batch[0])
            clock.step(self.stepped(*batch), size)

        return clock.run(batches, step, after=after)

    def compiled(self) -> str:
        """How a step is compiled."""
        return "tf.function"

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

    def __init__(self, strategy: tf.distribute.Strategy, mean: np.ndarray) -> None:
        super().__init__(strategy, mean)
        with strategy.scope():
            self.model.compile(self.adam, keras.losses.SparseCategoricalCrossentropy(from_logits=True))

    def stepped(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """One step, as Model.fit takes it."""
        return self._fit(Steps(1, lambda epoch, step: (images, labels)), 1, [])

    def epochs(
        self, trial: TrialProcess, clock: StepClock, train: Images, size: int, after: Any
    ) -> list[dict[str, Any]]:
        """Epochs of Model.fit until the protocol or the trial's limit ends; one each."""
        orders: dict[int, np.ndarray] = {}

        def at(epoch: int, step: int) -> tuple[np.ndarray, np.ndarray]:
            if epoch not in orders:
                orders.clear()
                orders[epoch] = resnet44.order(len(train.labels), epoch, trial.seed)
            chosen = orders[epoch][step * size : (step + 1) * size]
            return train.pixels[chosen], train.labels[chosen]

        steps = Steps(clock.steps_per_epoch, at)
        marks = Marks(trial, clock, size, after, steps)
        trial.stage("train")
        self._fit(steps, clock.epochs, [marks])
        return marks.epochs

    def compiled(self) -> str:
        """How Keras compiles a step."""
        return "XLA" if self.model.jit_compile else "tf.function"

    def _fit(self, steps: keras.utils.PyDataset, epochs: int, callbacks: list[Any]) -> Any:
        return self.model.fit(steps, epochs=epochs, callbacks=callbacks, shuffle=False, verbose=0)


def run(trial: TrialProcess) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("resnet44",))
    trial.choose("data mode", trial.variant["data_mode"], ("host",))
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))
    options = trial.options(OPTIONS)
    name = options["framework"]
    trial.choose("framework", name, NAMES)
    trial.choose("parallel", options["parallel"], device.WAYS)
    kind, count = trial.asked["device"], trial.variant["gpus"]
    size = count * trial.variant["batch_size"]
    with trial.phase("device"):
        devices = device.choose(kind, count)
        arithmetic = device.prepare(trial.variant["precision"], devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        train, valid, data = resnet44.read(trial, options["train_images"])
    trial.stage("setup")
    with trial.phase("model"):
        trainer = Fitted if name == "keras-tensorflow" else Mirrored
        training = trainer(device.strategy(devices), train.mean)
    with trial.phase("first_step"):
        training.rehearse(train.pixels[:size], train.labels[:size])
    steps = len(train.labels) // size
    clock = device.clock_on(devices)(trial, steps_per_epoch=steps, epochs=EPOCHS)
    limit = trial.valid_batches(len(valid.labels) // VALID_BATCH_SIZE)

    def after(epoch: dict[str, Any]) -> None:
        if limit:
            trial.stage("valid")
            began = time.perf_counter()
            sums = training.summed(valid, range(limit), lambda part: valid.pixels[part])
            epoch.update(resnet44.quality(sums, time.perf_counter() - began, limit))
            trial.stage("train")

    epochs = training.epochs(trial, clock, train, size, after)
    trial.stage("collect")
    framework = {
        "name": NAMES[name],
        "version": keras.__version__ if trainer is Fitted else tf.__version__,
        "ways": device.WAYS,
        "compiled": training.compiled(),
        "loader": "none: bytes in host memory, shifted and flipped on the device",
        "differs": ["Keras' own layers, with its momentum and epsilon of batch norm"],
    }
    found = resnet44.measurement(trial, training, clock, epochs, data, arithmetic, devices, framework)
    ranks = [{"rank": number, "memory": device.memory([each])} for number, each in enumerate(devices)]
    parallel = options["parallel"] if count > 1 else None
    return dict(found, samples_per_step=size, parallel=parallel, ranks=ranks if count > 1 else [])


if __name__ == "__main__":
    main(run)
