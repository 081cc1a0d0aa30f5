"""airbench94's recipe for CIFAR-10, written anew; validation has one view of an image, where it had six.

Its numbers: airbench94_muon.py of https://github.com/KellerJordan/cifar10-airbench at
f1c599c4af24aca803e3e65a6a7e52a502e09d0e (MIT), whose loss is a batch's sum; here it is the mean."""

from typing import Any

import torch
from torch import nn, optim
from torch.nn.functional import cross_entropy, pad, unfold
from torch.optim.lr_scheduler import LambdaLR
from torchvision.transforms import Compose, ConvertImageDtype, Normalize

from parts.training.batches import InOrder, Shuffled, image_tensors

TITLE = "airbench94's recipe on CIFAR-10"
ABOUT = "A small network: filters by Muon, the rest by SGD, at rates that fall with each step."
EPOCHS, SAMPLE, METRIC, SCHEDULE = 8, "image", "accuracy", "step"
COLOURS = Normalize((0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616))
normal = Compose([ConvertImageDtype(torch.float32), COLOURS])


class Muon(optim.Optimizer):
    @torch.no_grad()
    def step(self) -> None:
        for filters in self.param_groups[0]["params"]:
            sums = self.state[filters].setdefault("sums", torch.zeros_like(filters))
            sums.mul_(0.6).add_(filters.grad)
            x = filters.grad.add(sums, alpha=0.6).flatten(1)
            x = x.bfloat16() / (x.norm() + 1e-7)
            for _ in range(3):
                square = x @ x.T
                x = 3.4445 * x + (2.0315 * square @ square - 4.7750 * square) @ x
            filters.mul_(len(filters) ** 0.5 / filters.norm())
            filters.sub_(x.view_as(filters), alpha=self.param_groups[0]["lr"])


class Alternating(Shuffled):
    def __iter__(self) -> Any:
        self.inputs = self.inputs.flip(-1)
        return super().__iter__()


def shifted(pixels: torch.Tensor) -> torch.Tensor:
    places = pad(normal(pixels), (2, 2, 2, 2), "reflect").unfold(2, 32, 1).unfold(3, 32, 1)
    return places[torch.arange(len(pixels)), :, *torch.randint(5, (2, len(pixels)), device=pixels.device)]


def data(setting: Any) -> tuple[Shuffled, InOrder]:
    (pixels, labels), valid = image_tensors(setting.dataset("cifar-10"), setting.home)
    flipped = torch.rand(len(pixels), 1, 1, 1, device=pixels.device) < 0.5
    pixels = torch.where(flipped, pixels.flip(-1), pixels)
    own = {"seed": setting.seed, "place": setting.place, "prepare": shifted}
    return Alternating(pixels, labels, setting.samples, **own), InOrder(*valid, 2000, normal)


def model(setting: Any) -> nn.Module:
    (pixels, _), _ = image_tensors(setting.dataset("cifar-10"), torch.device("cpu"))
    patches = unfold(normal(pixels[:5000]), 2).transpose(1, 2).flatten(0, 1)
    values, vectors = torch.linalg.eigh(patches.T @ patches / len(patches))
    whitening = (vectors / (values + 5e-4).sqrt()).T.view(12, 3, 2, 2)
    layers, head = [nn.Conv2d(3, 24, 2), nn.GELU()], nn.Linear(256, 10, bias=False)
    layers[0].weight = nn.Parameter(torch.cat((whitening, -whitening)), requires_grad=False)
    head.weight.data /= head.weight.data.std()
    for inputs, outputs in ((24, 64), (64, 256), (256, 256)):
        for channels, pool in ((inputs, nn.MaxPool2d(2)), (outputs, nn.Identity())):
            filters = nn.Conv2d(channels, outputs, 3, padding=1, bias=False)
            nn.init.dirac_(filters.weight.data[:channels])
            layers += [filters, pool, nn.BatchNorm2d(outputs, 1e-12, 0.4), nn.GELU()]
            layers[-2].weight.requires_grad = False
    return nn.Sequential(*layers, nn.MaxPool2d(3), nn.Flatten(), head)


def loss(output: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return cross_entropy(output / 256, labels, label_smoothing=0.2)


def optimiser(model: nn.Module, setting: Any) -> list[optim.Optimizer]:
    weights = [weight for weight in model.parameters() if weight.requires_grad]
    biases, heads, filters = ([each for each in weights if each.dim() == dims] for dims in (1, 2, 4))
    rates = ((biases[:1], 0.053), (biases[1:], 0.053), (heads, 0.67))
    groups = [{"params": own, "lr": lr * setting.samples, "weight_decay": 2e-6 / lr} for own, lr in rates]
    return [optim.SGD(groups, momentum=0.85, nesterov=True), Muon(filters, {"lr": 0.24})]


def schedule(optimisers: list[optim.Optimizer], setting: Any) -> list[LambdaLR]:
    steps = 50_000 // (setting.samples * setting.place.count)
    falls = [lambda step, end=epochs * steps: max(0.0, 1 - step / end) for epochs in (3, 8, 8)]
    return [LambdaLR(optimisers[0], falls), LambdaLR(optimisers[1], falls[-1])]
