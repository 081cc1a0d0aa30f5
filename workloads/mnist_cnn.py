"""A small convolutional network on MNIST: what Tensor Cores give where the loader sets the pace.

Protocol `published/1` is tensorcore 2022 (a Tesla T4, June), with its traps: two convolutions and two linear
layers that end in log_softmax, under a cross-entropy that applies it again; Adadelta at 1e-3, the rate times
0.8 after every epoch, 20 epochs of the 60,000 training images and no evaluation; the loss is read on the host
at every step. The clock starts before the first epoch, so nothing is warmed up, and the arithmetic is probed
after the window.

Data mode `host` is the published loader: two workers, started again in each epoch, make a PIL image of each
item, a tensor of it, and normalise it; pageable memory, blocking copies. `device` has all images normalised
on the device and draws each batch there, which leaves the network alone on the clock.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from collections.abc import Iterator
from typing import Any

import numpy as np
import PIL.Image
import torch
import torchvision
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from parts.device import software
from parts.inputs import datasets
from parts.training.batches import Batch, InOrder, tensors
from parts.training.fit import Batches, Loop, fit
from parts.training.setting import Setting, run_in_processes

TITLE = "A small convolutional network on MNIST"
ABOUT = "Two convolutions and two linear layers learn MNIST's digits (tensorcore 2022)."
EPOCHS = 20
RATE = 1e-3
RATE_AFTER_EPOCH = 0.8
MEAN, DEVIATION = 0.1307, 0.3081
WORKERS = 2


class Net(nn.Module):
    """The study's network: 1,199,882 parameters."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(1, 32, 3),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Dropout(0.4),
            nn.Flatten(),
            nn.Linear(9216, 128),
            nn.ReLU(),
            nn.Dropout(0.25),
            nn.Linear(128, 10),
        )

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return log-probabilities as (items, 10)."""
        return nn.functional.log_softmax(self.features(images), dim=1)


class DigitsOneByOne(Dataset[tuple[torch.Tensor, int]]):
    """An item as torchvision's MNIST gives it: a PIL image made of the pixels, then the two transforms."""

    def __init__(self, images: datasets.Images) -> None:
        self.pixels = np.frombuffer(images.pixels, dtype=np.uint8).reshape(-1, 28, 28)
        self.labels = images.labels
        self.transform = transforms.Compose(
            [transforms.ToTensor(), transforms.Normalize((MEAN,), (DEVIATION,))]
        )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, item: int) -> tuple[torch.Tensor, int]:
        return self.transform(PIL.Image.fromarray(self.pixels[item])), self.labels[item]


class DigitsOnDevice(InOrder):
    """All images, normalised, on the device; batches in a new random order each time."""

    def __iter__(self) -> Iterator[Batch]:
        order = torch.randperm(len(self.targets), device=self.targets.device)
        for first in range(0, len(self.targets), self.batch_size):
            chosen = order[first : first + self.batch_size]
            yield self.inputs[chosen], self.targets[chosen]


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("cnn",))
    trial.choose("data mode", trial.variant["data_mode"], ("host", "device"))
    return run_in_processes(trial, train, {})


def train(setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    trial = setting.trial
    trial.stage("data")
    with trial.phase("data"):
        images = datasets.mnist(trial.data_folder, trial.asked["data"])
        batches = source(images, setting)
    measured = fit(
        setting,
        Net(),
        batches,
        None,
        nn.functional.cross_entropy,
        lambda model: torch.optim.Adadelta(model.parameters(), lr=RATE),
        Loop(EPOCHS, "image", warmed=False, waits=True),
        schedule=lambda given: [torch.optim.lr_scheduler.StepLR(given, 1, gamma=RATE_AFTER_EPOCH)],
        data=datasets.facts(images, len(images.train.labels), len(images.test.labels)),
        structure={"classes": 10},
    )
    return dict(measured, versions=software(torchvision, np, PIL))


def source(images: datasets.ImageSet, setting: Setting) -> Batches:
    """Return an epoch's batches each time it is gone through, in the data mode asked; the last one is the
    rest."""
    if setting.trial.variant["data_mode"] == "host":
        return DataLoader(DigitsOneByOne(images.train), setting.batch_size, shuffle=True, num_workers=WORKERS)
    pixels, labels = tensors(images.train, images.shape, setting.device)
    return DigitsOnDevice((pixels.float() / 255 - MEAN) / DEVIATION, labels, setting.batch_size)


if __name__ == "__main__":
    main(run)
