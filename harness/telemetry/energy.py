"""Energy over a trial's windows: a counter's difference, held against integrated samples of power.

A value is withheld, with its reason, rather than guessed: windows under a minute or of few samples (MLPerf
Power asks for 60 of each), a counter and a sampling that disagree by more than a tenth. The band of ±5 % is
systematic: it is what the sensors are documented to be off by, and no repetition makes it smaller.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from harness.record.telemetry import Energy

BAND = 0.05
WARN_ABOVE = 0.05
WITHHOLD_ABOVE = 0.10
LEAST_SECONDS = 60.0
LEAST_SAMPLES = 60
LONGEST_GAP = 5.0
"""Seconds between two samples of power over which nobody should integrate."""

SENSED_EVERY = 0.1
"""Seconds: an A100 or H100 looks at its power for 25 ms of each (Yang et al., arXiv 2312.02741)."""

PACE = 0.01
"""Steps closer than this to a whole number of half periods are looked at in the same place over and over."""

Points = Sequence[tuple[float, float]]
"""(seconds, value), in order of time."""
Windows = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class Read:
    """What one device told: its cumulative counter in joules and its power in watts."""

    counter: Points
    power: Points


def keeps_pace(step_seconds: float) -> bool:
    """Whether steps of that length, up to four periods of such a sensor, hide a part from it every time."""
    halves = 2 * step_seconds / SENSED_EVERY
    return 1 <= round(halves) <= 8 and abs(halves / round(halves) - 1) < PACE


def counter_joules(counter: Points, windows: Windows) -> float | None:
    """The counter's rise over the windows, interpolated at their edges; null where it ends early or falls."""
    total = 0.0
    for begin, end in windows:
        first, last = _at(counter, begin), _at(counter, end)
        if first is None or last is None:
            return None
        total += last - first
    falls = any(later[1] < earlier[1] for earlier, later in pairwise(counter))
    rises = bool(counter) and counter[-1][1] > counter[0][1]
    return total if rises and not falls else None


def sampled_joules(power: Points, windows: Windows) -> float | None:
    """Power integrated over the windows by trapezoids; null where the samples do not cover them."""
    total = 0.0
    for begin, end in windows:
        first, last = _at(power, begin), _at(power, end)
        if first is None or last is None:
            return None
        inner = [point for point in power if begin < point[0] < end]
        points = [(begin, first), *inner, (end, last)]
        pairs = list(pairwise(points))
        if any(later[0] - earlier[0] > LONGEST_GAP for earlier, later in pairs):
            return None
        total += sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in pairs)
    return total


def _at(points: Points, seconds: float) -> float | None:
    """The value at a time, on the line between its neighbours; null outside, half a second granted."""
    if not points or seconds < points[0][0] - 0.5 or seconds > points[-1][0] + 0.5:
        return None
    after = bisect_right(points, seconds, key=lambda point: point[0])
    if after == 0:
        return points[0][1]
    if after == len(points):
        return points[-1][1]
    (t0, v0), (t1, v1) = points[after - 1], points[after]
    return v0 + (v1 - v0) * (seconds - t0) / (t1 - t0)


def energy(
    devices: Sequence[Read],
    windows: Windows,
    items: int | None,
    *,
    scope: Literal["cards", "processor packages"] = "cards",
) -> Energy:
    """All devices together over the windows; `items` are the training samples that passed in them."""
    seconds = sum(end - begin for begin, end in windows)
    taken = min((_inside(device.power or device.counter, windows) for device in devices), default=0)
    found = Energy(scope=scope, window_seconds=seconds, samples=taken)
    reason = _too_little(devices, windows, seconds, taken)
    if reason:
        return found.model_copy(update={"unknown_because": reason})
    counted = _sum([counter_joules(device.counter, windows) for device in devices])
    sampled = _sum([sampled_joules(device.power, windows) for device in devices])
    found = found.model_copy(update={"counter_joules": counted, "sampled_joules": sampled})
    joules = counted if counted is not None else sampled
    if joules is None or joules <= 0:
        return found.model_copy(
            update={"unknown_because": "neither an energy counter nor power was told throughout"}
        )
    return _judged(found, joules, counted, sampled, items)


def _judged(
    found: Energy, joules: float, counted: float | None, sampled: float | None, items: int | None
) -> Energy:
    off = sampled / counted - 1 if counted and sampled is not None else None
    if off is not None and abs(off) > WITHHOLD_ABOVE:
        reason = f"counter and sampled power differ by {off:+.0%}"
        return found.model_copy(update={"disagreement": off, "unknown_because": reason})
    warning = (
        f"counter and sampled power differ by {off:+.1%}"
        if off is not None and abs(off) > WARN_ABOVE
        else None
    )
    return found.model_copy(
        update={
            "joules": joules,
            "joules_per_sample": joules / items if items else None,
            "method": "counter" if counted is not None else "sampled power",
            "disagreement": off,
            "band": BAND,
            "warning": warning,
        }
    )


def _too_little(devices: Sequence[Read], windows: Windows, seconds: float, taken: int) -> str | None:
    if not devices:
        return "no device tells its energy or power"
    if not windows:
        return "the measured window's times are not known"
    if seconds < LEAST_SECONDS:
        return f"the window of {seconds:.0f} s is shorter than {LEAST_SECONDS:.0f} s"
    if taken < LEAST_SAMPLES:
        return f"{taken} samples in the window are fewer than {LEAST_SAMPLES}"
    return None


def _inside(points: Points, windows: Windows) -> int:
    return sum(any(begin <= at <= end for begin, end in windows) for at, _ in points)


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known and len(known) == len(values) else None
