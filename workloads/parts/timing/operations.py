"""Products and copies that a device is timed by, of random normals: on zeros a card spends less power."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle

import torch

from parts.timing.clock import stopwatch

PAIRS = 4
"""Operands in turn, so that none stays in a cache."""

ProductShape = tuple[int, int, int]


@dataclass(frozen=True)
class TimedOperation:
    """One operation, done again and again; `amount` is how much it is, in operations or bytes."""

    call: Callable[[], torch.Tensor]
    amount: float
    structure: dict[str, int]
    dtype: torch.dtype


def product(shape: ProductShape, device: torch.device, dtype: torch.dtype) -> TimedOperation:
    """x @ w.T as in a linear layer, of four pairs of random normals in turn."""
    m, n, k = shape
    pairs = [
        (torch.randn(m, k, device=device).to(dtype), torch.randn(n, k, device=device).to(dtype))
        for _ in range(PAIRS)
    ]
    result = torch.empty(m, n, device=device, dtype=dtype)
    in_turn = cycle(pairs)

    def call() -> torch.Tensor:
        left, right = next(in_turn)
        return torch.mm(left, right.t(), out=result)

    return TimedOperation(call, 2.0 * m * n * k, {"m": m, "n": n, "k": k}, dtype)


def copies(device: torch.device, size: int) -> TimedOperation:
    """Copies of `size` bytes within the device's memory; amount counts reading and writing."""
    sources = [torch.randn(size // 4, device=device) for _ in range(PAIRS)]
    target = torch.empty_like(sources[0])
    in_turn = cycle(sources)
    return TimedOperation(
        lambda: target.copy_(next(in_turn)), 2.0 * 4 * (size // 4), {"copy_bytes": size}, torch.float32
    )


def seconds_of(operation: TimedOperation, times: int, device: torch.device) -> float:
    """Seconds of one operation, the mean of `times`."""
    with stopwatch(device) as seconds:
        for _ in range(times):
            operation.call()
    return seconds[0] / times
