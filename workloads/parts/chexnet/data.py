"""The synthetic images and labels: the same bytes in every framework.

An image is a function of its number alone, so that any number of devices trains on the same ones. The seed is
the protocol's and not the trial's: a record carries the SHA-256 of the first images and their labels, which
is the same for any batch and any number of devices, and figures are compared only where it is the same.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import hashlib
import itertools

import numpy as np

from parts.chexnet.protocol import CLASSES, Terms

SEED = 87306
HASHED_ITEMS = 4

Batch = tuple
"""Images as (items, 3, height, width) and labels as (items, 14), both in fp32."""


def batches(terms: Terms) -> list[Batch]:
    """The global batches that come round."""
    size = terms.global_batch_size
    return [batch(range(number * size, (number + 1) * size), terms) for number in range(terms.batches)]


def batch(items: range, terms: Terms) -> Batch:
    """These items."""
    pairs = [_item(item, terms) for item in items]
    return np.stack([image for image, _ in pairs]), np.stack([labels for _, labels in pairs])


def sha256(of: list[Batch]) -> str:
    """Hex digest over the bytes of the first items of the batches, each image before its labels."""
    digest = hashlib.sha256()
    pairs = (pair for images, labels in of for pair in zip(images, labels))
    for pair in itertools.islice(pairs, HASHED_ITEMS):
        for half in pair:
            digest.update(half.astype("<f4").tobytes())
    return digest.hexdigest()


def _item(item: int, terms: Terms) -> Batch:
    stream = np.random.RandomState(SEED + item)
    uniform = stream.random_sample(CLASSES)
    labels = {
        "classes": uniform < 0.5,
        "uniform": uniform,
        "zeros": np.zeros(CLASSES),
        "ones": np.ones(CLASSES),
    }[terms.manner.labels]
    shape = (3, terms.image_size, terms.image_size)
    image = np.ones(shape) if terms.manner.images == "ones" else stream.random_sample(shape)
    return image.astype(np.float32), labels.astype(np.float32)
