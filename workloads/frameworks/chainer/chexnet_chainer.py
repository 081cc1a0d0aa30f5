"""Karmanov 2018's CheXNet on Chainer; the protocol is in `parts/chexnet/protocol.py`.

The study loaded DenseNet-121 from a Caffe file, with changes of its own to Chainer's CaffeFunction for
speed; here it is written with Chainer's links. Chainer's cross-entropy takes whole numbers as labels: so
the study's random ones, cast to int32, all became zero.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections import Counter
from functools import partial
from typing import Any

import numpy as np

from frameworks.chainer.densenet import DenseNet121, F, L, chainer
from parts.chexnet import network, process
from parts.chexnet.protocol import BETAS, CLASSES, Terms, terms
from parts.chexnet.training import Trainer
from parts.timing.step_clock import StepClock
from parts.trial import versions

NORM_NAMES = {"scale": "gamma", "shift": "beta", "mean": "avg_mean", "variance": "avg_var"}
NAMES = {"weight": "W", "bias": "b"}
FRAMEWORK = {
    "name": "Chainer",
    "version": chainer.__version__,
    "retired": True,
    "layout": "channels first",
    "differs": ["DenseNet-121 written with Chainer's links, where the study took it from a Caffe file"],
}


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, {"chainer": ("single",)}, data=("synthetic", "real"))
    process.refuse_all_but_one_cpu(trial, "this Chainer has no CuPy for a card of today")
    with trial.phase("model"):
        trainer = ChainerTrainer(asked)
    clock_of = partial(StepClock, values=lambda losses: [float(loss.array) for loss in losses])

    def collect(batch: Any) -> dict[str, Any]:
        types = trainer.output_types(batch[0][:1])
        return {
            "versions": dict(versions(), chainer=chainer.__version__, numpy=np.__version__),
            "framework": FRAMEWORK,
            **process.one_cpu(trial, types, network.parameters(), matmul, convolution),
        }

    return process.measure_training(trial, asked, trainer, clock_of, collect)


def matmul(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return Chainer's product."""
    return F.matmul(left, right).array


def convolution(images: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return Chainer's convolution, without padding."""
    return F.convolution_2d(images, weights).array


class ChainerTrainer(Trainer):
    """A Chain and Chainer's Adam."""

    def __init__(self, asked: Terms) -> None:
        self.asked = asked
        self.model = DenseNet121(CLASSES)

    def load(self, arrays: dict[str, np.ndarray]) -> None:
        for own, layer in zip(self.model.layers(), network.layers(), strict=True):
            for part, name in (NORM_NAMES if isinstance(layer, network.Norm) else NAMES).items():
                if f"{layer.name}/{part}" in arrays:
                    value = getattr(own, name)
                    getattr(value, "array", value)[...] = arrays[f"{layer.name}/{part}"]
        first, second = BETAS
        epsilon = self.asked.variant.adam_epsilon
        self.adam = chainer.optimizers.Adam(self.asked.learning_rate, first, second, epsilon)
        self.adam.setup(self.model)

    def outputs(self, images: np.ndarray) -> np.ndarray:
        with chainer.using_config("train", False), chainer.no_backprop_mode():
            return self.model(images).array

    def step(self, images: np.ndarray, labels: np.ndarray) -> chainer.Variable:
        loss = F.sigmoid_cross_entropy(self.model(images), labels.astype(np.int32))
        self.model.cleargrads()
        loss.backward()
        self.adam.update()
        loss.unchain_backward()
        return loss

    def output_types(self, images: np.ndarray) -> dict[str, int]:
        """Return what the layers that compute put out, counted in a pass that changes nothing."""
        counted = CountedTypes()
        with counted:
            self.outputs(images)
        return dict(counted.types)


class CountedTypes(chainer.LinkHook):
    """Counts the types that convolutions and products put out."""

    def __init__(self) -> None:
        self.types: Counter[str] = Counter()

    def forward_postprocess(self, call: Any) -> None:
        if isinstance(call.link, L.Convolution2D | L.Linear):
            self.types[call.out.dtype.name] += 1


if __name__ == "__main__":
    main(run)
