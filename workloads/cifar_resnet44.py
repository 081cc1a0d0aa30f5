"""A ResNet of 44 layers on CIFAR-10: what several devices gain in throughput, and in time to an accuracy.

Protocol `published/1` follows UniLu 2019 (a cluster of V100s, 2019), whose code, batch, rate and
augmentation are lost. The network is that of Keras' example, version 1: 662,826 trained parameters, with
biases in its convolutions, and shortcuts of one by one where the width doubles. What follows is that
example's too, and declared here: He's initial weights, Adam at 1e-3, L2 of 1e-4 on the convolutions (a weight
decay of 2e-4), pixels less their mean over the training images, shifts of up to a tenth with the edge
repeated, and flips. 40 epochs as the study ran; all test images after each. Batch norm has PyTorch's own
momentum.

The batch is per device. By the linear rule the rate is 1e-3 times the devices. The option `parallel` is
`ddp`, one rank a device, on CPUs over gloo, or `dp`, DataParallel in one process. Batch norm is not
synchronised, and what is validated has rank 0's statistics; `sync_batchnorm` says otherwise.

`virtual_ranks` simulates so many devices on one: a step's batch is that much larger, each part of it is
normalised by itself, and the rate grows as with real ones. Accuracy by epoch is then that of as many devices,
and the time is not. `train_images` takes the first ones alone, for a look on a processor.
"""

from parts.trial import TrialProcess, main  # isort: skip  (its clock starts with this line)

from typing import Any

import torch
from torch import nn

from parts import launcher
from parts.inputs import datasets
from parts.training.batches import InOrder, Shuffled, image_tensors
from parts.training.fit import Loop, fit
from parts.training.setting import SHARING, Setting, run_in_processes

TITLE = "ResNet-44 on CIFAR-10"
ABOUT = "UniLu 2019: accuracy against epochs and time on one to twelve devices."
EPOCHS = 40
BLOCKS_PER_STAGE = 7
RATE = 1e-3
WEIGHT_DECAY = 2e-4
LARGEST_SHIFT = 3
VALID_BATCH_SIZE = 500
OPTIONS: dict[str, Any] = {**SHARING, "train_images": 50_000}


class ResidualBlock(nn.Module):
    """Two convolutions of three by three with a shortcut around them."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        stride = width // before
        self.first = nn.Conv2d(before, width, 3, stride, padding=1)
        self.first_norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.second_norm = nn.BatchNorm2d(width)
        self.shortcut = nn.Conv2d(before, width, 1, stride) if stride > 1 else nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Return features of the block's width."""
        features = nn.functional.relu(self.first_norm(self.first(images)))
        features = self.second_norm(self.second(features))
        return nn.functional.relu(features + self.shortcut(images))


def resnet44() -> nn.Sequential:
    """Return the network of the protocol."""
    layers: list[nn.Module] = [nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
    width = 16
    for wider in (16, 32, 64):
        for _ in range(BLOCKS_PER_STAGE):
            layers.append(ResidualBlock(width, wider))
            width = wider
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10)]
    model = nn.Sequential(*layers)
    for layer in model.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)  # type: ignore[arg-type]
    return model


class Pixels:
    """Images as the network takes them: less the mean image; in training shifted and flipped too."""

    def __init__(self, images: torch.Tensor, device: torch.device) -> None:
        self.mean = (images.to(device).float().mean(0) / 255)[None]

    def centre(self, images: torch.Tensor) -> torch.Tensor:
        """Return fp32 images, centred."""
        return images.float() / 255 - self.mean

    def augment(self, images: torch.Tensor) -> torch.Tensor:
        """Return the same, each shifted by whole pixels with its edge repeated, every other one flipped."""
        centred = nn.functional.pad(self.centre(images), (LARGEST_SHIFT,) * 4, mode="replicate")
        count, size, device = len(images), images.shape[-1], images.device
        rows, columns = torch.randint(2 * LARGEST_SHIFT + 1, (2, count, 1), device=device)
        along = torch.arange(size, device=device)
        flipped = torch.rand(count, 1, device=device) < 0.5
        across = torch.where(flipped, size - 1 - along, along) + columns
        items = torch.arange(count, device=device)[:, None, None]
        shifted = centred[items, :, (rows + along)[:, :, None], across[:, None, :]]
        return shifted.permute(0, 3, 1, 2).contiguous()


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("resnet44",))
    trial.choose("data mode", trial.variant["data_mode"], ("device",))
    return run_in_processes(trial, train, OPTIONS, ways=("ddp", "dp"))


def train(setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    trial, items = setting.trial, setting.options["train_images"]
    trial.stage("data")
    with trial.phase("data"):
        images = datasets.cifar_10(trial.data_folder, trial.asked["data"])
        (pixels, labels), valid = image_tensors(images, setting.device)
        pixels, labels = pixels[:items], labels[:items]
        prepare = Pixels(pixels, setting.device)
        ways = {"seed": trial.seed, "place": setting.place, "prepare": prepare.augment}
        batches = Shuffled(pixels, labels, setting.samples, **ways)
    return fit(
        setting,
        resnet44(),
        batches,
        InOrder(*valid, VALID_BATCH_SIZE, prepare.centre),
        nn.functional.cross_entropy,
        lambda model: adam(model, RATE * setting.ranks),
        Loop(EPOCHS, "image"),
        quality_name="accuracy",
        data=datasets.facts(images, len(labels), len(valid[1])),
        structure={"classes": 10},
    )


def adam(model: nn.Module, rate: float) -> torch.optim.Adam:
    """Return Adam with L2 on the weights of convolutions alone."""
    decayed = [weight for weight in model.parameters() if weight.dim() == 4]
    rest = [weight for weight in model.parameters() if weight.dim() != 4]
    return torch.optim.Adam([{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": rest}], lr=rate)


if __name__ == "__main__":
    launcher.settle()
    main(run)
