"""What is made of an X-ray's pixels: a crop, a flip, and numbers about nothing; the same bits everywhere.

`part` and `middle` only copy pixels, so `fair/1` is alike to the bit. `resized` and `whole` are interpolated
bilinearly, over all the pixels that a smaller one covers, as Pillow does it, to within one of 256 levels.

Python 3.7 syntax; NumPy, and no framework.
"""

from __future__ import annotations

import math

import numpy as np

from parts.chexnet.protocol import Manner
from parts.trial import Failed

MEAN = (0.485, 0.456, 0.406)
"""ImageNet's, of pixels in [0, 1]."""
DEVIATION = (0.229, 0.224, 0.225)
CAFFE_FACTOR = 0.017
"""Of pixels up to 255, in the place of a division by the deviation."""
AREAS, SHAPES, TRIES = (0.08, 1.0), (3 / 4, 4 / 3), 10
"""Of a part of any size: its share of the image, width by height, and how often one is drawn that must fit;
those of torchvision and of Gluon."""


def trained_on(image: np.ndarray, size: int, manner: Manner, stream: np.random.RandomState) -> np.ndarray:
    """The manner's crop of (height, width, 3), as (3, size, size) in fp32; flipped one time in two."""
    if manner.crop == "resized":
        image = resized(_part_of_any_size(image, stream), size)
    elif manner.crop == "whole":
        image = resized(image, size)
    else:
        _check(image, size)
        top, left = (stream.randint(side - size + 1) for side in image.shape[:2])
        image = image[top : top + size, left : left + size]
    if stream.randint(2):
        image = image[:, ::-1]
    return normalised(image, manner)


def tested_on(image: np.ndarray, size: int, manner: Manner) -> np.ndarray:
    """What lies in the middle, or the whole made smaller, as (3, size, size) in fp32."""
    if manner.tested_on == "whole":
        return normalised(resized(image, size), manner)
    _check(image, size)
    # As torchvision's CenterCrop has its halves.
    top, left = (round((side - size) / 2) for side in image.shape[:2])
    return normalised(image[top : top + size, left : left + size], manner)


def normalised(image: np.ndarray, manner: Manner) -> np.ndarray:
    """256 levels as numbers about nothing, channels first."""
    mean = np.array(MEAN, np.float32)[:, None, None]
    values = np.ascontiguousarray(image.transpose(2, 0, 1)).astype(np.float32)
    if manner.pixels == "caffe":
        return (values - mean * np.float32(255)) * np.float32(CAFFE_FACTOR)
    return (values / np.float32(255) - mean) / np.array(DEVIATION, np.float32)[:, None, None]


def resized(image: np.ndarray, size: int) -> np.ndarray:
    """An image of size × size, in 256 levels."""
    down, across = (_weights(side, size) for side in image.shape[:2])
    values = np.tensordot(down, image.astype(np.float64), (1, 0))
    values = np.tensordot(values, across, (1, 1)).transpose(0, 2, 1)
    return np.clip(np.floor(values + 0.5), 0, 255).astype(np.uint8)


def _weights(before: int, after: int) -> np.ndarray:
    """(after, before): what each pixel of a line gives to each of the new line."""
    scale = before / after
    centres = (np.arange(after) + 0.5) * scale
    away = np.abs(np.arange(before) + 0.5 - centres[:, None]) / max(scale, 1.0)
    weights = np.maximum(0.0, 1.0 - away)
    return weights / weights.sum(axis=1, keepdims=True)


def _part_of_any_size(image: np.ndarray, stream: np.random.RandomState) -> np.ndarray:
    height, width = image.shape[:2]
    for _ in range(TRIES):
        area = height * width * stream.uniform(*AREAS)
        shape = math.exp(stream.uniform(*(math.log(bound) for bound in SHAPES)))
        across, down = round(math.sqrt(area * shape)), round(math.sqrt(area / shape))
        if 0 < across <= width and 0 < down <= height:
            top, left = stream.randint(height - down + 1), stream.randint(width - across + 1)
            return image[top : top + down, left : left + across]
    return image


def _check(image: np.ndarray, size: int) -> None:
    if min(image.shape[:2]) < size:
        told = (size, min(image.shape[:2]))
        raise Failed("unsupported", "images of %d px cannot be cut from X-rays of %d px" % told)
