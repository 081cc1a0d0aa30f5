"""The most memory that a loop's tensors take at once."""

import gc
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

MEMORY = "[memory]"


def forget_peak(device: torch.device) -> None:
    """Collect garbage, empty the cache and forget the peak before the clock, as published."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(device)


def peak_bytes(
    step: Callable[[], object], optimiser: torch.optim.Optimizer, data: Iterable[torch.Tensor]
) -> int | None:
    """Return the peak over one more step after the window, with data, weights, their gradients and state.

    One step is enough, since what earlier steps left is still held. None where the peak cannot be had. What a
    library takes for itself past torch is not in it, as it is in no allocator's count.
    """
    held = bytes_of([*data, *_left_by_steps(optimiser)])
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            step()
        return held + most(watched.profiler.kineto_results.events())
    except Exception:
        # The trial is measured by now: what a profiler cannot do costs it nothing but this figure.
        traceback.print_exc()
        return None


def _left_by_steps(optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    gradients = [weight.grad for weight in weights if weight.grad is not None]
    state = [value for values in optimiser.state.values() for value in values.values()]
    return [*weights, *gradients, *(value for value in state if isinstance(value, torch.Tensor))]


def bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    """Return what their storages take, each once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())


def most(events: Iterable[Any]) -> int:
    """Return the most that was allocated and not freed, from each allocation and its time."""
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == MEMORY)
    held = peak = 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak
