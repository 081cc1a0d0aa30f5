"""PyTorch's loading of X-rays: which batches, by how many workers, in processes or threads.

A worker makes whole batches, as in PyTorch's own loader: it reads each image, crops, flips and normalises.
Two batches a worker are made ahead. Processes start and end with each epoch, as published; their start is in
the epoch's time.
"""

from __future__ import annotations

from parts.networks.vision import torchvision  # isort: skip

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, default_collate

from parts.chexnet import pictures, reader
from parts.chexnet.pictures import DEVIATION, MEAN
from parts.chexnet.protocol import FAIR, Terms
from parts.chexnet.reader import AHEAD, Ahead
from parts.chexnet.xrays import PIXELS
from parts.launcher import Place

Batch = tuple[torch.Tensor, torch.Tensor]
Wanted = tuple[int, int, int]
"""An item, the epoch that it is wanted in, and its place in that."""
Prepare = Callable[[Image.Image, int, int], torch.Tensor]
"""Of an image, for an epoch and a place in it."""
transforms = torchvision.transforms


class Images(Dataset[Batch]):
    """Images read when they are asked for, from `xrays.Part` or `files.Files`."""

    def __init__(self, part: Any, prepare: Prepare) -> None:
        self.part, self.prepare = part, prepare

    def __len__(self) -> int:
        return len(self.part)

    def __getitem__(self, wanted: Wanted) -> Batch:
        item, epoch, place = wanted
        image = Image.fromarray(self.part.rgb(item))
        return self.prepare(image, epoch, place), torch.from_numpy(self.part.labels[item])


class Arrays(Dataset[Batch]):
    """Images that lie in memory."""

    def __init__(self, batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        self.images, self.labels = (
            torch.from_numpy(np.concatenate(half)) for half in zip(*batches, strict=True)
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, wanted: Wanted) -> Batch:
        return self.images[wanted[0]], self.labels[wanted[0]]


def preparation(terms: Terms, seed: int, *, training: bool) -> Prepare:
    """What is made of an image in RGB: cropped and flipped to train on, normalised always.

    The crop of all frameworks is theirs to the bit; the published one is torchvision's.
    """
    if terms.manner == FAIR:
        return partial(_alike, terms, seed, training)
    return partial(_published, published(terms, training=training))


def _alike(
    terms: Terms, seed: int, training: bool, image: Image.Image, epoch: int, place: int
) -> torch.Tensor:
    size, manner = terms.image_size, terms.manner
    if terms.source_pixels != PIXELS:
        image = transforms.functional.resize(image, [PIXELS])
    pixels = np.asarray(image)
    if not training:
        return torch.from_numpy(pictures.tested_on(pixels, size, manner))
    stream = reader.choices(seed, epoch, place)
    return torch.from_numpy(pictures.trained_on(pixels, size, manner, stream))


def _published(
    made: Callable[[Image.Image], torch.Tensor], image: Image.Image, epoch: int, place: int
) -> torch.Tensor:
    return made(image)


def published(terms: Terms, *, training: bool) -> Callable[[Image.Image], torch.Tensor]:
    """torchvision's crops, as the notebook had them."""
    size, manner = terms.image_size, terms.manner
    steps: list[Any] = []
    if terms.source_pixels != PIXELS:
        steps.append(transforms.Resize(PIXELS))
    if not training:
        steps.append(transforms.Resize(size) if manner.tested_on == "whole" else transforms.CenterCrop(size))
    elif manner.crop == "resized":
        steps.append(transforms.RandomResizedCrop(size))
    else:
        steps.append(transforms.RandomCrop(size))
    if training:
        steps.append(transforms.RandomHorizontalFlip())
    return transforms.Compose([*steps, transforms.ToTensor(), transforms.Normalize(MEAN, DEVIATION)])


class Drawn:
    """The items of each training batch: an order drawn anew for each epoch, of which a rank has its own part.

    Where there are fewer items than an epoch takes, they come round.
    """

    def __init__(self, items: int, terms: Terms, place: Place, seed: int) -> None:
        self.items, self.terms, self.place, self.seed = items, terms, place, seed
        self.epochs = 0

    def __len__(self) -> int:
        return self.terms.steps_per_epoch

    def __iter__(self) -> Iterator[list[Wanted]]:
        epoch, self.epochs = self.epochs, self.epochs + 1
        order = reader.order(self.items, self.seed, epoch)
        whole, size = self.terms.global_batch_size, self.terms.batch_size
        mine = (
            range(self.place.rank * size, (self.place.rank + 1) * size)
            if self.place.count > 1
            else range(whole)
        )
        for step in range(len(self)):
            places = (step * whole + number for number in mine)
            yield [(int(order[place % self.items]), epoch, place) for place in places]


class InOrder:
    """The items of each batch to validate or test on, the last one as long as what is left.

    Ranks take turns, unless the first has all of them.
    """

    def __init__(self, items: int, size: int, place: Place, limit: int, *, first_alone: bool) -> None:
        alone = place.count == 1 or first_alone
        mine = range(0 if alone else place.rank, limit, 1 if alone else place.count)
        self.firsts = [number * size for number in mine] if place.rank == 0 or not first_alone else []
        self.items, self.size = items, size

    def __len__(self) -> int:
        return len(self.firsts)

    def __iter__(self) -> Iterator[list[Wanted]]:
        for first in self.firsts:
            yield [(item, 0, item) for item in range(first, min(first + self.size, self.items))]


class Threaded:
    """Batches made by threads of this process, in their order."""

    def __init__(self, dataset: Dataset[Batch], batches: Any, workers: int, *, pinned: bool) -> None:
        self.dataset, self.batches, self.workers, self.pinned = dataset, batches, workers, pinned

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return Ahead(iter(self.batches), self._made, self.workers)

    def _made(self, wanted: list[Wanted]) -> Batch:
        images, labels = default_collate([self.dataset[one] for one in wanted])
        return (images.pin_memory(), labels.pin_memory()) if self.pinned else (images, labels)


def loader(dataset: Dataset[Batch], batches: Any, terms: Terms, *, pinned: bool) -> Any:
    """What gives an epoch's batches each time it is gone through."""
    if terms.loading["loader"] == "threads":
        return Threaded(dataset, batches, terms.workers, pinned=pinned)
    return DataLoader(
        dataset,
        batch_sampler=batches,
        num_workers=terms.workers,
        prefetch_factor=AHEAD if terms.workers else None,
        pin_memory=pinned,
    )


def named(terms: Terms, *, pinned: bool) -> str:
    """What a record's framework has as its loader."""
    if not terms.workers:
        return f"none: tensors in {'pinned ' if pinned else ''}host memory"
    own = {"threads": "our own", "processes": "torch.utils.data"}
    way = terms.loading["loader"]
    return f"{own[way]}, {way}: {terms.workers}"
