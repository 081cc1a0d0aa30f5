"""Energy over a trial's windows: a counter's difference, held against integrated samples of power.

A value is withheld, with its reason, rather than guessed: windows under a minute or of few samples (MLPerf
Power asks for 60 of each), a counter and a sampling that disagree by more than a tenth. The band of ±5 % is
systematic: it is what the sensors are documented to be off by, and no repetition makes it smaller.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy

from harness.record.telemetry import LEAST_INTERVALS, Energy

BAND = 0.05
WARN_ABOVE = 0.05
WITHHOLD_ABOVE = 0.10
LEAST_SECONDS = 60.0
LEAST_SAMPLES = 60
LONGEST_GAP = 5.0
"""Seconds between two samples of power over which nobody should integrate."""

TimedValues = Sequence[tuple[float, float]]
"""(seconds, value), in order of time."""
Windows = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True)
class EnergyReadings:
    """What was read of one device: its cumulative counter in joules and its power in watts."""

    counter: TimedValues
    power: TimedValues


def counter_joules(counter: TimedValues, windows: Windows) -> float | None:
    """Return the counter's rise over the windows, interpolated; null where it ends early or falls."""
    if not _covers(counter, windows):
        return None
    seconds, joules = numpy.transpose(counter)
    if joules[-1] <= joules[0] or (numpy.diff(joules) < 0).any():
        return None
    return float(numpy.diff(numpy.interp(windows, seconds, joules)).sum())


def sampled_joules(power: TimedValues, windows: Windows) -> float | None:
    """Return power integrated over the windows by trapezoids; null where the samples do not cover them."""
    if not _covers(power, windows):
        return None
    seconds, watts = numpy.transpose(power)
    total = 0.0
    for begin, end in windows:
        times = numpy.array([begin, *seconds[(begin < seconds) & (seconds < end)], end])
        if numpy.diff(times).max() > LONGEST_GAP:
            return None
        total += float(numpy.trapezoid(numpy.interp(times, seconds, watts), times))
    return total


def _covers(points: TimedValues, windows: Windows) -> bool:
    """Return whether the points cover the windows to within half a second at both ends."""
    if not points or not windows:
        return False
    return points[0][0] - 0.5 <= min(windows)[0] and max(end for _, end in windows) <= points[-1][0] + 0.5


def trial_energy(devices: Sequence[EnergyReadings], windows: Windows, items: int | None) -> Energy:
    """Return all cards together over the windows; `items` are the training samples that passed in them."""
    seconds = sum(end - begin for begin, end in windows)
    samples = min((_samples_inside(device.power or device.counter, windows) for device in devices), default=0)
    reading = Energy(scope="cards", window_seconds=seconds, samples=samples)
    reason: str | None = None
    if not devices:
        reason = "no device tells its energy or power"
    elif not windows:
        reason = "the measured window's times are not known"
    elif seconds < LEAST_SECONDS:
        reason = f"the window of {seconds:.0f} s is shorter than {LEAST_SECONDS:.0f} s"
    elif samples < LEAST_SAMPLES:
        reason = f"{samples} samples in the window are fewer than {LEAST_SAMPLES}"
    elif (intervals := _fewest_intervals(devices, windows)) < LEAST_INTERVALS:
        reason = f"a window of {intervals:.1f} intervals between samples is shorter than {LEAST_INTERVALS}"
    if reason:
        return reading.model_copy(update={"unknown_because": reason})
    counted = _sum_known([counter_joules(device.counter, windows) for device in devices])
    sampled = _sum_known([sampled_joules(device.power, windows) for device in devices])
    apart = sampled / counted - 1 if counted and sampled is not None else None
    reading = reading.model_copy(
        update={"counter_joules": counted, "sampled_joules": sampled, "disagreement": apart}
    )
    joules = counted if counted is not None else sampled
    if joules is None or joules <= 0:
        reason = "neither an energy counter nor power was reported throughout"
    elif apart is not None and abs(apart) > WITHHOLD_ABOVE:
        reason = f"counter and sampled power differ by {apart:+.0%}"
    if joules is None or reason:
        return reading.model_copy(update={"unknown_because": reason})
    warned = apart is not None and abs(apart) > WARN_ABOVE
    return reading.model_copy(
        update={
            "joules": joules,
            "joules_per_sample": joules / items if items else None,
            "method": "counter" if counted is not None else "sampled power",
            "band": BAND + 1 / (3 * _fewest_intervals(devices, windows)),
            "warning": f"counter and sampled power differ by {apart:+.1%}" if warned else None,
        }
    )


def _fewest_intervals(devices: Sequence[EnergyReadings], windows: Windows) -> float:
    """Return the shortest window over the longest of the devices' usual intervals between samples."""
    times = [[second for second, _ in device.power or device.counter] for device in devices]
    usual = max(float(numpy.median(numpy.diff(each))) for each in times)
    return min(end - begin for begin, end in windows) / usual


def _samples_inside(points: TimedValues, windows: Windows) -> int:
    return sum(any(begin <= second <= end for begin, end in windows) for second, _ in points)


def _sum_known(values: Sequence[float | None]) -> float | None:
    given = [value for value in values if value is not None]
    return sum(given) if given and len(given) == len(values) else None
