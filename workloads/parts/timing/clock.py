"""The clock for torch: on a GPU the ends of steps are marked by events; the host runs far ahead of it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch

from parts.timing import step_clock
from parts.timing.device_steps import DeviceSteps
from parts.timing.step_clock import StepClock
from parts.trial import Trial


class Clock(StepClock):
    """Marks the steps of one trial on a torch device; see `parts.timing.step_clock`."""

    def __init__(self, trial: Trial, device: torch.device, *, steps_per_epoch: int, epochs: int) -> None:
        super().__init__(
            trial,
            steps_per_epoch=steps_per_epoch,
            epochs=epochs,
            synchronise=self._wait,
            values=_values,
            reads_freely=device.type == "cpu",
        )
        self.device = device
        self._device_steps = DeviceSteps() if device.type == "cuda" else None
        self.step_clock = "device" if self._device_steps else "host"

    def _wait(self) -> None:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    def _segment_begins(self) -> None:
        if self._device_steps:
            self._device_steps.start()

    def _step_ends(self) -> None:
        if self._device_steps:
            self._device_steps.end()

    def _passed(self) -> list[int]:
        return self._device_steps.passed() if self._device_steps else super()._passed()

    def _kept(self, value: torch.Tensor) -> torch.Tensor:
        return value.detach()

    def _few_elements(self, batch: torch.Tensor) -> torch.Tensor:
        return few_elements(batch)

    def _memory(self) -> dict[str, int | None]:
        return memory(self.device)


def _values(losses: Sequence[torch.Tensor]) -> list[float]:
    return torch.stack([loss.reshape(()) for loss in losses]).double().tolist()


def few_elements(batch: torch.Tensor) -> torch.Tensor:
    """A copy of some elements from all over a batch, of its own type and where it lies: nothing waits."""
    return step_clock.few_elements(batch.detach()).clone()


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
    """Peak bytes since the process began: of torch's allocator on a GPU, and of the process."""
    if device.type != "cuda":
        return step_clock.memory()
    allocated, reserved = torch.cuda.max_memory_allocated(device), torch.cuda.max_memory_reserved(device)
    return step_clock.memory(allocated, reserved)
