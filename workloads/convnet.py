"""Image classifiers trained on synthetic images: images per second on one device and on several.

Protocol `synthetic/1` follows SURF 2021 (PyTorch 1.8, MI50 and RTX 2080 Ti, 2021), whose code, batch,
resolution and optimiser are lost: what follows is declared here and not the study's. Random normal images in
several batches that come round, never one constant batch, with random labels; cross-entropy; SGD at 0.01 with
momentum 0.9 and weight decay 1e-4; random weights; images as large as the model was made for, unless the
variant says otherwise; 100 epochs of 100 steps; nothing is validated.

Several devices, by the option `parallel`: `dp` is DataParallel in one process, as published; `ddp` is
DistributedDataParallel, one rank a device; `each` runs one independent copy a device at the same time. The
batch is per device. An image of the global batch depends on the seed and its place alone, so that any number
of ranks trains on the same images.

Profile `tuned` has channels_last, cudnn.benchmark, a fused optimiser and torch.compile (the option `compile`
leaves the last out, `cudnn_benchmark` asks for the second alone); in the window nothing is compiled again.
"""

from parts.trial import Failed, TrialProcess, main  # isort: skip  (its clock starts with this line)

from typing import Any

import timm
import torch
import torchvision
from torch import nn

from parts import launcher
from parts.device import software
from parts.training.batches import Batch, Rotated
from parts.training.fit import Loop, fit
from parts.training.setting import Setting, run_in_processes

STEPS_PER_EPOCH, EPOCHS = 100, 100
TITLE = "Image classifiers on synthetic images, on one device and on several"
ABOUT = (
    "Classifiers train on random images, so that no loader slows them down (SURF "
    "2021; its batch, resolution and optimiser are lost: protocol reconstructed)."
)
BATCHES = 4
RATE, MOMENTUM, WEIGHT_DECAY = 0.01, 0.9, 1e-4
WAYS = ("dp", "ddp", "each")
OPTIONS: dict[str, Any] = {
    "parallel": "ddp",
    "classes": 1000,
    "compile": True,
    "cudnn_benchmark": False,
}

AUXILIARY_WEIGHT = 0.4
"""The weight of an auxiliary classifier's loss, as torchvision trains InceptionV3."""
TIMM = "timm/"


def run(trial: TrialProcess) -> dict[str, Any]:
    """Run one trial of the protocol, by itself or as the ranks that it is made of."""
    trial.choose("protocol", trial.asked["protocol"], ("synthetic/1",))
    trial.choose("data mode", trial.variant["data_mode"], ("cached",))
    return run_in_processes(trial, train, OPTIONS, ways=WAYS)


def train(setting: Setting) -> dict[str, Any]:
    """Train in this process and return what it measured."""
    trial, options = setting.trial, setting.options
    torch.backends.cudnn.benchmark |= options["cudnn_benchmark"]
    options["compile"] = setting.tuned and options["compile"]
    channels_last = setting.tuned or trial.variant["layout"] == "channels_last"
    layout = torch.channels_last if channels_last else torch.contiguous_format
    trial.stage("setup")
    with trial.phase("model"):
        model = classifier(trial.variant["model"], options["classes"])
        made_for = image_size(trial.variant["model"], model)
        size = trial.variant["image_size"] or made_for
    trial.stage("data")
    with trial.phase("data"):
        batches = synthetic_batches(setting, size, layout)
    measured = fit(
        setting,
        model.to(memory_format=layout),
        Rotated(batches, STEPS_PER_EPOCH),
        None,
        summed_loss,
        lambda model: torch.optim.SGD(
            model.parameters(),
            lr=RATE,
            momentum=MOMENTUM,
            weight_decay=WEIGHT_DECAY,
            fused=setting.tuned or None,
        ),
        Loop(EPOCHS, "image", alike=True),
        data={"name": "random"},
        structure={"classes": options["classes"], "image_size": size},
    )
    smaller = f"smaller images than the model's own: {size} of {made_for} px"
    notes = [smaller] if size < made_for else []
    return dict(measured, notes=notes, versions=software(torchvision, timm))


def synthetic_batches(setting: Setting, size: int, layout: torch.memory_format) -> list[Batch]:
    """Return this process's part of each global batch, normal images and uniform labels, by seed."""
    classes, first = setting.options["classes"], setting.place.rank * setting.batch_size
    batches = []
    for number in range(BATCHES):
        places = range(first, first + setting.samples)
        items = [
            picture(setting.trial.seed * 1_000_003 + number * 100_003 + at, size, classes) for at in places
        ]
        images = torch.stack([image for image, _ in items]).contiguous(memory_format=layout)
        labels = torch.tensor([label for _, label in items])
        batches.append((images.to(setting.device), labels.to(setting.device)))
    return batches


def picture(seed: int, size: int, classes: int) -> tuple[torch.Tensor, int]:
    """Return an image as (3, size, size), and its label."""
    generator = torch.Generator().manual_seed(seed)
    image = torch.randn((3, size, size), generator=generator)
    return image, int(torch.randint(classes, (), generator=generator))


def classifier(name: str, classes: int) -> nn.Module:
    """Return a torchvision classifier, or timm's where torchvision has none; `timm/NAME` is timm's in any
    case."""
    own = name.removeprefix(TIMM)
    if _in_torchvision(name):
        # Asked for by name, since these two warn otherwise; it is their default.
        more = {"init_weights": True} if name in ("inception_v3", "googlenet") else {}
        return torchvision.models.get_model(name, weights=None, num_classes=classes, **more)
    if timm.is_model(own):
        return timm.create_model(own, num_classes=classes)
    raise Failed("unsupported", f"neither torchvision nor timm has a classifier '{name}'")


def image_size(name: str, model: nn.Module) -> int:
    """Return pixels of the images that the model was made for."""
    if _in_torchvision(name):
        return torchvision.models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
    return model.default_cfg["input_size"][-1]  # type: ignore[index, union-attr]


def summed_loss(output: torch.Tensor | tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """Return cross-entropy, of auxiliary classifiers too where there are any."""
    if isinstance(output, torch.Tensor):
        return nn.functional.cross_entropy(output, labels)
    main, *others = (nn.functional.cross_entropy(scores, labels) for scores in output)
    return main + AUXILIARY_WEIGHT * sum(others)


def _in_torchvision(name: str) -> bool:
    return name in torchvision.models.list_models(module=torchvision.models)


if __name__ == "__main__":
    launcher.settle()
    main(run)
