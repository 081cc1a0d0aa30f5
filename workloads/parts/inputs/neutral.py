"""Weights that every framework can begin with: arrays by neutral names, their file, and its hash.

A file is in the safetensors format, which no framework owns.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import hashlib
import json
import struct

import numpy as np

from parts.trial import Failed


def checked(arrays: dict[str, np.ndarray], sha256: str) -> dict[str, np.ndarray]:
    """The arrays; raises Failed where their file is not the one of that hash."""
    digest = hashlib.sha256(file_of(arrays)).hexdigest()
    if digest != sha256:
        raise Failed("error", f"the weights drawn here have the SHA-256 {digest} where {sha256} is right")
    return arrays


def file_of(arrays: dict[str, np.ndarray]) -> bytes:
    """The arrays in the safetensors format: the header's length, the header, the numbers."""
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


def uniform(stream: np.random.RandomState, shape: tuple[int, ...], bound: float) -> np.ndarray:
    """Numbers between minus and plus `bound`, in fp32."""
    return ((2 * stream.random_sample(shape) - 1) * bound).astype(np.float32)
