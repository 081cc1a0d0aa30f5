"""A small convolutional network on MNIST: what Tensor Cores give where the loader sets the pace.

Protocol `published/1` is study 001 (a Tesla T4, June 2022), with its traps: two convolutions and two linear
layers that end in log_softmax, under a cross-entropy that applies it again; Adadelta at 1e-3, the rate times
0.8 after every epoch, 20 epochs of the 60,000 training images and no evaluation; the loss is read on the host
at every step. The clock starts before the first epoch, so nothing is warmed up, and the arithmetic is probed
after the window.

Data mode `host` is the published loader: two workers, started anew in each epoch, make a PIL image of each
item, a tensor of it, and normalise it; pageable memory, blocking copies. `device` has all images normalised
on the device and draws each batch there, which leaves the network alone on the clock. `cached` has four
fixed batches.
"""

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from parts.vision import torchvision  # isort: skip

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import PIL.Image
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision import transforms

from parts import datasets, kernels, precision
from parts.clock import Clock
from parts.device import choose, facts, seed_everything, software
from parts.flops import of_step, value_bytes
from parts.update import LABELS, Update

EPOCHS = 20
RATE = 1e-3
RATE_AFTER_EPOCH = 0.8
MEAN, DEVIATION = 0.1307, 0.3081
CACHED_BATCHES = 4
OPTIONS: dict[str, Any] = {"workers": 2}

Batch = tuple[torch.Tensor, torch.Tensor]


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
        """Log-probabilities as (items, 10)."""
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


class DigitsOnDevice:
    """All images, normalised, on the device; batches in a new random order each time, or fixed ones."""

    def __init__(
        self, images: datasets.Images, batch_size: int, device: torch.device, fixed: int | None
    ) -> None:
        pixels = torch.frombuffer(bytearray(images.pixels), dtype=torch.uint8).view(-1, 1, 28, 28)
        self.images = ((pixels.to(device).float() / 255) - MEAN) / DEVIATION
        self.labels = torch.tensor(images.labels, device=device)
        self.batch_size, self.fixed = batch_size, fixed

    def __iter__(self) -> Iterator[Batch]:
        items, size = len(self.labels), self.batch_size
        if self.fixed:
            parts = [slice(number * size, (number + 1) * size) for number in range(self.fixed)]
            batches = [(self.images[part], self.labels[part]) for part in parts]
            yield from (batches[step % self.fixed] for step in range(-(-items // size)))
            return
        order = torch.randperm(items, device=self.labels.device)
        for first in range(0, items, size):
            chosen = order[first : first + size]
            yield self.images[chosen], self.labels[chosen]


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    variant, options = trial.variant, trial.options(OPTIONS)
    trial.choose("model", variant["model"], ("cnn",))
    label = trial.choose("precision", variant["precision"], LABELS)
    mode, batch_size, tuned = variant["data_mode"], variant["batch_size"], variant["profile"] == "tuned"
    with trial.phase("device"):
        device = choose(trial.asked["device"], variant["gpus"])
        precision.switch(label, device)
        torch.backends.cudnn.benchmark = tuned

    trial.stage("data")
    with trial.phase("data"):
        images = datasets.mnist(trial.data_folder, trial.asked["data"])
        seed_everything(trial.seed)
        batches = source(images.train, mode, batch_size, options["workers"], device, tuned)
        items = len(images.train.labels)

    trial.stage("setup")
    with trial.phase("model"):
        model = Net().to(device)
        update = Update(label, torch.optim.Adadelta(model.parameters(), lr=RATE), device)
        schedule = torch.optim.lr_scheduler.StepLR(update.optimiser, step_size=1, gamma=RATE_AFTER_EPOCH)

    def loss_of(pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        with precision.autocast(label, device):
            return nn.functional.cross_entropy(model(pixels), labels)

    def trained(pixels: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        pixels, labels = pixels.to(device), labels.to(device)
        update.optimiser.zero_grad()
        loss = loss_of(pixels, labels)
        update(loss)
        loss.item()
        return loss

    clock = Clock(trial, device, steps_per_epoch=-(-items // batch_size), epochs=EPOCHS)
    trial.stage("train")
    epochs: list[dict[str, Any]] = []
    while len(epochs) < clock.epochs and not clock.over():
        model.train()
        clock.start()
        for pixels, labels in batches:
            clock.ready(pixels)
            clock.step(trained(pixels, labels), len(labels))
            if clock.over():
                break
        epochs.append(clock.stop())
        update.read()
        schedule.step()
        trial.event("epoch", **epochs[-1])
    measured = clock.series()

    trial.stage("collect")
    shape = (batch_size, 1, 28, 28)
    again = torch.randn(shape, device=device), torch.zeros(batch_size, dtype=torch.int64, device=device)
    with precision.rehearsal(model, device) as output_types:
        loss_of(*again).backward()
    protocol = {"steps_per_epoch": clock.steps_per_epoch, "epochs": EPOCHS, "valid_batches": 0}
    return {
        "device": facts(trial.asked["device"], device),
        "versions": software(torchvision, np, PIL),
        "precision": dict(
            precision.facts(label, device),
            output_dtypes=output_types,
            parameter_dtypes=precision.parameter_types(model),
            **update.facts(),
        ),
        "data": {
            "name": images.name,
            "source": trial.asked["data"],
            "sha256": images.sha256,
            "train_items": items,
            "valid_items": len(images.test.labels),
            **clock.batches(),
        },
        "protocol": dict(protocol, **clock.ended(epochs, whole=True)),
        "sample_unit": "image",
        "samples_per_step": batch_size,
        "epochs": epochs,
        "flops": of_step(model, shape, lambda output: output.sum(), value_bytes(label)),
        "structure": {"parameters": sum(weight.numel() for weight in model.parameters()), "classes": 10},
        "kernels": kernels.kernel_time(lambda: trained(*again), device),
        **measured,
    }


def source(
    images: datasets.Images, mode: str, batch_size: int, workers: int, device: torch.device, tuned: bool
) -> Iterable[Batch]:
    """An epoch's batches each time it is gone through, in the data mode asked; the last one is the rest."""
    if mode != "host":
        return DigitsOnDevice(images, batch_size, device, CACHED_BATCHES if mode == "cached" else None)
    more: dict[str, Any] = {}
    if tuned:
        more.update(pin_memory=device.type == "cuda", persistent_workers=workers > 0)
    return DataLoader(DigitsOneByOne(images), batch_size, shuffle=True, num_workers=workers, **more)


if __name__ == "__main__":
    main(run, __file__)
