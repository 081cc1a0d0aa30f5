"""Karmanov 2018's GRU on the reviews of IMDB on Apache MXNet's Gluon.

The network, its data and the protocol stand in `parts/small/`. As published, the initial weights are
Xavier's, those of the words too.
"""

from __future__ import annotations

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from gluon import small
from parts.small.gru import BETAS, CLASSES, EMBEDDED, EPSILON, LENGTH, RATE, UNITS, WORDS, WORK
from parts.small.terms import Terms

LAYERS_THAT_MULTIPLY = 2


class Network(gluon.HybridBlock):
    """Word numbers as (items, 150) to two scores."""

    def __init__(self) -> None:
        super().__init__()
        with self.name_scope():
            self.embedding = gluon.nn.Embedding(WORDS, EMBEDDED)
            self.gru = gluon.rnn.GRU(UNITS, layout="NTC", input_size=EMBEDDED)
            self.dense = gluon.nn.Dense(CLASSES, in_units=UNITS)

    def hybrid_forward(self, F: Any, words: Any) -> Any:  # noqa: N803
        """The scores, of what the last step put out."""
        states = self.gru(self.embedding(words))
        return self.dense(F.slice_axis(states, axis=1, begin=LENGTH - 1, end=LENGTH).reshape((0, -1)))


class GruTrainer(small.GluonTrainer):
    """The study's network and Gluon's Adam."""

    initial = mx.init.Xavier()
    optimiser = (
        "adam",
        {"learning_rate": RATE, "beta1": BETAS[0], "beta2": BETAS[1], "epsilon": EPSILON, "wd": 0.0},
    )
    dtype = np.int32

    def __init__(self, asked: Terms) -> None:
        super().__init__(asked, Network(), np.zeros((1, LENGTH), np.int32))

    def own(self, arrays: dict[str, np.ndarray]) -> dict[Any, np.ndarray]:
        net = self.net
        return {
            net.embedding.weight: arrays["embedding"],
            net.gru.l0_i2h_weight: arrays["gru/input"],
            net.gru.l0_h2h_weight: arrays["gru/state"],
            net.gru.l0_i2h_bias: arrays["gru/input_bias"],
            net.gru.l0_h2h_bias: arrays["gru/state_bias"],
            net.dense.weight: arrays["dense/weight"],
            net.dense.bias: arrays["dense/bias"],
        }


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return small.run(trial, WORK, GruTrainer, LAYERS_THAT_MULTIPLY, __file__)


if __name__ == "__main__":
    main(run, __file__)
