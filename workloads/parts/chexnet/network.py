"""DenseNet-121 with 14 outputs: what it is made of, by names that no framework owns.

A name is block/layer/operation: `stem/conv`, `block2/layer11/norm1`, `transition3/conv`, `final/norm`,
`head`. A layer is norm1, ReLU, conv1 (1 × 1, to 128 channels), norm2, ReLU, conv2 (3 × 3, to 32 channels),
and its output is joined to its input along the channels. The stem ends in a maximum over 3 × 3 pixels at
every second one, a transition in a mean over 2 × 2, the last block in a norm, a ReLU and a mean over all
pixels. Edges are padded to the same size, no convolution has a bias, every norm has the epsilon below.

Weights have names as in a safetensors file: `stem/conv/weight` is (outputs, inputs, height, width),
`head/weight` (outputs, inputs); a norm has `scale`, `shift`, `mean` and `variance`.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from parts.chexnet.protocol import CLASSES
from parts.trial import Failed

BLOCKS = (6, 12, 24, 16)
"""Layers of each block; of layers, blocks and transitions the first is number 1."""
GROWTH = 32
BOTTLENECK = 4 * GROWTH
STEM = 64
NORM_EPSILON = 1e-5
NORM_KEPT = 0.9
"""The share of the running mean and variance that each step keeps."""
WEIGHTS_SEED = 121
WEIGHTS_SHA256 = "e8a3501838ccdde15da92c31c179cda61acb705bcf012d5985b04e25ac92b08e"
"""The hash of the weights' safetensors file."""
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


def neutral_weights() -> dict[str, np.ndarray]:
    """Return the weights that every framework begins with, by name in fp32: one set, drawn by rule.

    Uniform in ±√(6 ÷ inputs of an output) for convolutions and the head (He et al., arXiv 1502.01852), no
    shift, a scale of one. The generator is NumPy's RandomState, whose stream is frozen, and uniform numbers
    and square roots are exact, so every NumPy on every machine draws the same bits. Raises Failed where
    SHA256 is another.
    """
    stream = np.random.RandomState(WEIGHTS_SEED)
    arrays = {}
    for layer in layers():
        name = layer.name
        if isinstance(layer, Norm):
            for part, value in (("scale", 1), ("shift", 0), ("mean", 0), ("variance", 1)):
                arrays[f"{name}/{part}"] = np.full(layer.channels, value, np.float32)
        elif isinstance(layer, Convolution):
            shape = (layer.outputs, layer.inputs, layer.kernel, layer.kernel)
            arrays[f"{name}/weight"] = _uniform(stream, shape)
        else:
            arrays[f"{name}/weight"] = _uniform(stream, (layer.outputs, layer.inputs))
            arrays[f"{name}/bias"] = np.zeros(layer.outputs, np.float32)
    digest = hashlib.sha256(safetensors_file(arrays)).hexdigest()
    if digest != WEIGHTS_SHA256:
        raise Failed(
            "error", f"the weights drawn here have the SHA-256 {digest} where {WEIGHTS_SHA256} is right"
        )
    return arrays


def safetensors_file(arrays: dict[str, np.ndarray]) -> bytes:
    """Return the arrays in the safetensors format: the header's length, the header, the numbers."""
    header, place = {}, 0
    for name, array in arrays.items():
        header[name] = {
            "dtype": "F32",
            "shape": list(array.shape),
            "data_offsets": [place, place + array.nbytes],
        }
        place += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(a.astype("<f4").tobytes() for a in arrays.values())


def _uniform(stream: np.random.RandomState, shape: tuple[int, ...]) -> np.ndarray:
    bound = np.sqrt(6 / np.prod(shape[1:]))
    return ((2 * stream.random_sample(shape) - 1) * bound).astype(np.float32)
