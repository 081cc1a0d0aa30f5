"""PyTorch's loading of X-rays: by how many workers, in processes or threads, with the published crops.

A worker makes whole batches: it reads each image, crops, flips and normalises. Two batches a worker are made
ahead. Processes start and end with each epoch, as published; their start is in the epoch's time.

Generated files measure what a loader does with a file, and nothing else. An image is grey and of 1,024 px, as
the makers' are: blurred light and shade with a grain. 64 PNGs have 427 kB on average, where theirs have 401
(45 GB in 112,120 files). At 264 px it is made as `invoke build --only chestxray` makes the real ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, default_collate
from torchvision import transforms

from parts.chexnet.feed import (
    BATCHES_AHEAD,
    DEVIATION,
    MEAN,
    Crop,
    CroppedImages,
    HostLoading,
    ThreadLoader,
    Wanted,
    own_crop,
)
from parts.chexnet.protocol import CLASSES, FAIR, Terms
from parts.chexnet.synthetic import ArrayBatch
from parts.chexnet.training import Trainer
from parts.chexnet.xrays import PIXELS

FILES = 64
"""Generated files lie in the page cache, so that no disk is measured."""
SEED = 45
FULL_PIXELS = 1024
SHADES = 8
GRAIN = 1.3
"""Standard deviation in grey levels, of 256."""
JPEG_QUALITY = 95


@dataclass(frozen=True)
class GeneratedFiles:
    """Images by their paths, and their labels as 0 or 1 in fp32, (images, 14)."""

    paths: list[str]
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.paths)

    def rgb(self, item: int) -> np.ndarray:
        """Return an image as (height, width, 3), read from its file."""
        with Image.open(self.paths[item]) as image:
            return np.asarray(image.convert("RGB"))


def generate_files(folder: str, count: int, pixels: int, kind: str) -> GeneratedFiles:
    """Return as many files in the folder, and their labels; the same bytes each time with the same Pillow."""
    paths = []
    for number in range(count):
        image = grey(number)
        if pixels == PIXELS:
            image = image.resize((PIXELS, PIXELS), Image.Resampling.BILINEAR).convert("RGB")
        paths.append(str(Path(folder, f"{number:05d}.{kind}")))
        image.save(paths[-1], **({"quality": JPEG_QUALITY} if kind == "jpeg" else {"compress_level": 6}))
    labels = np.random.RandomState(SEED - 1).random_sample((count, CLASSES)) < 0.5
    return GeneratedFiles(paths, labels.astype(np.float32))


def grey(number: int) -> Image.Image:
    """Return an image by its number, in 256 levels."""
    stream = np.random.RandomState(SEED + number)
    shades = Image.fromarray(stream.randint(32, 224, (SHADES, SHADES)).astype(np.uint8))
    whole = np.asarray(shades.resize((FULL_PIXELS, FULL_PIXELS), Image.Resampling.BICUBIC), np.float32)
    grain = stream.normal(0, GRAIN, whole.shape)
    return Image.fromarray(np.clip(np.rint(whole + grain), 0, 255).astype(np.uint8))


class TorchLoading(HostLoading):
    """Batches as tensors, in memory that a copy need not wait for where they are `pinned`."""

    def __init__(self, trainer: Trainer | None = None, *, pinned: bool) -> None:
        super().__init__(trainer)
        self.pinned = pinned

    @staticmethod
    def crop(terms: Terms, seed: int, *, training: bool) -> Crop:
        """Return the crop of all frameworks, theirs to the bit, or torchvision's as the notebook had it."""
        if terms.variant == FAIR:
            own = own_crop(terms, seed, training=training)
            if terms.source_pixels == PIXELS:
                return own
            return partial(_made_smaller, own)
        return partial(_published, published(terms, training=training))

    def loader(self, images: CroppedImages, sampler: Any, terms: Terms) -> Any:
        """Return what gives an epoch's batches each time it is gone through."""
        if terms.loading["loader"] == "threads":

            def made(wanted: list[Wanted]) -> list[torch.Tensor]:
                return self._placed(default_collate([images[one] for one in wanted]))

            return ThreadLoader(sampler, made, terms.workers)
        return DataLoader(
            images,  # type: ignore[arg-type]
            batch_sampler=sampler,
            num_workers=terms.workers,
            prefetch_factor=BATCHES_AHEAD if terms.workers else None,
            pin_memory=self.pinned,
        )

    def generate_files(self, folder: str, terms: Terms) -> GeneratedFiles:
        """Return files that come round."""
        return generate_files(folder, FILES, terms.source_pixels, terms.loading["format"])

    def hold_batch(self, batch: ArrayBatch) -> Any:
        """Return a batch of arrays in memory as a step takes it."""
        return self._placed([torch.from_numpy(half) for half in batch])

    def loader_name(self, terms: Terms) -> str:
        """Return what a record's framework has as its loader."""
        if not terms.workers:
            return f"none: tensors in {'pinned ' if self.pinned else ''}host memory"
        way = terms.loading["loader"]
        return f"{'our own' if way == 'threads' else 'torch.utils.data'}, {way}: {terms.workers}"

    def _placed(self, halves: list[torch.Tensor]) -> list[torch.Tensor]:
        return [half.pin_memory() for half in halves] if self.pinned else halves


def _made_smaller(crop: Crop, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    smaller = transforms.functional.resize(Image.fromarray(image), [PIXELS])
    return crop(np.asarray(smaller), epoch, place)


def _published(made: Any, image: np.ndarray, epoch: int, place: int) -> torch.Tensor:
    return made(Image.fromarray(image))


def published(terms: Terms, *, training: bool) -> Any:
    """Return torchvision's crops, as the notebook had them."""
    size, variant = terms.image_size, terms.variant
    steps: list[Any] = []
    if terms.source_pixels != PIXELS:
        steps.append(transforms.Resize(PIXELS))
    if not training:
        steps.append(transforms.Resize(size) if variant.tested_on == "whole" else transforms.CenterCrop(size))
    elif variant.crop == "resized":
        steps.append(transforms.RandomResizedCrop(size))
    else:
        steps.append(transforms.RandomCrop(size))
    if training:
        steps.append(transforms.RandomHorizontalFlip())
    return transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])
