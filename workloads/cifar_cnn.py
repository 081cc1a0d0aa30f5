"""Karmanov 2018's four convolutions on CIFAR-10, in PyTorch: seconds of ten epochs, and the accuracy after.

The network, its data and the protocol of every framework stand in `parts/small/`. Protocol `published/1` is
the notebook of PyTorch 0.3.1 (June 2018, a P100): SGD at 0.01 with momentum 0.9, batch 64, pixels divided by
255 and no augmentation, ten epochs in an order that is drawn anew, whole batches alone, cudnn.benchmark,
PyTorch's own initial weights. The clock starts before the first step, so the choice of algorithms is in it,
and building the model is not. `fair/1` begins with the weights that all frameworks begin with.

Not the study's: the test images are seen after each epoch, outside the clock, where it saw them once at the
end. Its loop wrote all images down in their new order before an epoch; here each batch is gathered by itself.

Data mode `host` keeps the images in the host's memory, as published; `device` on the device.
"""

from parts.trial import Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import torch
from torch import nn

from parts.small import in_torch
from parts.small.cnn import MOMENTUM, RATE, WORK

LAYERS = {"conv1": 0, "conv2": 2, "conv3": 6, "conv4": 8, "dense1": 13, "dense2": 16}
NAMES = {f"{name}/{part}": f"{place}.{part}" for name, place in LAYERS.items() for part in ("weight", "bias")}


def network(dropouts: tuple[float, float, float] = (0.25, 0.25, 0.5)) -> nn.Sequential:
    """Images as (items, 3, 32, 32) to the scores of ten classes."""
    first, second, last = dropouts
    return nn.Sequential(
        nn.Conv2d(3, 50, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(50, 50, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(first),
        nn.Conv2d(50, 100, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(100, 100, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(second),
        nn.Flatten(),
        nn.Linear(100 * 8 * 8, 512),
        nn.ReLU(),
        nn.Dropout(last),
        nn.Linear(512, 10),
    )


def optimiser(model: nn.Module) -> torch.optim.Optimizer:
    """The study's SGD."""
    return torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    return in_torch.run(trial, WORK, network, NAMES, optimiser, __file__, "channels first")


if __name__ == "__main__":
    main(run, __file__)
