"""The protocol of Bhutani 2019 on CIFAR-100 in all versions of fastai; `workloads/cifar_fastai.py` states it.

Python 3.7 syntax, torch from 1.0 on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from parts.inputs.datasets import ImageSet, facts
from parts.trial import TrialProcess

EPOCHS = 30
VALID_SHARE = 0.2
SPLIT_SEED = 42
STATIC_LOSS_SCALE = 512.0
RATES = slice(3e-3)
"""fastai's way of saying: 3e-3 in the head, a tenth of it in the body."""
RATE_OF_RESNET18_FP32 = 1e-2
BODIES = {
    "resnet18": (512, "resnet18-f37072fd.pth"),
    "resnet34": (512, "resnet34-b627a593.pth"),
    "resnet50": (2048, "resnet50-0676ba61.pth"),
    "resnet101": (2048, "resnet101-63fe2227.pth"),
    "resnet152": (2048, "resnet152-394f9c45.pth"),
}
"""Features that the body puts out, and the file of torchvision's IMAGENET1K_V1 weights."""
OPTIONS: dict[str, Any] = {"workers": 4, "lead_in": False}


def pooled_split(items: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the items to train with, and of the random fifth to validate with."""
    order = np.random.RandomState(SPLIT_SEED).permutation(items)
    held_out = int(VALID_SHARE * items)
    return order[held_out:], order[:held_out]


def leads_in(trial: TrialProcess, epochs: int) -> bool:
    """Return whether the study gave this trial's model a rate of its own in fp32, and an epoch before the
    others."""
    published = trial.asked["protocol"] == "published/1"
    return published and trial.variant["model"] == "resnet18" and epochs > 1


def image_parts(
    trial: TrialProcess,
    images: ImageSet,
    items: tuple[int, int],
    weights_sha256: str | None,
    model: nn.Module,
) -> dict[str, Any]:
    """Return a measurement's parts about images, weights and model; `items` are trained and validated on."""
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    return {
        "data": {
            **facts(images, *items),
            "weights": "pretrained" if weights_sha256 else "random",
            "weights_sha256": weights_sha256,
        },
        "structure": {
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "classes": images.classes,
            "trainable_parameters": sum(weight.numel() for weight in trained),
        },
        "sample_unit": "image",
        "samples_per_step": trial.variant["batch_size"],
        "quality_name": "accuracy",
    }
