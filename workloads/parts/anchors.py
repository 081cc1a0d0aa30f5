"""Two cheap operations of a GPU right after a trial: what the card itself did then."""

from __future__ import annotations

import contextlib

import torch

from parts.numerics.precision import PRECISIONS
from parts.timing.operations import TimedOperation, copies, product, seconds_of

SIDES = (512, 1024, 2048, 4096, 8192)
LONGEST_SECONDS = 0.005
"""The largest product that takes no longer is the one."""
COPY_BYTES = 256 * 2**20
FALSE_COPY_BYTES = 2**20
"""Of a device that is simulated."""
SECONDS = 0.4
"""Of each operation, after a quarter as long of warm-up."""


@torch.no_grad()
def measured(label: str, simulated: bool = False) -> dict[str, float]:
    """A product in a precision's own arithmetic and a copy on the current card, named as ceilings are.

    Its switches are those that the trial left.
    """
    device, numerics = torch.device("cuda", torch.cuda.current_device()), PRECISIONS[label]
    torch.cuda.empty_cache()
    tflops = _rate(_largest(device, numerics.outputs), device) / 1e12
    copied = _rate(copies(device, FALSE_COPY_BYTES if simulated else COPY_BYTES), device) / 1e9
    return {f"gemm_{numerics.arithmetic[0]}_tflops": tflops, "copy_gb_per_second": copied}


def of_program(device: torch.device) -> dict[str, float]:
    """In fp16, after a program that says no precision; what goes wrong costs no measurement."""
    with contextlib.suppress(Exception):
        return measured("pure-fp16") if device.type == "cuda" else {}
    return {}


def _largest(device: torch.device, dtype: torch.dtype) -> TimedOperation:
    chosen = product((SIDES[0],) * 3, device, dtype)
    for side in SIDES[1:]:
        seconds_of(chosen, 1, device)
        if seconds_of(chosen, 3, device) * (side * side * side * 2 / chosen.amount) > LONGEST_SECONDS:
            break
        chosen = product((side, side, side), device, dtype)
    return chosen


def _rate(operation: TimedOperation, device: torch.device) -> float:
    once = seconds_of(operation, 2, device)
    seconds_of(operation, max(1, round(SECONDS / 4 / once)), device)
    return operation.amount / seconds_of(operation, max(1, round(SECONDS / once)), device)
