"""PyTorch's loading of X-rays: which batches, by how many workers, in processes or threads.

A worker makes whole batches, as in PyTorch's own loader: it opens each file, crops, flips and normalises. Two
batches a worker are made ahead. Processes start and end with each epoch, as published; their start is in
the epoch's time.
"""

from __future__ import annotations

from parts.vision import torchvision  # isort: skip

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, default_collate

from parts.chexnet.protocol import Terms
from parts.chexnet.xrays import PIXELS, Part
from parts.launcher import Place

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""ImageNet's, of pixels in [0, 1]."""
AHEAD = 2

Batch = tuple[torch.Tensor, torch.Tensor]
transforms = torchvision.transforms


class Files(Dataset[Batch]):
    """Images read when they are asked for."""

    def __init__(self, part: Part, prepare: Callable[[Image.Image], torch.Tensor]) -> None:
        self.part, self.prepare = part, prepare

    def __len__(self) -> int:
        return len(self.part)

    def __getitem__(self, item: int) -> Batch:
        with Image.open(self.part.paths[item]) as image:
            return self.prepare(image.convert("RGB")), torch.from_numpy(self.part.labels[item])


class Arrays(Dataset[Batch]):
    """Images that lie in memory."""

    def __init__(self, batches: Sequence[tuple[np.ndarray, np.ndarray]]) -> None:
        self.images, self.labels = (
            torch.from_numpy(np.concatenate(half)) for half in zip(*batches, strict=True)
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> Batch:
        return self.images[item], self.labels[item]


def preparation(terms: Terms, *, training: bool) -> Callable[[Image.Image], torch.Tensor]:
    """What is made of an image in RGB: cropped and flipped to train on, normalised always."""
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
        self.items, self.terms, self.place = items, terms, place
        self._order = torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return self.terms.steps_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        order = torch.randperm(self.items, generator=self._order)
        whole, size = self.terms.global_batch_size, self.terms.batch_size
        mine = (
            range(self.place.rank * size, (self.place.rank + 1) * size)
            if self.place.count > 1
            else range(whole)
        )
        for step in range(len(self)):
            yield [int(order[(step * whole + number) % self.items]) for number in mine]


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

    def __iter__(self) -> Iterator[list[int]]:
        for first in self.firsts:
            yield list(range(first, min(first + self.size, self.items)))


class Threaded:
    """Batches made by threads of this process, in their order."""

    def __init__(self, dataset: Dataset[Batch], batches: Any, workers: int, *, pinned: bool) -> None:
        self.dataset, self.batches, self.workers, self.pinned = dataset, batches, workers, pinned

    def __len__(self) -> int:
        return len(self.batches)

    def __iter__(self) -> Iterator[Batch]:
        return _Ahead(self)


class _Ahead(Iterator[Batch]):
    """An epoch of them: the threads begin at once, before the first batch is asked for."""

    def __init__(self, of: Threaded) -> None:
        self.of, self.left = of, iter(of.batches)
        self.pool = ThreadPoolExecutor(of.workers)
        self.coming: deque[Any] = deque()
        for _ in range(AHEAD * of.workers):
            self._send()

    def __next__(self) -> Batch:
        if not self.coming:
            self.pool.shutdown()
            raise StopIteration
        batch: Batch = self.coming.popleft().result()
        self._send()
        return batch

    def __del__(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)

    def _send(self) -> None:
        items = next(self.left, None)
        if items is not None:
            self.coming.append(self.pool.submit(self._made, items))

    def _made(self, items: list[int]) -> Batch:
        images, labels = default_collate([self.of.dataset[item] for item in items])
        return (images.pin_memory(), labels.pin_memory()) if self.of.pinned else (images, labels)


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
