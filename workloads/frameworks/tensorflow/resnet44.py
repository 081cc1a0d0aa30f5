"""UniLu 2019's ResNet-44 on CIFAR-10 in TensorFlow's Keras, whatever shares its steps.

The protocol is that of `workloads/cifar_resnet44.py`, which says what is the study's and what is of Keras'
example: 662,826 trained parameters, Adam at 1e-3 times the devices, L2 of 1e-4 on the convolutions, pixels
less their mean image, shifts and flips, 40 epochs, all test images after each.

As in that example, batch norm has Keras' own momentum of 0.99 and epsilon of 0.001. Each device normalises
its own part of a batch by itself. Batches come from the host as bytes; the network's first layer centres,
shifts and flips them on their device. TensorFlow 2.12 with Keras 2, and 2.21 with Keras 3.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks.tensorflow import tensorflow_device as device
from parts.chexnet.network import METHOD
from parts.inputs import datasets
from parts.launcher import Place
from parts.timing.measurement import make_measurement
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess

EPOCHS = 40
BLOCKS_PER_STAGE = 7
PARAMETERS = 662_826
RATE = 1e-3
L2 = 1e-4
LARGEST_SHIFT = 3
VALID_BATCH_SIZE = 500

EpochOfBatches = Callable[[int, int], tuple[np.ndarray, np.ndarray]]
"""Gives an epoch's batch by the numbers of epoch and step."""
After = Callable[[dict[str, Any]], None]
"""Is given an epoch's record, and may add to it."""


def resnet44(prepare: Callable[[Any], Any]) -> tf.keras.Model:
    """Return the network of the protocol, on prepared bytes."""
    inputs = tf.keras.Input((32, 32, 3))
    x = activate(convolution(prepare(inputs), 16))
    width = 16
    for wider in (16, 32, 64):
        for _ in range(BLOCKS_PER_STAGE):
            stride = wider // width
            y = activate(convolution(x, wider, stride))
            y = tf.keras.layers.BatchNormalization()(convolution(y, wider))
            shortcut = convolution(x, wider, stride, side=1) if stride > 1 else x
            x = tf.keras.layers.ReLU()(y + shortcut)
            width = wider
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    return tf.keras.Model(inputs, tf.keras.layers.Dense(10, kernel_initializer="he_normal")(x))


def convolution(x: Any, width: int, stride: int = 1, side: int = 3) -> Any:
    """Return He's initial weights, a bias, and the L2 of the weights."""
    asked = {"strides": stride, "padding": "same", "kernel_initializer": "he_normal"}
    return tf.keras.layers.Conv2D(width, side, kernel_regularizer=tf.keras.regularizers.L2(L2), **asked)(x)


def activate(x: Any) -> Any:
    """Return batch norm and ReLU."""
    return tf.keras.layers.ReLU()(tf.keras.layers.BatchNormalization()(x))


class Prepared(tf.keras.layers.Layer):
    """Pixels less the mean image; in training shifted by whole pixels with the edge repeated, and flipped."""

    def __init__(self, mean: np.ndarray) -> None:
        super().__init__()
        self.mean = mean

    def call(self, images: tf.Tensor, training: bool = False) -> tf.Tensor:
        """Return fp32 images."""
        centred = tf.cast(images, tf.float32) / 255 - self.mean
        if not training:
            return centred
        count, along = tf.shape(centred)[0], tf.range(32)
        shifts = tf.random.uniform((2, count, 1), -LARGEST_SHIFT, LARGEST_SHIFT + 1, tf.int32)
        rows, columns = (tf.clip_by_value(along + shift, 0, 31) for shift in tf.unstack(shifts))
        columns = tf.where(tf.random.uniform((count, 1)) < 0.5, columns[:, ::-1], columns)
        return tf.gather(tf.gather(centred, rows, axis=1, batch_dims=1), columns, axis=2, batch_dims=1)


