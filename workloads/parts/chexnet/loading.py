"""PyTorch's loading of X-rays: by how many workers, in processes or threads, with the published crops.

A worker makes whole batches: it reads each image, crops, flips and normalises. Two batches a worker are made
ahead. Processes start and end with each epoch, as published; their start is in the epoch's time.
"""

from __future__ import annotations

from parts.networks.vision import torchvision  # isort: skip

from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, default_collate

from parts.chexnet.feed import BATCHES_AHEAD, Crop, CroppedImages, HostLoading, ThreadLoader, Wanted, own_crop
from parts.chexnet.pictures import DEVIATION, MEAN
from parts.chexnet.protocol import FAIR, Terms
from parts.chexnet.synthetic import ArrayBatch
from parts.chexnet.training import Trainer
from parts.chexnet.xrays import PIXELS

transforms = torchvision.transforms


class TorchLoading(HostLoading):
    """Batches as tensors, in memory that a copy need not wait for where they are `pinned`."""

    def __init__(self, trainer: Trainer | None = None, *, pinned: bool) -> None:
        super().__init__(trainer)
        self.pinned = pinned

    @staticmethod
    def crop(terms: Terms, seed: int, *, training: bool) -> Crop:
        """Return the crop of all frameworks, theirs to the bit, or torchvision's as the notebook had it."""
        if terms.manner == FAIR:
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

    def fixed(self, batch: ArrayBatch) -> Any:
        """Return a batch of arrays in memory as a step takes it."""
        return self._placed([torch.from_numpy(half) for half in batch])

    def named(self, terms: Terms) -> str:
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


def _published(made: Any, image: np.ndarray, epoch: int, place: int) -> np.ndarray:
    return made(Image.fromarray(image)).numpy()


def published(terms: Terms, *, training: bool) -> Any:
    """Return torchvision's crops, as the notebook had them."""
    size, variant = terms.image_size, terms.manner
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
