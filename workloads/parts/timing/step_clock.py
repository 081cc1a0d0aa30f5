"""The clock around training steps: nothing in a step waits for it.

A step runs from the end of the one before it to its own end: input, copy, forward, loss, backward, optimiser.
Every step is marked without synchronising, when the host has issued it; on a CPU that is when it is done. A
framework whose device marks the ends of steps by itself brings what reads them (`parts.timing.clock` for
torch). The wait for input is the host's in any case.
The window is the sum of the training segments, each closed by a synchronisation before and after; validation
is outside. Losses, and the first gradient norms where the loop has them, stay on the device until a segment
ends.

Standard library and Python 3.7 syntax only.
"""

from __future__ import annotations

import itertools
import math
import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from parts.trial import Failed, TrialProcess

LOSSES_KEPT = 500
FIRST_LOSSES = 50
"""Kept whole, with their gradient norms: there two precisions are held against each other, step by step."""
BATCHES_LOOKED_AT = 16
EVENT_EVERY_SECONDS = 1.0

HELD_SECONDS = 60.0
"""So long a level has to hold where a trial's limit has a least and a most: a rule fixed beforehand.

The harness judges the steady state by itself, with change points, by the same seconds, steps, share,
tolerance.
"""
HELD_STEPS = 200
HELD_SHARE = 0.5
"""A level that fills less of a window would not be its figure."""
LEVEL_TOLERANCE = 0.01
LEVEL_PARTS = 6
SET_ASIDE = 20
"""One in so many steps, the slowest of each part: a rare slow step neither ends a trial nor lengthens it."""
LOOK_EVERY_SECONDS = 15.0
"""It is asked at the least seconds and then this often, so that nothing in between can end a trial."""


