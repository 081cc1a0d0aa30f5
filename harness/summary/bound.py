"""Per-trial statistics: pure functions from what a workload measured to what a record's summary says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from harness.record import Summary

BOUND_SHARE = 0.5
"""What takes more of a step bounds the trial by itself."""

COMPUTE_BOUND_SHARE = 0.5
"""A trial above this share of a measured ceiling waits for arithmetic, or for memory."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a trial waits for most, and its share: of the time for input and host, else of the ceiling."""

    kind: Literal["input", "host", "memory", "compute", "nothing", "unknown"]
    share: float | None = None
    fixed_share: float | None = None
    """The share of the time that a faster device would not shorten: waiting for input and for the host."""

    def sentence(self) -> str:
        """The bound as a reader may quote it."""
        if self.kind == "nothing":
            return "Nothing alone takes more than half of a step."
        if self.kind == "unknown" or self.share is None:
            return "What bounds this is not known."
        if self.kind in ("memory", "compute"):
            what = "memory bandwidth" if self.kind == "memory" else "arithmetic"
            nearer = "" if self.share >= COMPUTE_BOUND_SHARE else ", and less of its other limit"
            return f"It reaches {self.share:.0%} of the {what} measured on this device{nearer}."
        waited = "waited for input" if self.kind == "input" else "was the host's alone"
        limit = speedup_limit(self.share if self.fixed_share is None else self.fixed_share)
        gain = f"a card twice as fast shortens this at most {limit:.2f} times"
        return f"{self.share:.0%} of the time {waited}: {gain}."


UNKNOWN = Bound("unknown")


def find_bound(
    summary: Summary, *, compute_share: float | None = None, memory_share: float | None = None
) -> Bound:
    """Names a trial's bound; the shares are of measured ceilings, achieved FLOP/s and bytes/s over them.

    The wait for input, or the host's own part (the device's idle share less that wait), is named where it
    takes more than half of a step; where the device does, the larger ceiling share, from one half on, or
    where both are known, since then the other limit is further away; else nothing alone bounds the trial.
    """
    waited = summary.input_share or 0.0
    gap = 0.0 if summary.host_bound_share is None else max(0.0, summary.host_bound_share - waited)
    measured = not (summary.input_share is None and summary.host_bound_share is None)
    fixed = waited + gap if measured else None
    if waited > BOUND_SHARE:
        return Bound("input", waited, fixed)
    if gap > BOUND_SHARE:
        return Bound("host", gap, fixed)
    if fixed is not None and fixed >= BOUND_SHARE:
        return Bound("nothing", None, fixed)
    ceilings: dict[Literal["memory", "compute"], float] = {}
    if memory_share is not None:
        ceilings["memory"] = memory_share
    if compute_share is not None:
        ceilings["compute"] = compute_share
    if ceilings:
        kind = max(ceilings, key=lambda name: ceilings[name])
        if ceilings[kind] >= COMPUTE_BOUND_SHARE or len(ceilings) == 2:
            return Bound(kind, ceilings[kind], fixed)
    return Bound("unknown", None, fixed)


def speedup_limit(fixed_share: float, factor: float = 2.0) -> float:
    """Amdahl's law: 1 ÷ (s + (1 − s)/factor), the most that a device `factor` times as fast can gain.

    `fixed_share` s is the share of the time, 0 to 1, that the device does not shorten.
    """
    return 1 / (fixed_share + (1 - fixed_share) / factor)
