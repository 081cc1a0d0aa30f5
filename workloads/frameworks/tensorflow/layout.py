"""Channels last, as everywhere in TensorFlow: how its two frameworks take neutral images and weights."""

from __future__ import annotations

import numpy as np

from parts.chexnet.data import Batch


def channels_last(batch: Batch) -> Batch:
    """Images as (items, height, width, 3), and their labels."""
    images, labels = batch
    return np.ascontiguousarray(images.transpose(0, 2, 3, 1)), labels


def arranged_weight(array: np.ndarray) -> np.ndarray:
    """A neutral array as TensorFlow takes it: (height, width, inputs, outputs), or (inputs, outputs)."""
    return array.transpose({4: (2, 3, 1, 0), 2: (1, 0), 1: (0,)}[array.ndim])
