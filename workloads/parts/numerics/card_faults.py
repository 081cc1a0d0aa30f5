"""What a card computes or keeps otherwise than it should: replayed computations, and a pattern in its memory.

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

from parts.device import free_bytes, shares_host_memory
from parts.numerics import precision
from parts.timing.operations import multiplication

SEED = 48
SECONDS = {"cpu": 0.5, "cuda": 0.4}
MOST, FEWEST = 200, 3
"""Replays of each computation."""
SIDES = {"cpu": 256, "cuda": 2048}
IMAGES = {"cpu": 4, "cuda": 64}
PIXELS, CHANNELS, CLASSES, RATE = 64, 128, 1000, 0.1
BOUND_EPS = {torch.float32: 64.0, torch.float16: 8.0, torch.bfloat16: 8.0}
"""Rounding steps of its outputs, of the largest value: so far another order of summing may move them."""
MEMORY_SHARE = 0.9
SMALL_BYTES, SMALL_SHARE = 256 * 2**20, 0.1
"""How much of a processor's memory is tested: at most so many bytes, and this share of what is free."""
BLOCK_BYTES, SMALL_BLOCK_BYTES = 256 * 2**20, 16 * 2**20
PATTERN_SECONDS = 10.0
"""After these no further pass begins; the tested memory is what was written in half of them."""
FACTOR = -7046029254386353131
"""Odd, so that no two addresses have one word; of 2^64 over the golden ratio."""


def replay_product(
    arithmetic: str, dtype: torch.dtype, device: torch.device, *, small: bool
) -> dict[str, Any]:
    """Replay one product of random normals in an arithmetic whose switches are set."""
    generator, side = torch.Generator().manual_seed(SEED), SIDES["cpu" if small else device.type]
    left, right = (torch.randn(side, side, generator=generator).to(device).to(dtype) for _ in range(2))
    multiply = multiplication(device, dtype)
    return _replay("product", arithmetic, lambda: multiply(left, right).clone().flatten(), device)


def replay_training_step(arithmetic: str, label: str, device: torch.device, *, small: bool) -> dict[str, Any]:
    """Replay a step of a network of convolutions, attention and linear layers: loss, gradients and new
    weights."""
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

    return _replay("training-step", arithmetic, step, device, precision.PRECISIONS[label].outputs)


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
def _replay(
    computation: str,
    arithmetic: str,
    compute: Callable[[], torch.Tensor],
    device: torch.device,
    rounded_to: torch.dtype | None = None,
) -> dict[str, Any]:
    """Replay for about so many seconds, all held against the first on the device; nothing waits for them."""
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


@torch.no_grad()
def pattern_kept(device: torch.device, *, small: bool) -> dict[str, Any]:
    """Return how many words came back otherwise than they were written, in two passes, one turned."""
    began, words = time.perf_counter(), (SMALL_BLOCK_BYTES if small else BLOCK_BYTES) // 8
    if not small:
        torch.cuda.empty_cache()
    free = free_bytes(torch.device("cpu") if small else device)
    wanted = (SMALL_SHARE if small or shares_host_memory(device) else MEMORY_SHARE) * free
    wanted = min(SMALL_BYTES, wanted) if small else wanted
    blocks = _blocks(device, words, max(1, int(wanted // (8 * words)) - 2))
    expected = torch.empty(words, dtype=torch.int64, device=device)
    wrong = torch.zeros((), dtype=torch.int64, device=device)
    passes = 0
    for turned in (False, True):
        if passes and time.perf_counter() - began > PATTERN_SECONDS / 2:
            break
        for number, block in enumerate(blocks):
            _pattern(block, number, turned)
            if not passes and number % 8 == 7 and device.type == "cuda":
                torch.cuda.synchronize(device)
                if time.perf_counter() - began > PATTERN_SECONDS / 2:
                    del blocks[number + 1 :]
                    break
        for number, block in enumerate(blocks):
            _pattern(expected, number, turned)
            wrong += (block != expected).sum()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        passes += 1
    found = {"tested_bytes": 8 * words * len(blocks), "passes": passes, "wrong_words": int(wrong)}
    del blocks, block, expected
    if device.type == "cuda":
        torch.cuda.empty_cache()
    return found


def _pattern(into: torch.Tensor, number: int, turned: bool) -> None:
    first = number * len(into)
    torch.arange(first, first + len(into), out=into)
    into.mul_(FACTOR)
    if turned:
        into.bitwise_not_()


def _blocks(device: torch.device, words: int, most: int) -> list[torch.Tensor]:
    """Return as many blocks as are wanted, or as there is memory for."""
    blocks: list[torch.Tensor] = []
    try:
        while len(blocks) < most:
            blocks.append(torch.empty(words, dtype=torch.int64, device=device))
    except torch.OutOfMemoryError:
        # What compares needs room too.
        del blocks[-4:]
    return blocks
