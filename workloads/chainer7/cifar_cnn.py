"""Karmanov 2018's four convolutions on CIFAR-10 on Chainer.

The network, its data and the protocol stand in `parts/small/`. As published, the initial weights are
Chainer's own: normal numbers by LeCun's rule.
"""

from __future__ import annotations

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import numpy as np

from chainer7 import device
from chainer7.device import F, L, chainer
from parts.small import training
from parts.small.cnn import CLASSES, CONVOLUTIONS, DENSE, MOMENTUM, RATE, WORK
from parts.small.terms import Terms, terms
from parts.timing.step_clock import StepClock

LAYERS = [name for name, *_ in (*CONVOLUTIONS, *DENSE)]


class Network(chainer.Chain):
    """Images as (items, 3, 32, 32) to the scores of ten classes."""

    def __init__(self, dropouts: tuple[float, float, float]) -> None:
        super().__init__()
        self.dropouts = dropouts
        with self.init_scope():
            for name, inputs, outputs in CONVOLUTIONS:
                setattr(self, name, L.Convolution2D(inputs, outputs, 3, pad=1))
            self.dense1 = L.Linear(DENSE[0][1], DENSE[0][2])
            self.dense2 = L.Linear(DENSE[1][1], CLASSES)

    def forward(self, x: Any) -> Any:
        first, second, last = self.dropouts
        x = F.relu(F.max_pooling_2d(self.conv2(F.relu(self.conv1(x))), 2))
        x = F.dropout(x, first)
        x = F.relu(F.max_pooling_2d(self.conv4(F.relu(self.conv3(x))), 2))
        x = F.dropout(x, second)
        return self.dense2(F.dropout(F.relu(self.dense1(x)), last))


class ChainerTrainer(training.Trainer):
    """The study's network and Chainer's SGD."""

    def __init__(self, asked: Terms) -> None:
        self.asked = asked
        self.model = Network(asked.dropouts)
        self._begin_anew()

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for name in LAYERS:
            self.model[name].W.array[...] = arrays[f"{name}/weight"]
            self.model[name].b.array[...] = arrays[f"{name}/bias"]
        self._begin_anew()

    def _begin_anew(self) -> None:
        self.sgd = chainer.optimizers.MomentumSGD(RATE, MOMENTUM)
        self.sgd.setup(self.model)

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> chainer.Variable:
        loss = F.softmax_cross_entropy(self.model(inputs), targets)
        self.model.cleargrads()
        loss.backward()
        self.sgd.update()
        loss.unchain_backward()
        return loss

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self.model(inputs).array

    def parameters(self) -> int:
        return self.model.count_params()


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, WORK, ("chainer",))
    device.refuse_others(trial)
    np.random.seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        data = WORK.read(trial)
    trial.stage("setup")
    with trial.phase("model"):
        trainer = ChainerTrainer(asked)
        training.begin(trainer, asked)
        precision = device.precision(trial, {"float32": len(LAYERS)}, WORK.parameters)
    steps = asked.steps(len(data.train.targets))
    clock = StepClock(
        trial,
        steps_per_epoch=steps,
        epochs=WORK.epochs,
        values=lambda losses: [float(loss.array) for loss in losses],
    )
    epochs = training.train(trial, clock, asked, data, trainer)
    trial.stage("collect")
    found = {
        "device": device.facts(),
        "versions": device.software(),
        "precision": precision,
        "framework": device.framework(__file__, []),
    }
    return training.measurement(trial, asked, clock, epochs, data, found)


if __name__ == "__main__":
    main(run, __file__)
