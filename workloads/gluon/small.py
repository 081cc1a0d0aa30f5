"""What Karmanov 2018's small networks share on Apache MXNet's Gluon: the trial and the trainer.

MXNet's engine works behind the host on a CPU too, so each step is waited for until its update is done:
otherwise a step's time would be that of giving the orders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mxnet as mx
import numpy as np
from mxnet import autograd, gluon

from gluon import device
from parts.small import training
from parts.small.terms import Terms, Work, terms
from parts.timing.step_clock import StepClock
from parts.trial import Trial


class GluonTrainer(training.Trainer):
    """A block of Gluon's layers with one of its optimisers."""

    initial: mx.init.Initializer
    optimiser: tuple[str, dict[str, float]]
    dtype = np.float32
    """Of the inputs."""

    def __init__(self, asked: Terms, net: gluon.Block, example: np.ndarray) -> None:
        self.asked, self.net = asked, net
        net.initialize(self.initial)
        net.hybridize()
        with autograd.predict_mode():
            net(mx.nd.array(example, dtype=self.dtype))
        self.loss = gluon.loss.SoftmaxCrossEntropyLoss()
        self._begin_anew()

    def own(self, arrays: dict[str, np.ndarray]) -> dict[Any, np.ndarray]:
        """The block's parameters, and what each of them takes over."""
        raise NotImplementedError

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for parameter, array in self.own(arrays).items():
            parameter.set_data(mx.nd.array(array))
        self._begin_anew()

    def _begin_anew(self) -> None:
        name, told = self.optimiser
        self.trainer = gluon.Trainer(self.net.collect_params(), name, dict(told))

    def step(self, inputs: np.ndarray, targets: np.ndarray) -> mx.nd.NDArray:
        x, y = mx.nd.array(inputs, dtype=self.dtype), mx.nd.array(targets)
        with autograd.record():
            losses = self.loss(self.net(x), y)
        losses.backward()
        self.trainer.step(len(inputs))
        loss = losses.mean()
        mx.nd.waitall()
        return loss

    def scores(self, inputs: np.ndarray) -> np.ndarray:
        with autograd.predict_mode():
            return self.net(mx.nd.array(inputs, dtype=self.dtype)).asnumpy()

    def parameters(self) -> int:
        every = self.net.collect_params().values()
        return sum(int(np.prod(parameter.shape)) for parameter in every if parameter.grad_req != "null")


def run(
    trial: Trial,
    work: Work,
    trainer_of: Callable[[Terms], GluonTrainer],
    layers: int,
    workload_file: str,
    layout: str | None = None,
) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go; `layers` are those that multiply."""
    asked = terms(trial, work, ("mxnet-gluon",))
    device.refuse_others(trial)
    mx.random.seed(trial.seed % 2**31)
    np.random.seed(trial.seed % 2**32)
    trial.stage("data")
    with trial.phase("data"):
        data = work.read(trial)
    trial.stage("setup")
    with trial.phase("model"):
        trainer = trainer_of(asked)
        training.begin(trainer, asked)
        precision = device.precision(trial, {"float32": layers}, work.parameters)
    clock = StepClock(
        trial,
        steps_per_epoch=asked.steps(len(data.train.targets)),
        epochs=work.epochs,
        synchronise=mx.nd.waitall,
        values=lambda losses: [float(loss.asscalar()) for loss in losses],
    )
    epochs = training.train(trial, clock, asked, data, trainer)
    trial.stage("collect")
    found = {
        "device": device.facts(),
        "versions": device.software(),
        "precision": precision,
        "framework": device.framework(workload_file, layout),
    }
    return training.measurement(trial, asked, clock, epochs, data, found)
