"""The synthetic images and labels: the same bytes in every framework.

An image is a function of its number alone, so that any number of devices trains on the same ones. The seed is
the protocol's and not the trial's: a record carries the SHA-256 of the first images and their labels, which
is the same for any batch and any number of devices, and figures are compared only where it is the same.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np

from parts.chexnet.protocol import BATCHES, CLASSES, Terms

SEED = 87306
HASHED_ITEMS = 4

ArrayBatch = tuple
"""Images as (items, 3, height, width) and labels as (items, 14), both in fp32."""


def batches(terms: Terms) -> list[ArrayBatch]:
    """Return the global batches that come round."""
    size = terms.global_batch_size
    return [batch(range(number * size, (number + 1) * size), terms) for number in range(BATCHES)]


def batch(items: range, terms: Terms) -> ArrayBatch:
    """Return these items."""
    pairs = [_item(item, terms) for item in items]
    return np.stack([image for image, _ in pairs]), np.stack([labels for _, labels in pairs])


def sha256(drawn: list[ArrayBatch]) -> str:
    """Return the hex digest over the bytes of the first items, each image before its labels."""
    digest = hashlib.sha256()
    pairs = (pair for images, labels in drawn for pair in zip(images, labels))
    for pair in itertools.islice(pairs, HASHED_ITEMS):
        for half in pair:
            digest.update(half.astype("<f4").tobytes())
    return digest.hexdigest()


def facts(drawn: list[ArrayBatch]) -> dict[str, Any]:
    """Return what a measurement says of these batches."""
    distinct = len({images.tobytes() for images, _ in drawn})
    return {"sha256": sha256(drawn), "distinct_batches": distinct, "looked_at_batches": len(drawn)}


class ArrayImages:
    """The images of these batches one by one, as a loader asks for them."""

    def __init__(self, drawn: list[ArrayBatch]) -> None:
        self.images, self.labels = (np.concatenate(half) for half in zip(*drawn))

    def __len__(self) -> int:
        return len(self.labels)

    def rgb(self, item: int) -> np.ndarray:
        """Return an image as it is."""
        return self.images[item]


def _item(item: int, terms: Terms) -> ArrayBatch:
    stream = np.random.RandomState(SEED + item)
    uniform = stream.random_sample(CLASSES)
    labels = {
        "classes": uniform < 0.5,
        "uniform": uniform,
        "zeros": np.zeros(CLASSES),
        "ones": np.ones(CLASSES),
    }[terms.variant.labels]
    shape = (3, terms.image_size, terms.image_size)
    image = np.ones(shape) if terms.variant.images == "ones" else stream.random_sample(shape)
    return image.astype(np.float32), labels.astype(np.float32)
