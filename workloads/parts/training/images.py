"""Batches of images in each data mode, for training with fastai's augmentations.

host: augmented one by one on the processor, in worker processes, as the published loader does it (it also
opened a PNG file for each image, which is a hundredth of an image's time; here they are in memory); device:
raw images are on the device and each batch is augmented there; cached: a few fixed batches, ready for the
model, come round and round. In the first two the device normalises a batch after it has come.
"""

from dataclasses import dataclass
from typing import Any

import torch
from fastai.data.transforms import IntToFloatTensor
from fastai.vision.augment import aug_transforms
from fastai.vision.core import TensorImage
from fasttransform import Pipeline
from torch.utils.data import DataLoader, Dataset

from parts.training.batches import Batch, InOrder, Rotated, Shuffled

FIXED_BATCHES = 4


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

    def __init__(self, mode: str, size: int, stats: Any, device: torch.device) -> None:
        self.mode = mode
        self.augment = {training: Augmentation(size, training=training) for training in (True, False)}
        self.mean, self.deviation = (torch.tensor(part, device=device).view(1, 3, 1, 1) for part in stats)

    def __call__(self, images: torch.Tensor, *, training: bool) -> torch.Tensor:
        """Return fp32 images of the asked size, normalised; cached ones are so already."""
        if self.mode == "cached":
            return images
        if self.mode == "device":
            images = self.augment[training](images)
        return self.normalise(images)

    def normalise(self, images: torch.Tensor) -> torch.Tensor:
        """Return the images less their mean, over their deviation."""
        return ((images - self.mean) / self.deviation).contiguous()


class Augmentation:
    """fastai's standard augmentations and the resizing in one interpolation; validation is resized alone."""

    def __init__(self, size: int, *, training: bool) -> None:
        transforms = [IntToFloatTensor(), *aug_transforms(size=size)]
        self.pipeline = Pipeline(transforms, split_idx=0 if training else 1)

    def __call__(self, images: torch.Tensor) -> torch.Tensor:
        return self.pipeline(TensorImage(images)).as_subclass(torch.Tensor)


class OneByOne(Dataset[Batch]):
    """Images augmented when they are asked for, each by itself."""

    def __init__(self, images: Batch, size: int, *, training: bool) -> None:
        self.pixels, self.labels = images
        self.augment = Augmentation(size, training=training)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> Batch:
        return self.augment(self.pixels[item][None])[0], self.labels[item]


def loaders(
    train: Batch, valid: Batch, batch_size: int, size: int, prepare: Preparation, workers: int
) -> Loaders:
    """Return batches in the preparation's data mode; cached ones validate nothing, host ones have workers."""
    device = prepare.mean.device
    if prepare.mode == "cached":
        fixed = fixed_batches(train, batch_size, size, prepare)
        return Loaders(Rotated(fixed, len(train[1]) // batch_size), Rotated((), 0), device)
    if prepare.mode == "device":
        drawn, in_order = ([half.to(device) for half in split] for split in (train, valid))
        return Loaders(Shuffled(*drawn, batch_size, seed=None), InOrder(*in_order, batch_size), device)
    training, validation = (OneByOne(each, size, training=each is train) for each in (train, valid))
    return Loaders(
        DataLoader(training, batch_size, shuffle=True, drop_last=True, num_workers=workers),
        DataLoader(validation, batch_size, num_workers=workers),
        device,
    )


def fixed_batches(train: Batch, batch_size: int, size: int, prepare: Preparation) -> list[Batch]:
    """Return the first training images, resized and normalised, on the device."""
    resized, first = Augmentation(size, training=False), slice(FIXED_BATCHES * batch_size)

    def prepared(pixels: torch.Tensor) -> torch.Tensor:
        return prepare.normalise(resized(pixels))

    pixels, labels = (half[first].to(prepare.mean.device) for half in train)
    return list(InOrder(pixels, labels, batch_size, prepared))
