"""DenseNet-121 with 14 outputs: what it is made of, by names that no framework owns.

A name is block/layer/operation: `stem/conv`, `block2/layer11/norm1`, `transition3/conv`, `final/norm`,
`head`. A layer is norm1, ReLU, conv1 (1 × 1, to 128 channels), norm2, ReLU, conv2 (3 × 3, to 32 channels),
and its output is joined to its input along the channels. The stem ends in a maximum over 3 × 3 pixels at
every second one, a transition in a mean over 2 × 2, the last block in a norm, a ReLU and a mean over all
pixels. Edges are padded to the same size, no convolution has a bias, every norm has the epsilon below.

Python 3.7 syntax, and no framework.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from parts.chexnet.protocol import CLASSES

BLOCKS = (6, 12, 24, 16)
"""Layers of each block; of layers, blocks and transitions the first is number 1."""
GROWTH = 32
BOTTLENECK = 4 * GROWTH
STEM = 64
NORM_EPSILON = 1e-5
NORM_KEPT = 0.9
"""The share of the running mean and variance that each step keeps."""
METHOD = "by the layers' sizes: two operations for each product, forward and for both gradients"


@dataclass(frozen=True)
class Convolution:
    """Weights of (outputs, inputs, kernel, kernel)."""

    name: str
    inputs: int
    outputs: int
    kernel: int
    stride: int
    shrunk: int
    """How many times smaller an image's side is in its output."""


@dataclass(frozen=True)
class Norm:
    """`scale` and `shift` are trained, `mean` and `variance` are kept along."""

    name: str
    channels: int


@dataclass(frozen=True)
class Head:
    """Weights of (outputs, inputs), and a bias."""

    name: str
    inputs: int
    outputs: int


def layers() -> Iterator[Convolution | Norm | Head]:
    """Return all that has weights, in the order in which an image passes."""
    yield Convolution("stem/conv", 3, STEM, 7, 2, 2)
    yield Norm("stem/norm", STEM)
    channels, shrunk = STEM, 4
    for block, depth in enumerate(BLOCKS, 1):
        for layer in range(1, depth + 1):
            place = f"block{block}/layer{layer}"
            yield Norm(f"{place}/norm1", channels)
            yield Convolution(f"{place}/conv1", channels, BOTTLENECK, 1, 1, shrunk)
            yield Norm(f"{place}/norm2", BOTTLENECK)
            yield Convolution(f"{place}/conv2", BOTTLENECK, GROWTH, 3, 1, shrunk)
            channels += GROWTH
        if block < len(BLOCKS):
            yield Norm(f"transition{block}/norm", channels)
            yield Convolution(f"transition{block}/conv", channels, channels // 2, 1, 1, shrunk)
            channels, shrunk = channels // 2, shrunk * 2
    yield Norm("final/norm", channels)
    yield Head("head", channels, CLASSES)


def parameters() -> int:
    """Return trained numbers: 6,953,856 of the published body and 14,350 of the head."""
    return sum(_trained(layer) for layer in layers())


def operations_per_image(size: int) -> int:
    """Return the operations of a training step on an image; the first input has no gradient."""
    total = 0
    for layer in layers():
        if isinstance(layer, Convolution):
            passes = 2 if layer.name == "stem/conv" else 3
            total += 2 * _trained(layer) * (size // layer.shrunk) ** 2 * passes
        elif isinstance(layer, Head):
            total += 2 * layer.inputs * layer.outputs * 3
    return total


def _trained(layer: Convolution | Norm | Head) -> int:
    if isinstance(layer, Convolution):
        return layer.outputs * layer.inputs * layer.kernel**2
    if isinstance(layer, Norm):
        return 2 * layer.channels
    return layer.outputs * (layer.inputs + 1)
