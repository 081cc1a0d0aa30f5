"""Karmanov 2018's four convolutions on CIFAR-10 on Apache MXNet's Gluon, hybridised as in the study.

The network, its data and the protocol stand in `parts/small/`. As published, the initial weights are Xavier's
at a magnitude of 2.24, and the last dropout is 0.25 where the other frameworks have 0.5.
"""

from __future__ import annotations

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import mxnet as mx
import numpy as np
from mxnet import gluon

from gluon import small
from parts.small.cnn import CLASSES, CONVOLUTIONS, DENSE, MOMENTUM, RATE, SIZE, WORK
from parts.small.terms import Terms

LAYERS = [name for name, *_ in (*CONVOLUTIONS, *DENSE)]


class CnnTrainer(small.GluonTrainer):
    """The study's network and Gluon's SGD."""

    initial = mx.init.Xavier(magnitude=2.24)
    optimiser = ("sgd", {"learning_rate": RATE, "momentum": MOMENTUM})

    def __init__(self, asked: Terms) -> None:
        nn = gluon.nn
        net = nn.HybridSequential()
        self.layers = []
        first, second, last = asked.dropouts
        for place, (_, inputs, outputs) in enumerate(CONVOLUTIONS):
            inner = "relu" if place % 2 == 0 else None
            self.layers.append(nn.Conv2D(outputs, 3, padding=1, in_channels=inputs, activation=inner))
            net.add(self.layers[-1])
            if place % 2:
                net.add(nn.MaxPool2D(2, 2), nn.Activation("relu"), nn.Dropout((first, second)[place // 2]))
        self.layers += [
            nn.Dense(DENSE[0][2], activation="relu", in_units=DENSE[0][1]),
            nn.Dense(CLASSES, in_units=DENSE[1][1]),
        ]
        net.add(nn.Flatten(), self.layers[-2], nn.Dropout(last), self.layers[-1])
        super().__init__(asked, net, np.zeros((1, 3, SIZE, SIZE), np.float32))

    def own(self, arrays: dict[str, np.ndarray]) -> dict[Any, np.ndarray]:
        return {
            getattr(layer, part): arrays[f"{name}/{part}"]
            for name, layer in zip(LAYERS, self.layers, strict=True)
            for part in ("weight", "bias")
        }


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return small.run(trial, WORK, CnnTrainer, len(LAYERS), __file__, "channels first")


if __name__ == "__main__":
    main(run, __file__)
