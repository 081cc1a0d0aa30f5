"""What torch's profiler tells of a few more steps after the window: their kernels, and the peak of their
memory.

A pair of events around a step takes the idle gaps between its kernels for work, so the profiler times the
kernels: the rest of a step a GPU waits for the host. Their times are merged, since streams work side by side.
Copies from and to the host are the link's work and not counted.
"""

import gc
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

STEPS = 5
SECONDS = 5.0
"""After these no further step begins."""
WORK = ("kernel", "gpu_memset", "gpu_memcpy")
LINK_WORDS = ("HtoD", "DtoH", "HostToDevice", "DeviceToHost")
MEMORY = "[memory]"


def kernel_time(step: Callable[[], object], device: torch.device) -> dict[str, Any] | None:
    """Return the kernels' time in a few more steps; None on a CPU, and where it cannot be had."""
    if device.type != "cuda":
        return None
    try:
        torch.cuda.synchronize(device)
        with profile(activities=[ProfilerActivity.CUDA]) as watched:
            began, steps = time.perf_counter(), 0
            while steps < STEPS and time.perf_counter() - began <= SECONDS:
                step()
                steps += 1
            torch.cuda.synchronize(device)
        seconds = busy_seconds(watched.profiler.kineto_results.events())
        return {"steps": steps, "busy_seconds": seconds} if seconds else None
    except Exception:
        # The trial is measured by now: what a profiler cannot do costs it nothing but this figure.
        traceback.print_exc()
        return None


def busy_seconds(events: Iterable[Any]) -> float:
    """Return seconds in which at least one kernel, or a copy within the device, was at work."""
    spans = sorted(
        (event.start_ns(), event.start_ns() + event.duration_ns()) for event in events if _works(event)
    )
    total = until = 0
    for begin, end in spans:
        total += max(0, end - max(begin, until))
        until = max(until, end)
    return total * 1e-9


def _works(event: Any) -> bool:
    if event.device_type() == torch.autograd.DeviceType.CPU or event.is_user_annotation():
        return False
    # torch before 2.13 does not say what an activity is; its device's events are all work but annotations.
    kind = getattr(event, "activity_type", lambda: WORK[0])()
    return kind in WORK and not any(word in event.name() for word in LINK_WORDS)


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
        # As in `kernel_time`.
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
