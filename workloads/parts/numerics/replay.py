"""The same computation again and again in one process: whether it gives the same bits, and which they are.

Inputs are drawn on the host from one seed, so that another process, and another card of the model, can be
held against the hash. A computation runs on one stream, with cuDNN's deterministic kernels and no atomic sum:
CUDA and a processor's libraries promise equal bits for it; ROCm's promise none, and there the bound decides.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from parts.numerics import precision
from parts.timing.operations import multiplication
from parts.trial import Failed

SEED = 48
SECONDS = {"cpu": 0.5, "cuda": 0.4}
MOST, FEWEST = 200, 3
"""Replays of each computation."""
SIDES = {"cpu": 256, "cuda": 2048}
IMAGES = {"cpu": 4, "cuda": 64}
PIXELS, CHANNELS, CLASSES, RATE = 64, 128, 1000, 0.1
BOUND_EPS = {torch.float32: 64.0, torch.float16: 8.0, torch.bfloat16: 8.0}
"""Rounding steps of its outputs, of the largest value: so far another order of summing may move them."""


def of_product(arithmetic: str, dtype: torch.dtype, device: torch.device, *, small: bool) -> dict[str, Any]:
    """One product of random normals in an arithmetic whose switches are set."""
    generator, side = torch.Generator().manual_seed(SEED), SIDES["cpu" if small else device.type]
    left, right = (torch.randn(side, side, generator=generator).to(device).to(dtype) for _ in range(2))
    multiply = multiplication(device, dtype)
    return _replayed("product", arithmetic, lambda: multiply(left, right).clone().flatten(), device)


def of_training_step(arithmetic: str, label: str, device: torch.device, *, small: bool) -> dict[str, Any]:
    """A step of a network of convolutions, attention and linear layers: loss, gradients and new weights."""
    with torch.random.fork_rng([]):
        torch.manual_seed(SEED)
        model = _Network()
        images = torch.randn(IMAGES["cpu" if small else device.type], 3, PIXELS, PIXELS)
        labels = torch.randint(CLASSES, (len(images),))
    model, images, labels = model.to(device), images.to(device), labels.to(device)
    weights = list(model.parameters())

    def step() -> torch.Tensor:
        with torch.enable_grad():
            with precision.autocast(label, device):
                loss = nn.functional.cross_entropy(model(images).float(), labels)
            gradients = torch.autograd.grad(loss, weights)
        updated = [weight - RATE * gradient for weight, gradient in zip(weights, gradients, strict=True)]
        return torch.cat([part.detach().flatten() for part in (loss, *gradients, *updated)])

    return _replayed("training-step", arithmetic, step, device, precision.PRECISIONS[label].outputs)


def eight_bits(device: torch.device) -> torch.dtype:
    """The 8-bit type that the device multiplies; raises Failed where card or torch has none."""
    reason = ""
    for dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz):
        small = torch.ones(32, 32, device=device).to(dtype)
        try:
            multiplication(device, dtype)(small, small).sum().item()
        except (RuntimeError, AttributeError, NotImplementedError, ValueError) as error:
            reason = reason or str(error).partition("\n")[0]
        else:
            return dtype
    raise Failed("unsupported", f"no scaled product in 8 bits here ({reason})")


class _Network(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, CHANNELS // 2, 3, stride=2, padding=1)
        self.second = nn.Conv2d(CHANNELS // 2, CHANNELS, 3, stride=2, padding=1)
        self.three, self.last = nn.Linear(CHANNELS, 3 * CHANNELS), nn.Linear(CHANNELS, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = torch.relu(self.second(torch.relu(self.first(images)))).flatten(2).transpose(1, 2)
        query, key, value = self.three(features).chunk(3, dim=-1)
        attention = torch.softmax(query @ key.transpose(1, 2) * CHANNELS**-0.5, dim=-1)
        output: torch.Tensor = self.last((features + attention @ value).mean(dim=1))
        return output


@torch.no_grad()
def _replayed(
    computation: str,
    arithmetic: str,
    compute: Callable[[], torch.Tensor],
    device: torch.device,
    rounded_to: torch.dtype | None = None,
) -> dict[str, Any]:
    """Replays for about so many seconds, all held against the first on the device; nothing waits for them."""
    cudnn = torch.backends.cudnn
    before, cudnn.deterministic = cudnn.deterministic, True
    try:
        first = compute()
        largest = first.abs().max().float().item()
        differing = torch.zeros((), dtype=torch.int64, device=device)
        furthest = torch.zeros((), device=device)
        began, replays, most = time.perf_counter(), 0, MOST
        while replays < most:
            again = compute()
            differing += (_bits(again) != _bits(first)).any()
            furthest = torch.maximum(furthest, (again - first).abs().max().float())
            replays += 1
            if replays in (1, FEWEST):
                # The first one loads kernels; the next ones say how many there is time for.
                differing.item()
                each, began = (time.perf_counter() - began) / (FEWEST - 1), time.perf_counter()
                most = min(MOST, max(FEWEST, round(SECONDS[device.type] / each)))
        outputs = rounded_to or first.dtype
        bits = hashlib.sha256(_bits(first).cpu().numpy().tobytes()).hexdigest()
        return {
            "computation": computation,
            "arithmetic": arithmetic,
            "replays": replays,
            "differing": int(differing),
            "largest_relative_difference": furthest.item() / largest,
            "bound": BOUND_EPS[outputs] * torch.finfo(outputs).eps,
            "bits_promised": torch.version.hip is None,
            "sha256": bits,
        }
    finally:
        cudnn.deterministic = before


def _bits(values: torch.Tensor) -> torch.Tensor:
    return values.view(torch.int16 if values.dtype.itemsize == 2 else torch.int32)
