"""UniLu 2019's ResNet-44 on CIFAR-10 in TensorFlow's Keras, whatever shares its steps.

The protocol is that of `workloads/cifar_resnet44.py`, which says what is the study's and what is of Keras'
example: 662,826 trained parameters, Adam at 1e-3 times the devices, L2 of 1e-4 on the convolutions, pixels
less their mean image, shifts and flips, 40 epochs, all test images after each.

As in that example, batch norm has Keras' own momentum of 0.99 and epsilon of 0.001. Each device normalises
its own part of a batch by itself. TensorFlow 2.12 with Keras 2, and 2.21 with Keras 3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import tensorflow as tf

from frameworks.tensorflow import device
from parts.chexnet.network import METHOD
from parts.inputs import datasets
from parts.timing.step_clock import StepClock
from parts.trial import Failed, TrialProcess

TITLE = "ResNet-44 on CIFAR-10"
ABOUT = "UniLu 2019: accuracy against epochs and time on one to twelve devices."
EPOCHS = 40
BLOCKS_PER_STAGE = 7
PARAMETERS = 662_826
RATE = 1e-3
L2 = 1e-4
LARGEST_SHIFT = 3
VALID_BATCH_SIZE = 500


def resnet44(prepare: Callable[[Any], Any] = lambda images: images) -> tf.keras.Model:
    """The network of the protocol, on prepared images; raises Failed if it has other parameters than that."""
    inputs = tf.keras.Input((32, 32, 3))
    x = activated(convolution(prepare(inputs), 16))
    width = 16
    for wider in (16, 32, 64):
        for _ in range(BLOCKS_PER_STAGE):
            stride = wider // width
            y = activated(convolution(x, wider, stride))
            y = tf.keras.layers.BatchNormalization()(convolution(y, wider))
            shortcut = convolution(x, wider, stride, side=1) if stride > 1 else x
            x = tf.keras.layers.ReLU()(y + shortcut)
            width = wider
    x = tf.keras.layers.GlobalAveragePooling2D()(x)
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(10, kernel_initializer="he_normal")(x))
    trained = sum(int(np.prod(weight.shape)) for weight in model.trainable_variables)
    if trained != PARAMETERS:
        raise Failed("error", f"the network has {trained} parameters where the protocol has {PARAMETERS}")
    return model


def convolution(x: Any, width: int, stride: int = 1, side: int = 3) -> Any:
    """He's initial weights, a bias, and the L2 of the weights."""
    asked = {"strides": stride, "padding": "same", "kernel_initializer": "he_normal"}
    return tf.keras.layers.Conv2D(width, side, kernel_regularizer=tf.keras.regularizers.L2(L2), **asked)(x)


def activated(x: Any) -> Any:
    """Batch norm and ReLU."""
    return tf.keras.layers.ReLU()(tf.keras.layers.BatchNormalization()(x))


class Images:
    """A split in memory, channels last, and as the network takes it."""

    def __init__(self, images: Any, mean: np.ndarray | None, items: int | None = None) -> None:
        pixels = np.frombuffer(images.pixels, np.uint8).reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        self.pixels = np.ascontiguousarray(pixels[:items])
        self.labels = np.array(images.labels[:items], np.int32)
        self.mean = self.pixels.mean(0, dtype=np.float64).astype(np.float32) / 255 if mean is None else mean

    def plain(self, chosen: Any) -> np.ndarray:
        """fp32 images, centred."""
        return self.pixels[chosen].astype(np.float32) / 255 - self.mean


def read(trial: TrialProcess, items: int) -> tuple[Images, Images, dict[str, Any]]:
    """The first images to train on, all test images, and what a measurement tells of both."""
    found = datasets.cifar_10(trial.data_folder, trial.asked["data"])
    train = Images(found.train, None, items)
    valid = Images(found.test, train.mean)
    told = {"name": found.name, "source": trial.asked["data"], "sha256": found.sha256}
    return train, valid, {**told, "train_items": len(train.labels), "valid_items": len(valid.labels)}


