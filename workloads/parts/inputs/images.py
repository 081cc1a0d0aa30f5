"""Batches of images in each data mode, for training with fastai's augmentations.

host: augmented one by one on the processor, in worker processes, as the published loader does it (it also
opened a PNG file for each image, which is a hundredth of an image's time; here they lie in memory); device:
raw images lie on the device and each batch is augmented there; cached: a few fixed batches, ready for the
model, come round and round. In the first two the device normalises a batch after it has come.
"""

from parts.networks import vision  # noqa: F401  # isort: skip  (before fastai)

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from fastai.data.transforms import IntToFloatTensor
from fastai.vision.augment import aug_transforms
from fastai.vision.core import TensorImage
from fasttransform import Pipeline
from torch.utils.data import DataLoader, Dataset

from parts.inputs.datasets import Images

FIXED_BATCHES = 4

Batch = tuple[torch.Tensor, torch.Tensor]


@dataclass(frozen=True)
class Pictures:
    """A split: `pixels` as uint8 (items, channels, height, width), `labels` as int64 (items)."""

    pixels: torch.Tensor
    labels: torch.Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def chosen(self, items: Any) -> "Pictures":
        """These items in this order."""
        return Pictures(self.pixels[items], self.labels[items])

    def to(self, device: torch.device) -> "Pictures":
        """The same on a device."""
        return Pictures(self.pixels.to(device), self.labels.to(device))


@dataclass(frozen=True)
class Loaders:
    """What fastai's Learner asks of its data."""

    train: Any
    valid: Any
    device: torch.device
    n_inp: int = 1
    path: str = "."

    def __getitem__(self, number: int) -> Any:
        return (self.train, self.valid)[number]


class Preparation:
    """What makes the model's input of a batch as it comes, on the device; `stats` are mean and deviation."""

    def __init__(self, mode: str, size: int, stats: Any, device: torch.device, layout: str) -> None:
        self.mode = mode
        self.augment = {training: Augmentation(size, training=training) for training in (True, False)}
        self.mean, self.deviation = (torch.tensor(part, device=device).view(1, 3, 1, 1) for part in stats)
        self.memory_format = torch.channels_last if layout == "channels_last" else torch.contiguous_format

    def __call__(self, images: torch.Tensor, *, training: bool) -> torch.Tensor:
        """fp32 images of the asked size, normalised; cached ones are so already."""
        if self.mode == "cached":
            return images
        if self.mode == "device":
            images = self.augment[training](images)
        return self.arranged((images - self.mean) / self.deviation)

    def arranged(self, images: torch.Tensor) -> torch.Tensor:
        """The same images in the asked memory layout."""
        return images.contiguous(memory_format=self.memory_format)


class Augmentation:
    """fastai's standard augmentations and the resizing in one interpolation; validation is resized alone."""

    def __init__(self, size: int, *, training: bool) -> None:
        transforms = [IntToFloatTensor(), *aug_transforms(size=size)]
        self.pipeline = Pipeline(transforms, split_idx=0 if training else 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return self.pipeline(TensorImage(images)).as_subclass(torch.Tensor)


class OneByOne(Dataset[Batch]):
    """Images augmented when they are asked for, each by itself."""

    def __init__(self, pictures: Pictures, size: int, *, training: bool) -> None:
        self.pictures = pictures
        self.augment = Augmentation(size, training=training)

    def __len__(self) -> int:
        return len(self.pictures)

    def __getitem__(self, item: int) -> Batch:
        return self.augment(self.pictures.pixels[item][None])[0], self.pictures.labels[item]


@dataclass(frozen=True)
class OnDevice:
    """Raw images that lie on the device, drawn in a new random order each time where `training`."""

    pictures: Pictures
    batch_size: int
    training: bool

    def __len__(self) -> int:
        return batches_in(len(self.pictures), self.batch_size, whole_ones=self.training)

    def __iter__(self) -> Iterator[Batch]:
        items = len(self.pictures)
        order = torch.randperm(items) if self.training else torch.arange(items)
        order = order.to(self.pictures.labels.device)
        for number in range(len(self)):
            chosen = order[number * self.batch_size : (number + 1) * self.batch_size]
            yield self.pictures.pixels[chosen], self.pictures.labels[chosen]


@dataclass(frozen=True)
class Rotated:
    """The same batches over and over, an epoch of them."""

    batches: tuple[Batch, ...]
    steps: int

    def __len__(self) -> int:
        return self.steps

    def __iter__(self) -> Iterator[Batch]:
        return (self.batches[step % len(self.batches)] for step in range(self.steps))


def loaders(
    train: Pictures, valid: Pictures, batch_size: int, size: int, prepare: Preparation, more: dict[str, Any]
) -> Loaders:
    """Batches in the preparation's data mode; cached ones validate nothing, host ones take `more`."""
    device = prepare.mean.device
    if prepare.mode == "cached":
        fixed = fixed_batches(train, batch_size, size, prepare)
        steps = batches_in(len(train), batch_size, whole_ones=True)
        return Loaders(Rotated(fixed, steps), Rotated((), 0), device)
    if prepare.mode == "device":
        sources = ((train, True), (valid, False))
        return Loaders(*(OnDevice(part.to(device), batch_size, kind) for part, kind in sources), device)
    return Loaders(
        DataLoader(OneByOne(train, size, training=True), batch_size, shuffle=True, drop_last=True, **more),
        DataLoader(OneByOne(valid, size, training=False), batch_size, **more),
        device,
    )


def fixed_batches(train: Pictures, batch_size: int, size: int, prepare: Preparation) -> tuple[Batch, ...]:
    """The first training images, resized and normalised, on the device."""
    resized = Augmentation(size, training=False)
    batches = []
    for number in range(FIXED_BATCHES):
        part = train.chosen(slice(number * batch_size, (number + 1) * batch_size)).to(prepare.mean.device)
        images = (resized(part.pixels) - prepare.mean) / prepare.deviation
        batches.append((prepare.arranged(images), part.labels))
    return tuple(batches)


def pictures(images: Images, shape: tuple[int, int, int]) -> Pictures:
    """A split as tensors."""
    pixels = torch.frombuffer(bytearray(images.pixels), dtype=torch.uint8).view(-1, *shape)
    return Pictures(pixels, torch.tensor(images.labels))


def joined(parts: Iterable[Pictures]) -> Pictures:
    """Splits one after the other."""
    parts = list(parts)
    return Pictures(torch.cat([part.pixels for part in parts]), torch.cat([part.labels for part in parts]))


def batches_in(items: int, batch_size: int, *, whole_ones: bool) -> int:
    """How many batches an epoch has; a last one that is not whole is dropped or kept."""
    return items // batch_size if whole_ones else -(-items // batch_size)
