"""The weights that every framework begins with: one set, drawn by rule.

Uniform in ±√(6 ÷ inputs of an output) for convolutions and the head (He et al., arXiv 1502.01852), no shift,
a scale of one. The generator is NumPy's RandomState, whose stream is frozen, and uniform numbers and square
roots are exact, so every NumPy on every machine draws the same bits: SHA256 is asserted before they are used.

It is that of a safetensors file: `stem/conv/weight` is (outputs, inputs, height, width), `head/weight`
(outputs, inputs); a norm has `scale`, `shift`, `mean` and `variance`.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np

from parts.chexnet import network
from parts.trial import Failed

SEED = 121
SHA256 = "e8a3501838ccdde15da92c31c179cda61acb705bcf012d5985b04e25ac92b08e"
"""The hash of the file."""


def neutral() -> dict[str, np.ndarray]:
    """Return all weights by name, in fp32, by the rule above; raises Failed where they are not those of
    SHA256."""
    stream = np.random.RandomState(SEED)
    arrays = {}
    for layer in network.layers():
        name = layer.name
        if isinstance(layer, network.Norm):
            for part, value in (("scale", 1), ("shift", 0), ("mean", 0), ("variance", 1)):
                arrays[f"{name}/{part}"] = np.full(layer.channels, value, np.float32)
        elif isinstance(layer, network.Convolution):
            shape = (layer.outputs, layer.inputs, layer.kernel, layer.kernel)
            arrays[f"{name}/weight"] = _uniform(stream, shape)
        else:
            arrays[f"{name}/weight"] = _uniform(stream, (layer.outputs, layer.inputs))
            arrays[f"{name}/bias"] = np.zeros(layer.outputs, np.float32)
    digest = hashlib.sha256(file_of(arrays)).hexdigest()
    if digest != SHA256:
        raise Failed("error", f"the weights drawn here have the SHA-256 {digest} where {SHA256} is right")
    return arrays


def file_of(arrays: dict[str, np.ndarray]) -> bytes:
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