def order(items: int, epoch: int, seed: int) -> np.ndarray:
    """All items in an epoch's order, which every process draws alike."""
    return np.random.RandomState((seed + epoch) % 2**32).permutation(items)


class Training:
    """The network with its Adam, its step and its outputs."""

    def __init__(self, devices: int, prepare: Callable[[Any], Any] = lambda images: images) -> None:
        self.model = resnet44(prepare)
        self.adam = tf.keras.optimizers.Adam(RATE * devices, epsilon=1e-8)
        self.step = tf.function(self._step, autograph=False)
        self.scores = tf.function(lambda images: self.model(images, training=False), autograph=False)
        self.adam.build(self.model.trainable_variables)

    def rehearse(self, images: Any, labels: Any) -> None:
        """One step and one output that leave no trace, for graphs to be made."""
        variables = [*self.model.variables, *self.adam.variables]
        before = [variable.numpy() for variable in variables]
        self.warmed(images, labels)
        for variable, value in zip(variables, before, strict=True):
            variable.assign(value)

    def warmed(self, images: Any, labels: Any) -> None:
        """Takes a step and an output."""
        self.step(tf.constant(images), tf.constant(labels))
        self.scores(tf.constant(images))

    def summed(self, images: Images, batches: Iterable[int], plain: Callable[[Any], Any]) -> np.ndarray:
        """The sum of the losses over these batches, how many are right, and how many images they hold."""
        sums = np.zeros(3)
        for number in batches:
            part = slice(number * VALID_BATCH_SIZE, (number + 1) * VALID_BATCH_SIZE)
            scores, labels = self.scores(tf.constant(plain(part))), images.labels[part]
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores).numpy()
            sums += (losses.sum(), (scores.numpy().argmax(1) == labels).sum(), len(labels))
        return sums

    def losses(self, images: tf.Tensor, labels: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Cross-entropy, which is told, and with the L2 what is trained on."""
        scores = self.model(images, training=True)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, scores))
        return loss, loss + tf.add_n(self.model.losses)

    def _step(self, images: Any, labels: Any) -> tf.Tensor:
        raise NotImplementedError


def quality(sums: np.ndarray, seconds: float, batches: int) -> dict[str, Any]:
    """A validation as an epoch tells it; raises Failed where its loss is not finite."""
    loss, right, seen = (float(each) for each in sums)
    if not math.isfinite(loss):
        raise Failed("not-finite", f"the loss of a validation is {loss}")
    told = {"valid_seconds": seconds, "valid_batches": batches, "valid_loss": loss / seen}
    return {**told, "quality": right / seen}


def measurement(
    trial: TrialProcess,
    training: Training,
    clock: StepClock,
    epochs: list[dict[str, Any]],
    data: dict[str, Any],
    arithmetic: dict[str, Any],
    devices: list[str],
    framework: dict[str, Any],
) -> dict[str, Any]:
    """What every way of sharing tells alike; `samples_per_step`, `parallel` and `ranks` are its own."""
    whole = data["valid_items"] // VALID_BATCH_SIZE
    counted = [layer for layer in training.model.layers if hasattr(layer, "kernel")]
    # Two operations for each product of convolutions and head, forward and for both gradients.
    products = [math.prod(layer.kernel.shape) * math.prod(layer.output.shape[1:-1]) for layer in counted]
    kind = trial.asked["device"]
    return {
        "device": device.facts(kind, len(devices)),
        "versions": device.software(),
        "precision": dict(
            arithmetic, output_dtypes={"float32": len(counted)}, parameter_dtypes={"float32": PARAMETERS}
        ),
        "framework": {"layout": "channels last", **framework},
        "title": TITLE,
        "about": ABOUT,
        "data": {**data, **clock.batches()},
        "protocol": clock.protocol(epochs, whole, trial.valid_batches(whole)),
        "sample_unit": "image",
        "epochs": epochs,
        "quality_name": "accuracy",
        "flops": {"per_sample": float(6 * sum(products)), "method": METHOD},
        "structure": {"parameters": PARAMETERS, "classes": 10},
        "notes": [],
        **clock.series(),
    }
