"""A GPU's step times, from end event to end event.

The host issues work far ahead of a device, so the moments at which it has issued a step say nothing of how
long the step takes: a burst of short ones, then a wait that belongs to none. The device passes an event when
all work before it is done. What lies between two ends, idle gaps included, is one step's time.
"""

from __future__ import annotations

from collections import deque

import torch


class DeviceSteps:
    """Marks the ends of steps on the current stream; nothing waits for them."""

    def __init__(self) -> None:
        self._ends: deque[torch.cuda.Event] = deque()
        self._rest_us = 0.0

    def start(self) -> None:
        """The first step begins; the device has to be idle."""
        self._ends.clear()
        self._before = self._marked()
        self._rest_us = 0.0

    def end(self) -> None:
        """The step's work is issued."""
        self._ends.append(self._marked())

    def passed(self) -> list[int]:
        """Whole microseconds of the steps that the device has finished since the last call, in their order.

        Their rounding is carried on, so that the sum of many short ones stays that of the events.
        """
        steps_us = []
        while self._ends and self._ends[0].query():
            end = self._ends.popleft()
            exact_us = self._before.elapsed_time(end) * 1000 + self._rest_us
            steps_us.append(max(0, round(exact_us)))
            self._before, self._rest_us = end, exact_us - steps_us[-1]
        return steps_us

    @staticmethod
    def _marked() -> torch.cuda.Event:
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event
