"""Karmanov 2018's CheXNet on Chainer; the protocol is in `parts/chexnet/protocol.py`.

The study loaded DenseNet-121 from a Caffe file, with changes of its own to Chainer's CaffeFunction for
speed; here it is DenseNet-BC (arXiv 1608.06993) written with Chainer's links, which have none. Chainer's
cross-entropy takes whole numbers as labels: so the study's random ones, cast to int32, all became zero.
"""

from __future__ import annotations

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

import warnings
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

# Chainer warns that it was not made for this NumPy's distutils, which it reads to look for a BLAS.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import chainer
    import chainer.functions as F  # noqa: N812
    import chainer.links as L  # noqa: N812

from parts.chexnet import network, process
from parts.chexnet.network import BLOCKS, BOTTLENECK, GROWTH, NORM_EPSILON, NORM_KEPT, STEM
from parts.chexnet.protocol import BETAS, CLASSES, Terms, terms
from parts.chexnet.training import Trainer
from parts.timing.step_clock import StepClock
from parts.trial import versions

NORM_NAMES = {"scale": "gamma", "shift": "beta", "mean": "avg_mean", "variance": "avg_var"}
NAMES = {"weight": "W", "bias": "b"}
FRAMEWORK = {"name": "Chainer", "version": chainer.__version__}


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    asked = terms(trial, {"chainer": ("single",)})
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


class DenseLayer(chainer.Chain):
    """Norm, ReLU, 1 × 1; norm, ReLU, 3 × 3; put behind what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        with self.init_scope():
            self.norm1 = norm(channels)
            self.conv1 = bare_convolution(channels, BOTTLENECK, 1)
            self.norm2 = norm(BOTTLENECK)
            self.conv2 = bare_convolution(BOTTLENECK, GROWTH, 3, pad=1)

    def forward(self, x: Any) -> Any:
        h = self.conv1(F.relu(self.norm1(x)))
        return F.concat((x, self.conv2(F.relu(self.norm2(h)))), axis=1)


class Transition(chainer.Chain):
    """Half the channels, half the width and height."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        with self.init_scope():
            self.norm = norm(channels)
            self.conv = bare_convolution(channels, channels // 2, 1)

    def forward(self, x: Any) -> Any:
        return F.average_pooling_2d(self.conv(F.relu(self.norm(x))), 2)


class Stem(chainer.Chain):
    """A quarter of the width and height."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = bare_convolution(3, STEM, 7, stride=2, pad=3)
            self.norm = norm(STEM)

    def forward(self, x: Any) -> Any:
        return F.max_pooling_2d(F.relu(self.norm(self.conv(x))), 3, stride=2, pad=1, cover_all=False)


class DenseNet121(chainer.Chain):
    """Images as (items, 3, height, width) to the outputs before the sigmoid."""

    def __init__(self, classes: int) -> None:
        super().__init__()
        stages: list[chainer.Link] = [Stem()]
        channels = STEM
        for depth in BLOCKS:
            if len(stages) > 1:
                stages.append(Transition(channels))
                channels //= 2
            stages += [DenseLayer(channels + GROWTH * layer) for layer in range(depth)]
            channels += GROWTH * depth
        with self.init_scope():
            self.stages = chainer.ChainList(*stages)
            self.norm = norm(channels)
            self.head = L.Linear(channels, classes)

    def forward(self, x: Any) -> Any:
        for stage in self.stages:
            x = stage(x)
        return self.head(F.mean(F.relu(self.norm(x)), axis=(2, 3)))

    def layers(self) -> list[chainer.Link]:
        """Return the layers that have weights, in the order in which an image passes."""
        passed: list[chainer.Link] = []
        for stage in self.stages:
            names = ("norm1", "conv1", "norm2", "conv2")
            if isinstance(stage, Stem | Transition):
                names = ("conv", "norm") if isinstance(stage, Stem) else ("norm", "conv")
            passed += [stage[name] for name in names]
        return [*passed, self.norm, self.head]


def bare_convolution(inputs: int, outputs: int, size: int, **options: int) -> L.Convolution2D:
    """Return a convolution without a bias."""
    return L.Convolution2D(inputs, outputs, size, nobias=True, **options)


def norm(channels: int) -> L.BatchNormalization:
    """Return a batch norm with this network's epsilon; Chainer's own would be 2e-5."""
    return L.BatchNormalization(channels, decay=NORM_KEPT, eps=NORM_EPSILON)


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
