"""How long a GPU's kernels are at work in a step: the rest of the step it waits for the host.

A pair of events around a step takes the idle gaps between its kernels for work, so torch's profiler times the
kernels of a few more steps after the window. Their times are merged, since streams work side by side. Copies
from and to the host are the link's work and not counted.
"""

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


class KernelWatch:
    """Watches a device's kernels from `start` to `stop`."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def start(self) -> None:
        """Watch from now on."""
        torch.cuda.synchronize(self.device)
        self._profile = profile(activities=[ProfilerActivity.CUDA])
        self._profile.start()
        self._began = time.perf_counter()

    def enough(self, steps: int) -> bool:
        """Return whether so many steps since the start will do."""
        return steps >= STEPS or time.perf_counter() - self._began > SECONDS

    def stop(self, steps: int) -> dict[str, Any] | None:
        """Return what the kernels of so many steps took; None where the profiler reported no kernel."""
        torch.cuda.synchronize(self.device)
        self._profile.stop()
        seconds = busy_seconds(self._profile.profiler.kineto_results.events())
        return {"steps": steps, "busy_seconds": seconds} if seconds else None


def kernel_time(step: Callable[[], object], device: torch.device) -> dict[str, Any] | None:
    """Return the kernels' time in a few more steps; None on a CPU, and where it cannot be had."""
    if device.type != "cuda":
        return None
    watch, steps = KernelWatch(device), 0
    try:
        watch.start()
        while not steps or not watch.enough(steps):
            step()
            steps += 1
        return watch.stop(steps)
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
