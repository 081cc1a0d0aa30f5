"""Batches of tensors in memory: a new order in each epoch, and each rank's own part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch

from parts.inputs.datasets import Images, ImageSet
from parts.launcher import ALONE, Place

Batch = tuple[torch.Tensor, torch.Tensor]
Prepare = Callable[[torch.Tensor], torch.Tensor]


def tensors(split: Images, shape: tuple[int, int, int], home: torch.device) -> Batch:
    """Return pixels as uint8 (items, channels, height, width) and labels, both on the device `home`."""
    pixels = torch.frombuffer(bytearray(split.pixels), dtype=torch.uint8).view(-1, *shape)
    return pixels.to(home), torch.tensor(split.labels).to(home)


def image_tensors(images: ImageSet, home: torch.device) -> tuple[Batch, Batch]:
    """Return the images to train with and to validate with."""
    return tensors(images.train, images.shape, home), tensors(images.test, images.shape, home)


def _as_they_are(inputs: torch.Tensor) -> torch.Tensor:
    return inputs


class Shuffled:
    """Whole batches for training, in an order that all ranks draw alike; each rank takes its own part.

    Without a seed the order is drawn by torch's own random numbers.
    """

    def __init__(
        self,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        batch_size: int,
        *,
        seed: int | None,
        place: Place = ALONE,
        prepare: Prepare = _as_they_are,
    ) -> None:
        self.inputs, self.targets, self.batch_size = inputs, targets, batch_size
        self.place, self.prepare = place, prepare
        self._order = None if seed is None else torch.Generator().manual_seed(seed)

    def __len__(self) -> int:
        return len(self.targets) // (self.batch_size * self.place.count)

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.targets), generator=self._order).to(self.targets.device)
        for step in range(len(self)):
            first = (step * self.place.count + self.place.rank) * self.batch_size
            chosen = order[first : first + self.batch_size]
            yield self.prepare(self.inputs[chosen]), self.targets[chosen]


class InOrder:
    """Batches for validation, the last one as long as what is left."""

    def __init__(
        self,
        inputs: torch.Tensor,
        targets: torch.Tensor,
        batch_size: int,
        prepare: Prepare = _as_they_are,
    ) -> None:
        self.inputs, self.targets, self.batch_size, self.prepare = inputs, targets, batch_size, prepare

    def __len__(self) -> int:
        return -(-len(self.targets) // self.batch_size)

    def __iter__(self) -> Iterator[Batch]:
        for first in range(0, len(self.targets), self.batch_size):
            part = slice(first, first + self.batch_size)
            yield self.prepare(self.inputs[part]), self.targets[part]


@dataclass(frozen=True)
class Rotated:
    """The same batches over and over, an epoch of them."""

    batches: Sequence[Batch]
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        return (self.batches[step % len(self.batches)] for step in range(self.steps))
