"""DenseNet-121 for Chainer, whose own links have none.

It is DenseNet-BC of "Densely Connected Convolutional Networks" (arXiv 1608.06993).
"""

from __future__ import annotations

import warnings
from typing import Any

# Chainer warns that it was not made for this NumPy's distutils, which it reads to look for a BLAS.
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import chainer
    import chainer.functions as F  # noqa: N812
    import chainer.links as L  # noqa: N812

from parts.chexnet.network import BLOCKS, BOTTLENECK, GROWTH, NORM_EPSILON, NORM_KEPT, STEM


class DenseLayer(chainer.Chain):
    """Norm, ReLU, 1 × 1; norm, ReLU, 3 × 3; put behind what came in."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        with self.init_scope():
            self.norm1 = norm(channels)
            self.conv1 = convolution(channels, BOTTLENECK, 1)
            self.norm2 = norm(BOTTLENECK)
            self.conv2 = convolution(BOTTLENECK, GROWTH, 3, pad=1)

    def forward(self, x: Any) -> Any:
        h = self.conv1(F.relu(self.norm1(x)))
        return F.concat((x, self.conv2(F.relu(self.norm2(h)))), axis=1)


class Transition(chainer.Chain):
    """Half the channels, half the width and height."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        with self.init_scope():
            self.norm = norm(channels)
            self.conv = convolution(channels, channels // 2, 1)

    def forward(self, x: Any) -> Any:
        return F.average_pooling_2d(self.conv(F.relu(self.norm(x))), 2)


class Stem(chainer.Chain):
    """A quarter of the width and height."""

    def __init__(self) -> None:
        super().__init__()
        with self.init_scope():
            self.conv = convolution(3, STEM, 7, stride=2, pad=3)
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


def convolution(inputs: int, outputs: int, size: int, **options: int) -> L.Convolution2D:
    """Return a convolution without a bias."""
    return L.Convolution2D(inputs, outputs, size, nobias=True, **options)


def norm(channels: int) -> L.BatchNormalization:
    """Return a batch norm with this network's epsilon; Chainer's own would be 2e-5."""
    return L.BatchNormalization(channels, decay=NORM_KEPT, eps=NORM_EPSILON)