class StepClock:
    """Marks the steps of one trial and says when its limit is reached; an epoch is one segment.

    Steps that end so many `together`, as the batches of so many loading processes do, are judged by their
    sums. `synchronise` waits for all work of the device, `values` reads losses of the framework as floats.
    Where `reads_freely` reading them waits for nothing, and a loss that is not finite ends the trial within a
    second.
    """

    def __init__(
        self,
        trial: TrialProcess,
        *,
        steps_per_epoch: int,
        epochs: int,
        together: int = 1,
        synchronise: Callable[[], object] = lambda: None,
        values: Callable[[Sequence[Any]], list[float]] = lambda losses: [float(loss) for loss in losses],
        reads_freely: bool = True,
        device_steps: Any = None,
        peak_memory: Callable[[], dict[str, Any]] | None = None,
    ) -> None:
        if not steps_per_epoch:
            raise Failed(
                "unsupported", "an epoch has no whole batch: the batch size is above the number of items"
            )
        self.trial = trial
        self.steps_per_epoch = steps_per_epoch
        self.synchronise, self.values, self._reads_freely = synchronise, values, reads_freely
        self.together = together
        self._device_steps = device_steps
        self._memory = peak_memory or memory
        self.step_clock = "device" if device_steps else "host"
        self.epochs_in_protocol = epochs
        self.epochs: int = min(epochs, trial.limit.get("epochs") or epochs)
        self.step_limit: int | None = trial.limit.get("steps")
        self._look_at: float | None = trial.limit.get("seconds")
        self.second_limit: float | None = trial.limit.get("seconds_at_most") or self._look_at
        self._held = False
        self.steps_expected = min(self.epochs * steps_per_epoch, self.step_limit or sys.maxsize)
        self.segments = 0
        self._segment_began = self._mark = 0
        self.seconds = 0.0
        self.samples = 0
        self.step_us: list[int] = []
        """On a GPU, steps that the device has not been seen to finish still have the host's issue times."""
        self.input_us: list[int] = []
        self.losses: list[float] = []
        self._pending_losses: list[Any] = []
        self._norms: list[tuple[int, Any]] = []
        self._finished = 0
        self._looks: list[Any] = []
        self._reported = 0
        self._reported_at = time.perf_counter()

    def start(self) -> None:
        """Open a segment: everything before it is done."""
        self.synchronise()
        self._segment_first = len(self.step_us)
        if self._device_steps:
            self._device_steps.start()
        self._segment_began = self._mark = time.perf_counter_ns()

    def ready(self, batch: Any = None) -> None:
        """Note that the step's input is there; of the first batches a few elements are kept."""
        self._waited = time.perf_counter_ns() - self._mark
        if batch is not None and len(self._looks) < BATCHES_LOOKED_AT:
            self._looks.append(self._few_elements(batch))

    @property
    def wants_norm(self) -> bool:
        """Whether the step now running is one of those whose gradient norm is kept."""
        return len(self.step_us) < FIRST_LOSSES

    def norm(self, norm: Any) -> None:
        """Keep the step's gradient norm on its device, if it is one of the first; nothing waits."""
        if norm is not None and self.wants_norm:
            self._norms.append((len(self.step_us) + 1, self._keep(norm)))

    def step(self, loss: Any, samples: int) -> None:
        """Mark the step: its work is issued, `samples` went through it, and its loss is kept."""
        if self._device_steps:
            self._device_steps.end()
        if loss is not None:
            self._pending_losses.append(self._keep(loss))
        self.samples += samples
        now = time.perf_counter_ns()
        self.step_us.append((now - self._mark) // 1000)
        self.input_us.append(self._waited // 1000)
        self._mark = now
        if now * 1e-9 - self._reported_at >= EVENT_EVERY_SECONDS:
            self._report(now * 1e-9)

    def stop(self) -> dict[str, Any]:
        """Close the segment and return its epoch's record; raises Failed on a loss that is not finite."""
        self.synchronise()
        self._mark = time.perf_counter_ns()
        seconds = (self._mark - self._segment_began) * 1e-9
        self.seconds += seconds
        # The machine's monotonic clock, so that the telemetry's counters can be cut to the segment.
        self.trial.event("segment", begin=self._segment_began * 1e-9, end=self._mark * 1e-9)
        self._segment_began = self._mark
        self._read_losses()
        self._report(time.perf_counter())
        losses, steps = self.losses[self._segment_first :], len(self.step_us) - self._segment_first
        self.segments += 1
        return {
            "index": self.segments,
            "steps": steps,
            "train_seconds": seconds,
            "train_loss": sum(losses) / len(losses) if losses else None,
            "complete": steps == self.steps_per_epoch,
        }

    def run(
        self,
        batches: Callable[[], Iterable[Any]],
        step: Callable[[Any], None],
        over: Callable[[], object] | None = None,
        after: Callable[[dict[str, Any]], None] = lambda epoch: None,
    ) -> list[dict[str, Any]]:
        """Run epochs until the protocol or the trial's limit ends; one record each.

        `batches` gives an epoch's, `step` works on one and marks it, and what comes `after` an epoch, outside
        the window, may add to its record. `over` is for ranks, which have to agree.
        """
        over = over or self.limit_reached
        epochs: list[dict[str, Any]] = []
        ended = False
        while len(epochs) < self.epochs and not ended:
            if self.trial.stage_now != "train":
                self.trial.stage("train")
            self.start()
            for batch in itertools.islice(batches(), self.steps_per_epoch):
                step(batch)
                ended = bool(over())
                if ended:
                    break
            epochs.append(self.stop())
            after(epochs[-1])
        return epochs

    def limit_reached(self) -> str | None:
        """Return the limit that the steps so far have reached: "steps", "seconds", "level-held" or none.

        Between the least and the most seconds the level is looked at every LOOK_EVERY_SECONDS and never else.
        """
        if self.step_limit is not None and len(self.step_us) >= self.step_limit:
            return "steps"
        if self.second_limit is None or self._look_at is None:
            return None
        elapsed = self._elapsed()
        if not self._held and elapsed >= self.second_limit:
            return "seconds"
        if not self._held and elapsed >= self._look_at:
            self._look_at += LOOK_EVERY_SECONDS * (1 + (elapsed - self._look_at) // LOOK_EVERY_SECONDS)
            self._read_steps()
            self._held = level_held(self.step_us[: self._finished], self.together)
        return "level-held" if self._held else None

    def valid_batches(self, batches: int) -> int:
        """Return how many of a validation's batches there is time for, one if a step outlasts the limit."""
        outlasted = self.second_limit is not None and self._elapsed() >= self.second_limit * len(self.step_us)
        return min(batches, 1) if outlasted else batches

    def protocol(
        self, epochs: list[dict[str, Any]], valid_batches: int = 0, validated: int = 0
    ) -> dict[str, Any]:
        """Return the protocol's length, what stopped the trial, and whether it is complete.

        `valid_batches` is the number in a whole validation, `validated` the number that the limit leaves.
        """
        reached_end = len(epochs) == self.epochs_in_protocol and epochs[-1]["complete"]
        return {
            "steps_per_epoch": self.steps_per_epoch,
            "epochs": self.epochs_in_protocol,
            "valid_batches": valid_batches,
            "complete": reached_end and validated == valid_batches,
            "stopped_by": "protocol" if reached_end else self.limit_reached() or "epochs",
        }

    def series(self) -> dict[str, Any]:
        """Return the measurement's window, step series, losses and memory."""
        return {
            "window": {"seconds": self.seconds, "steps": len(self.step_us), "samples": self.samples},
            "steps_together": self.together,
            "step_us": self.step_us,
            "input_us": self.input_us,
            "step_clock": self.step_clock,
            "losses": thin_losses(self.losses),
            "gradient_norms": [(step, float(norm)) for step, norm in self._norms],
            "memory": self._memory(),
        }

    def batches(self) -> dict[str, int | None]:
        """Return how many of the first batches were looked at, and how many different ones they were."""
        if not self._looks:
            return {"distinct_batches": None, "looked_at_batches": None}
        seen = {(tuple(look.shape), tuple(look.reshape(-1).tolist())) for look in self._looks}
        return {"distinct_batches": len(seen), "looked_at_batches": len(self._looks)}

    def _elapsed(self) -> float:
        return self.seconds + (self._mark - self._segment_began) * 1e-9

    def _keep(self, value: Any) -> Any:
        """Return a loss or a norm as it is held until a segment ends."""
        return value

    def _few_elements(self, batch: Any) -> Any:
        """Return a copy of some elements from all over a NumPy array."""
        return few_elements(batch).copy()

    def _read_steps(self) -> None:
        """Take over what the device has finished; nothing waits."""
        own = self._device_steps
        passed = own.read_ends() if own else self.step_us[self._finished :]
        first, self._finished = self._finished, self._finished + len(passed)
        self.step_us[first : self._finished] = passed

    def _read_losses(self) -> None:
        if not self._pending_losses:
            return
        values = self.values(self._pending_losses)
        self._pending_losses.clear()
        first = len(self.losses) + 1
        self.losses.extend(values)
        for step, value in enumerate(values, start=first):
            if not math.isfinite(value):
                raise Failed("not-finite", f"the training loss is {value} at step {step}")

    def _report(self, now: float) -> None:
        if self._reads_freely:
            self._read_losses()
        self._read_steps()
        done = self._finished
        if done == self._reported:
            return
        self.trial.event("steps", first=self._reported + 1, us=self.step_us[self._reported : done])
        self._reported, self._reported_at = done, now
        elapsed = self._elapsed()
        if self.second_limit is not None and elapsed / self.second_limit > done / self.steps_expected:
            progress = {"done": round(elapsed, 3), "total": self.second_limit, "unit": "second"}
        else:
            progress = {"done": done, "total": self.steps_expected, "unit": "step"}
        self.trial.event("progress", seconds=round(elapsed, 3), **progress)


def level_held(step_us: list[int], together: int = 1) -> bool:
    """Return whether the last 60 s, 200 steps and half have one level: the means of six parts are within 1 %.

    Of steps that end so many together the sums are looked at.
    """
    if together > 1:
        step_us = [sum(step_us[at : at + together]) for at in range(0, len(step_us) - together + 1, together)]
    least = HELD_STEPS / together
    least_us = max(HELD_SECONDS * 1e6, HELD_SHARE * sum(step_us))
    start, held_us = len(step_us), 0
    stride = 1 + len(step_us) // 1000
    while start and (len(step_us) - start < least or held_us < least_us):
        held_us += sum(step_us[max(0, start - stride) : start])
        start = max(0, start - stride)
    last = step_us[start:]
    if len(last) < least or held_us < least_us:
        return False
    edges = [part * len(last) // LEVEL_PARTS for part in range(LEVEL_PARTS + 1)]
    means = [_mean(last[edges[part] : edges[part + 1]]) for part in range(LEVEL_PARTS)]
    return max(means) - min(means) <= LEVEL_TOLERANCE * min(means)


def _mean(part: list[int]) -> float:
    kept = sorted(part)[: len(part) - len(part) // SET_ASIDE]
    return sum(kept) / len(kept)


def few_elements(batch: Any) -> Any:
    """Return some elements from all over an array or tensor."""
    return batch[tuple(slice(size // 8, None, max(1, size // 4)) for size in batch.shape)]


def thin_losses(losses: list[float]) -> list[tuple[int, float]]:
    """Return (step, loss): the first 50, then one of as many as leaves at most 500 points."""
    left = len(losses) - FIRST_LOSSES
    stride = max(1, math.ceil(left / (LOSSES_KEPT - FIRST_LOSSES)))
    steps = [*range(1, min(FIRST_LOSSES, len(losses)) + 1), *range(FIRST_LOSSES + 1, len(losses) + 1, stride)]
    return [(step, losses[step - 1]) for step in steps]


def memory(allocated: int | None = None, reserved: int | None = None) -> dict[str, int | None]:
    """Return peak bytes since the process began: the framework's allocator's, if known, and the process's."""
    return {
        "allocated_peak_bytes": allocated,
        "reserved_peak_bytes": reserved,
        "process_peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
