"""Study 003's four convolutions on CIFAR-10, in PyTorch: seconds of ten epochs, and the accuracy after.

Protocol `published/1` is the notebook of PyTorch 0.3.1 (June 2018, a P100): 3,441,592 parameters, SGD at 0.01
with momentum 0.9, batch 64, pixels divided by 255 and no augmentation, ten epochs in an order that is drawn
anew, whole batches alone, cudnn.benchmark, PyTorch's own initial weights. The clock starts before the first
step, so the choice of algorithms is in it, and building the model is not.

Not the study's: the test images are seen after each epoch, outside the clock, where it saw them once at the
end. Its loop wrote all images down in their new order before an epoch; here each batch is gathered by itself.

Data mode `host` keeps the images in the host's memory, as published; `device` on the device.
"""

from parts.trial import Failed, Trial, main  # isort: skip  (its clock starts with this line)

from typing import Any

import torch
from torch import nn

from parts import datasets
from parts.training.batches import Batch, InOrder, Shuffled
from parts.training.fit import Loop, Quality, accuracy, fit
from parts.training.setting import Setting, over_processes

EPOCHS = 10
PARAMETERS = 3_441_592
RATE, MOMENTUM = 0.01, 0.9
OPTIONS: dict[str, Any] = {"framework": "pytorch"}


def network() -> nn.Sequential:
    """Images as (items, 3, 32, 32) to the scores of ten classes; raises Failed for another size than that."""
    model = nn.Sequential(
        nn.Conv2d(3, 50, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(50, 50, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Conv2d(50, 100, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(100, 100, 3, padding=1),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Dropout(0.25),
        nn.Flatten(),
        nn.Linear(100 * 8 * 8, 512),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(512, 10),
    )
    trained = sum(weight.numel() for weight in model.parameters())
    if trained != PARAMETERS:
        raise Failed("error", f"the network has {trained} parameters where the protocol has {PARAMETERS}")
    return model


def run(trial: Trial) -> dict[str, Any]:
    """One trial of the protocol, as far as its limit lets it go."""
    trial.choose("protocol", trial.asked["protocol"], ("published/1",))
    trial.choose("model", trial.variant["model"], ("cnn",))
    trial.choose("data mode", trial.variant["data_mode"], ("host", "device"))
    return over_processes(trial, train, OPTIONS)


def train(setting: Setting) -> dict[str, Any]:
    """The training of the study and what was measured of it."""
    trial = setting.trial
    trial.choose("framework", setting.options["framework"], ("pytorch",))
    torch.backends.cudnn.benchmark = True
    trial.stage("data")
    with trial.phase("data"):
        images = datasets.cifar_10(trial.data_folder, trial.asked["data"])
        batches = Shuffled(*tensors(images.train, setting.home), setting.batch_size, seed=setting.seed)
        pixels, labels = tensors(images.test, setting.home)
        whole = len(labels) // setting.batch_size * setting.batch_size
        valid = InOrder(pixels[:whole], labels[:whole], setting.batch_size)
    return fit(
        setting,
        network(),
        batches,
        valid,
        nn.functional.cross_entropy,
        lambda model: torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM),
        Loop(EPOCHS, "image", warmed=False),
        quality=Quality("accuracy", accuracy),
        data={
            "name": images.name,
            "sha256": images.sha256,
            "train_items": len(images.train.labels),
            "valid_items": len(images.test.labels),
        },
        structure={"classes": images.classes},
    )


def tensors(images: datasets.Images, home: torch.device) -> Batch:
    """Images in [0, 1] and their labels, where they lie before a step."""
    pixels = torch.frombuffer(bytearray(images.pixels), dtype=torch.uint8).view(-1, 3, 32, 32)
    return pixels.to(home).float().div_(255), torch.tensor(images.labels, device=home)


if __name__ == "__main__":
    main(run, __file__)