class Images:
    """A split in memory: bytes, channels last."""

    def __init__(self, images: Any, items: int | None = None) -> None:
        pixels = np.frombuffer(images.pixels, np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.pixels = np.ascontiguousarray(pixels[:items])
        self.labels = np.array(images.labels[:items], np.int32)

    def at(self, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return some of them with their labels."""
        return self.pixels[chosen], self.labels[chosen]


class Training:
    """The network with its Adam, and one step of this process."""

    def __init__(self, mean: np.ndarray, devices: int) -> None:
        self.model = resnet44(Prepared(mean))
        self.adam = tf.keras.optimizers.Adam(RATE * devices, epsilon=1e-8)
        self.step = tf.function(self._step, autograph=False)
        self.scores = tf.function(lambda images: self.model(images, training=False), autograph=False)
        self.adam.build(self.model.trainable_variables)

    def take_step(self, images: np.ndarray, labels: np.ndarray) -> Any:
        """Take one step and return its loss."""
        return self.step(tf.constant(images), tf.constant(labels))

    def rehearse(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Take one step and one output that leave no trace, for graphs to be made."""
        variables = [*self.model.variables, *self.adam.variables]
        before = [variable.numpy() for variable in variables]
        self.take_step(images, labels)
        self.scores(tf.constant(images))
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)

    def epochs(self, clock: StepClock, epoch: EpochOfBatches, after: After) -> list[dict[str, Any]]:
        """Run epochs until the protocol or the trial's limit ends; one record each."""

        def step(batch: tuple[np.ndarray, np.ndarray]) -> None:
            clock.ready(batch[0])
            clock.step(self.take_step(*batch), len(batch[1]))

        return clock.run(
            lambda: (epoch(clock.segments, number) for number in range(clock.steps_per_epoch)),
            *(step, self.end_test(clock), after),
        )

    def end_test(self, clock: StepClock) -> Callable[[], object]:
        """Return what says whether the limit is reached."""
        return clock.limit_reached

    def sums(self, valid: Images, batches: range) -> np.ndarray:
        """Return the sum of losses over these batches, how many are right, and how many images."""
        sums = np.zeros(3)
        for number in batches:
            images, labels = valid.at(slice(number * VALID_BATCH_SIZE, (number + 1) * VALID_BATCH_SIZE))
            scores = self.scores(tf.constant(images))
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores).numpy()
            sums += (losses.sum(), (scores.numpy().argmax(1) == labels).sum(), len(labels))
        return sums

    def losses(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Return the cross-entropy, which is reported, and the loss with L2, which is trained on."""
        scores = self.model(images, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        return loss, loss + tf.add_n(self.model.losses)

    def _step(self, images: Any, labels: Any) -> tf.Tensor:
        raise NotImplementedError


def read_options(
    trial: TrialProcess, options: dict[str, Any], names: Iterable[str], ways: Any
) -> dict[str, Any]:
    """Return the trial's options; raises Failed for a trial of another protocol."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("resnet44",))
    trial.choose("precision", trial.variant["precision"], ("fp32-ieee",))
    found = trial.options(options)
    trial.choose("framework", found["framework"], names)
    trial.choose("parallel", found["parallel"], ways)
    return found


def measure_training(
    trial: TrialProcess,
    options: dict[str, Any],
    make: Callable[[list[str], np.ndarray], Training],
    framework: dict[str, Any],
    place: Place,
) -> dict[str, Any]:
    """Train in this process and return what it measured; a process of several ranks has one device."""
    kind, count = trial.asked["device"], 1 if place.count > 1 else trial.variant["gpus"]
    size = count * trial.variant["batch_size"]
    with trial.phase("device"):
        devices = device.choose(kind, count)
        arithmetic = device.prepare(trial.variant["precision"], devices)
        tf.keras.utils.set_random_seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        found = datasets.cifar_10(trial.data_folder, trial.asked["data"])
        train, valid = Images(found.train, options["train_images"]), Images(found.test)
        mean = train.pixels.mean(0, dtype=np.float64).astype(np.float32) / 255
    trial.stage("setup")
    with trial.phase("model"):
        training = make(devices, mean)
    with trial.phase("first_step"):
        training.rehearse(*train.at(slice(size)))
    steps = len(train.labels) // (size * place.count)
    clock = device.clock_on(devices)(trial, steps_per_epoch=steps, epochs=EPOCHS)
    whole = len(valid.labels) // VALID_BATCH_SIZE
    limit = trial.valid_batches(whole)
    orders: dict[int, np.ndarray] = {}

    def batch(epoch: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return this process's part, in an order that all of them draw alike."""
        if epoch not in orders:
            orders.clear()
            orders[epoch] = np.random.RandomState((trial.seed + epoch) % 2**32).permutation(len(train.labels))
        first = (step * place.count + place.rank) * size
        return train.at(orders[epoch][first : first + size])

    def after(epoch: dict[str, Any]) -> None:
        if limit:
            trial.stage("valid")
            began = time.perf_counter()
            loss, right, seen = (float(each) for each in training.sums(valid, range(limit)))
            if not math.isfinite(loss):
                raise Failed("not-finite", f"the loss of a validation is {loss}")
            epoch.update(valid_seconds=time.perf_counter() - began, valid_batches=limit)
            epoch.update(valid_loss=loss / seen, quality=right / seen)
            trial.stage("train")

    epochs = training.epochs(clock, batch, after)
    trial.stage("collect")
    counted = [layer for layer in training.model.layers if hasattr(layer, "kernel")]
    # Two operations for each product of convolutions and head, forward and for both gradients.
    products = [math.prod(layer.kernel.shape) * math.prod(layer.output.shape[1:-1]) for layer in counted]
    return make_measurement(
        clock,
        epochs,
        clock.series(),
        device=device.facts(kind, count),
        versions=device.software(),
        precision=dict(
            arithmetic, output_dtypes={"float32": len(counted)}, parameter_dtypes={"float32": PARAMETERS}
        ),
        data=datasets.facts(found, len(train.labels), len(valid.labels)),
        sample_unit="image",
        samples_per_step=size,
        structure={"parameters": PARAMETERS, "classes": 10},
        valid_batches=whole,
        quality_name="accuracy",
        flops={"per_sample": float(6 * sum(products)), "method": METHOD},
        framework={
            "loader": "none: bytes in host memory, shifted and flipped on the device",
            **framework,
        },
        parallel=options["parallel"] if len(devices) > 1 or place.count > 1 else None,
    )
