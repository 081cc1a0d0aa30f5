"""Karmanov 2018's four convolutions on CIFAR-10 in TensorFlow 2 and in Keras 3.

The network, its data and the protocol stand in `parts/small/`. `tensorflow` is TensorFlow itself, as far from
Keras as the study's was; `keras-tensorflow` is Keras' own network on TensorFlow.

Not as published: both have their channels last, which is what TensorFlow has on a CPU.
"""

from __future__ import annotations

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from parts.small.cnn import CLASSES, CONVOLUTIONS, DENSE, MOMENTUM, RATE, SIZE, WORK
from parts.small.terms import Terms
from tensorflow2 import small

CHANNELS_LAST = "channels last"


def own(array: np.ndarray) -> np.ndarray:
    """A neutral array as TensorFlow takes it: channels last, outputs after inputs."""
    if array.ndim == 2 and array.shape[1] == DENSE[0][1]:
        side = SIZE // 4
        array = array.reshape(len(array), -1, side, side).transpose(0, 2, 3, 1).reshape(len(array), -1)
    return array.transpose({4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}[array.ndim])


def channels_last(images: np.ndarray) -> np.ndarray:
    """Images as (items, height, width, channels)."""
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1))


class LowLevel(small.LowLevel):
    """TensorFlow's operations, and its momentum."""

    layout = CHANNELS_LAST

    def __init__(self, asked: Terms) -> None:
        super().__init__(asked, ())
        self.velocities = {name: tf.Variable(tf.zeros_like(v)) for name, v in self.variables.items()}

    own = staticmethod(own)
    arranged = staticmethod(channels_last)

    def network(self, inputs: tf.Tensor, *, training: bool) -> tf.Tensor:
        x = inputs
        for place, (name, *_) in enumerate(CONVOLUTIONS):
            x = tf.nn.conv2d(x, self.variables[f"{name}/weight"], 1, "SAME")
            x = self.counted(x + self.variables[f"{name}/bias"])
            if place % 2:
                x = tf.nn.max_pool2d(x, 2, 2, "VALID")
            x = tf.nn.relu(x)
            if place % 2:
                x = self._dropped(x, place // 2, training)
        x = tf.reshape(x, (-1, DENSE[0][1]))
        x = self._dropped(tf.nn.relu(self._dense("dense1", x)), 2, training)
        return self._dense("dense2", x)

    def update(self, gradients: Mapping[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            tf.raw_ops.ResourceApplyMomentum(
                var=self.variables[name].handle,
                accum=self.velocities[name].handle,
                lr=RATE,
                grad=gradient,
                momentum=MOMENTUM,
            )

    def begin_anew(self) -> None:
        for velocity in self.velocities.values():
            velocity.assign(tf.zeros_like(velocity))

    def _dense(self, name: str, x: tf.Tensor) -> tf.Tensor:
        return self.counted(tf.matmul(x, self.variables[f"{name}/weight"]) + self.variables[f"{name}/bias"])

    def _dropped(self, x: tf.Tensor, place: int, training: bool) -> tf.Tensor:
        rate = self.asked.dropouts[place]
        return tf.nn.dropout(x, rate) if training and rate else x


class KerasTrainer(small.KerasTrainer):
    """Keras' layers, and its SGD."""

    layout = CHANNELS_LAST

    def __init__(self, asked: Terms) -> None:
        first, second, last = asked.dropouts
        layers: list[Any] = [keras.Input((SIZE, SIZE, 3))]
        for place, (name, _, outputs) in enumerate(CONVOLUTIONS):
            layers.append(keras.layers.Conv2D(outputs, 3, padding="same", activation="relu", name=name))
            if place % 2:
                layers += [keras.layers.MaxPooling2D(2), keras.layers.Dropout((first, second)[place // 2])]
        layers += [
            keras.layers.Flatten(),
            keras.layers.Dense(DENSE[0][2], activation="relu", name="dense1"),
            keras.layers.Dropout(last),
            keras.layers.Dense(CLASSES, name="dense2"),
        ]
        super().__init__(asked, layers, lambda: keras.optimizers.SGD(RATE, MOMENTUM), ())

    arranged = staticmethod(channels_last)

    def own(self, arrays: Mapping[str, np.ndarray], layer: str) -> list[np.ndarray]:
        return [own(arrays[f"{layer}/{part}"]) for part in ("weight", "bias")]


TRAINERS = {"tensorflow": LowLevel, "keras-tensorflow": KerasTrainer}


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return small.run(trial, WORK, TRAINERS)


if __name__ == "__main__":
    main(run, __file__)
