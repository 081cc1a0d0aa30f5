"""Karmanov 2018's GRU on the reviews of IMDB in TensorFlow 2 and in Keras 3.

The network, its data and the protocol stand in `parts/small/`. `tensorflow` is a GRU of TensorFlow's own
operations, since cuDNN's layer of the study is gone from it; `keras-tensorflow` is Keras' own.
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

from parts.small.gru import BETAS, CLASSES, EMBEDDED, EPSILON, LENGTH, RATE, UNITS, WORDS, WORK
from parts.small.terms import Terms
from tensorflow2 import small


class LowLevel(small.LowLevel):
    """TensorFlow's operations, 150 steps in one graph, and its fused Adam."""

    DIFFERS = (
        "the GRU written out, where the study had cuDNN's",
        "its fused Adam, whose epsilon stands beside the uncorrected second moment",
    )

    def __init__(self, asked: Terms) -> None:
        super().__init__(asked, self.DIFFERS)
        self.moments = {
            name: [tf.Variable(tf.zeros_like(v)) for _ in BETAS] for name, v in self.variables.items()
        }
        self.powers = [tf.Variable(beta, dtype=tf.float32) for beta in BETAS]

    def network(self, inputs: tf.Tensor, *, training: bool) -> tf.Tensor:
        weights = self.variables
        words = tf.gather(weights["embedding"], inputs)
        read = tf.tensordot(words, weights["gru/input"], ((2,), (1,))) + weights["gru/input_bias"]
        read = tf.unstack(self.counted(read), LENGTH, axis=1)
        state = tf.zeros((tf.shape(inputs)[0], UNITS))
        for given in read:
            kept = tf.matmul(state, weights["gru/state"], transpose_b=True) + weights["gru/state_bias"]
            reset, update, new = tf.split(given, 3, axis=1)
            old_reset, old_update, old_new = tf.split(kept, 3, axis=1)
            update = tf.sigmoid(update + old_update)
            new = tf.tanh(new + tf.sigmoid(reset + old_reset) * old_new)
            state = (1 - update) * new + update * state
        scores = tf.matmul(state, weights["dense/weight"], transpose_b=True)
        return self.counted(scores + weights["dense/bias"])

    def update(self, gradients: Mapping[str, tf.Tensor]) -> None:
        for name, gradient in gradients.items():
            first, second = self.moments[name]
            tf.raw_ops.ResourceApplyAdam(
                var=self.variables[name].handle,
                m=first.handle,
                v=second.handle,
                beta1_power=self.powers[0],
                beta2_power=self.powers[1],
                lr=RATE,
                beta1=BETAS[0],
                beta2=BETAS[1],
                epsilon=EPSILON,
                grad=gradient,
            )
        for power, beta in zip(self.powers, BETAS, strict=True):
            power.assign(power * beta)

    def begin_anew(self) -> None:
        for moment in (each for both in self.moments.values() for each in both):
            moment.assign(tf.zeros_like(moment))
        for power, beta in zip(self.powers, BETAS, strict=True):
            power.assign(beta)


class KerasTrainer(small.KerasTrainer):
    """Keras' layers, and its Adam."""

    def __init__(self, asked: Terms) -> None:
        layers = [
            keras.Input((LENGTH,), dtype="int32"),
            keras.layers.Embedding(WORDS, EMBEDDED, name="embedding"),
            keras.layers.GRU(UNITS, name="gru"),
            keras.layers.Dense(CLASSES, name="dense"),
        ]
        super().__init__(asked, layers, lambda: keras.optimizers.Adam(RATE, *BETAS, epsilon=EPSILON), ())

    def own(self, arrays: Mapping[str, np.ndarray], layer: str) -> list[np.ndarray]:
        if layer == "embedding":
            return [arrays["embedding"]]
        if layer == "dense":
            return [arrays["dense/weight"].T, arrays["dense/bias"]]
        biases = np.stack([_gates(arrays[f"gru/{part}_bias"]) for part in ("input", "state")])
        return [_gates(arrays["gru/input"]).T, _gates(arrays["gru/state"]).T, biases]


def _gates(array: np.ndarray) -> np.ndarray:
    """Update, reset, new, which is Keras' order of gates."""
    reset, update, new = np.split(array, 3)
    return np.concatenate([update, reset, new])


TRAINERS = {"tensorflow": LowLevel, "keras-tensorflow": KerasTrainer}


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return small.run(trial, WORK, TRAINERS)


if __name__ == "__main__":
    main(run, __file__)
