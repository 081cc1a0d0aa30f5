"""The most bytes that tensors hold on a CPU, whose allocator keeps no count: torch's profiler does."""

import traceback
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 2
"""In the first the gradients come to be; in the second they are there beside all else."""
MEMORY = "[memory]"


def peak_bytes(
    step: Callable[[], object], optimiser: torch.optim.Optimizer, data: Iterable[torch.Tensor]
) -> int | None:
    """The peak over a few more steps after the window, with data, weights and state.

    None where it cannot be had. What a library takes for itself past torch is not in it, as it is in no
    allocator's count.
    """
    optimiser.zero_grad(set_to_none=True)
    held = bytes_of([*data, *_weights(optimiser)])
    try:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as watched:
            for _ in range(STEPS):
                step()
        return held + most(watched.profiler.kineto_results.events())
    except Exception:
        # The trial is measured by now: what a profiler cannot do costs it nothing but this figure.
        traceback.print_exc()
        return None


def _weights(optimiser: torch.optim.Optimizer) -> list[torch.Tensor]:
    weights = [weight for group in optimiser.param_groups for weight in group["params"]]
    state = [value for values in optimiser.state.values() for value in values.values()]
    return [*weights, *(value for value in state if isinstance(value, torch.Tensor))]


def bytes_of(tensors: Iterable[torch.Tensor]) -> int:
    """What their storages take, each once."""
    storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in tensors}
    return sum(storages.values())


def most(events: Iterable[Any]) -> int:
    """The most that was allocated and not freed, from each allocation and its time."""
    changes = sorted((event.start_ns(), event.nbytes()) for event in events if event.name() == MEMORY)
    held = peak = 0
    for _, change in changes:
        held += change
        peak = max(peak, held)
    return peak
