"""Image classifiers by name, from torchvision or timm, with random weights."""

from parts.networks.vision import torchvision  # isort: skip  (before timm)

import timm
import torch
from torch import nn

from parts.trial import Failed

AUXILIARY_WEIGHT = 0.4
"""Of an auxiliary classifier's loss, as torchvision trains InceptionV3."""
TIMM = "timm/"


def classifier(name: str, classes: int) -> nn.Module:
    """A torchvision classifier, or timm's where torchvision has none; `timm/NAME` is timm's in any case."""
    own = name.removeprefix(TIMM)
    if _in_torchvision(name):
        # Asked for by name, since these two warn otherwise; it is their default.
        more = {"init_weights": True} if name in ("inception_v3", "googlenet") else {}
        return torchvision.models.get_model(name, weights=None, num_classes=classes, **more)
    if timm.is_model(own):
        return timm.create_model(own, num_classes=classes)
    raise Failed("unsupported", f"neither torchvision nor timm has a classifier '{name}'")


def image_size(name: str, model: nn.Module) -> int:
    """Pixels of the images that the model was made for."""
    if _in_torchvision(name):
        return torchvision.models.get_model_weights(name).DEFAULT.transforms().crop_size[0]
    return model.default_cfg["input_size"][-1]  # type: ignore[index, union-attr]


def loss_of(output: torch.Tensor | tuple[torch.Tensor, ...], labels: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, of auxiliary classifiers too where there are any."""
    if isinstance(output, torch.Tensor):
        return nn.functional.cross_entropy(output, labels)
    main, *others = (nn.functional.cross_entropy(scores, labels) for scores in output)
    return main + AUXILIARY_WEIGHT * sum(others)


def _in_torchvision(name: str) -> bool:
    return name in torchvision.models.list_models(module=torchvision.models)
