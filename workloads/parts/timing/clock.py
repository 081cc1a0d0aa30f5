"""The clock for torch: on a GPU the ends of steps are marked by events; the host runs far ahead of it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from parts.timing import step_clock
from parts.timing.step_clock import StepClock
from parts.trial import TrialProcess


class DeviceSteps:
    """A GPU's step times, from end event to end event on the current stream; nothing waits for them.

    The host issues work far ahead of a device, so the moments at which it has issued a step say nothing of
    how long the step takes: a burst of short ones, then a wait that belongs to none. The device passes an
    event when all work before it is done. From one end to the next, idle gaps included, is one step's time.
    """

    def __init__(self) -> None:
        self._ends: deque[torch.cuda.Event] = deque()
        self._rest_us = 0.0

    def start(self) -> None:
        """Begin the first step; the device has to be idle."""
        self._ends.clear()
        self._before = mark_end()
        self._rest_us = 0.0

    def end(self) -> None:
        """Mark the step's end: its work is issued."""
        self._ends.append(mark_end())

    def read_ends(self) -> list[int]:
        """Return whole microseconds of the steps that the device has finished since the last call, in order.

        Their rounding is carried on, so that the sum of many short ones stays that of the events.
        """
        steps_us = []
        while self._ends and self._ends[0].query():
            end = self._ends.popleft()
            exact_us = self._before.elapsed_time(end) * 1000 + self._rest_us
            steps_us.append(max(0, round(exact_us)))
            self._before, self._rest_us = end, exact_us - steps_us[-1]
        return steps_us


def mark_end() -> torch.cuda.Event:
    """Return an event that the device passes when all work before it is done."""
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


class Clock(StepClock):
    """Marks the steps of one trial on a torch device; see `parts.timing.step_clock`."""

    def __init__(
        self, trial: TrialProcess, device: torch.device, *, steps_per_epoch: int, epochs: int
    ) -> None:
        super().__init__(
            trial,
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            synchronise=self._wait,
            values=_values,
            reads_freely=device.type == "cpu",
            device_steps=DeviceSteps() if device.type == "cuda" else None,
            peak_memory=lambda: memory(device),
        )
        self.device = device

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _keep(self, value: torch.Tensor) -> torch.Tensor:
        # A view would hold all of what it was taken from until the segment ends, and so would a mean squared
        # error, whose storage keeps all errors.
        kept = value.detach()
        return kept.clone() if kept.untyped_storage().nbytes() > kept.nbytes else kept

    def _few_elements(self, batch: torch.Tensor) -> torch.Tensor:
        return step_clock.few_elements(batch.detach()).clone()


def _values(losses: Sequence[torch.Tensor]) -> list[float]:
    return torch.stack([loss.reshape(()) for loss in losses]).double().tolist()


@contextmanager
def stopwatch(device: torch.device) -> Iterator[list[float]]:
    """Seconds of the block as the list's only item, the device's queue emptied before and after."""
    taken: list[float] = []
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    began = time.perf_counter()
    yield taken
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    taken.append(time.perf_counter() - began)


def memory(device: torch.device) -> dict[str, int | None]:
    """Return peak bytes since the process began: of torch's allocator on a GPU, and of the process."""
    if device.type != "cuda":
        return step_clock.memory()
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return step_clock.memory(allocated, reserved)
