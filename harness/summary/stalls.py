"""Time in a trial's figures that is no step's: of a snapshot, a suspended machine, a disk that stalled.

Rare slow steps are set aside where a window is judged, and paid for in its figures. So what they add is named
here, and is more than a figure may hold from `UNPROVEN` on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from statistics import median, median_low

from harness.record import Finding, Measurement, Steady, finding
from harness.record.finding import Value
from harness.summary.steady_state import stalled_seconds

NAMED = 0.02
UNPROVEN = 0.10
"""Of the time that a figure is made of."""

EPOCHS_ALIKE = 3
"""In so many epochs or more, what the first step of each takes is the workload's own: a loader starts."""

Findings = Iterator[Finding]


def stall_findings(measurement: Measurement, steady: Steady) -> Findings:
    """What stood still: in the steps that count, outside of all, in validations, in a start of epochs."""
    series = measurement.step_us
    if not sum(series.values()):
        return
    cut = steady.first_step // series.steps_per_value
    stalled = sum(_stalled_seconds(measurement)[cut:])
    yield from _named(stalled, sum(series.values()[cut:]) / 1e6, stalled_seconds=stalled)
    outside = _outside_seconds(measurement)
    yield from _named(outside, measurement.window.seconds, outside_seconds=outside)
    excess, validated = _slow_validations(measurement)
    yield from _named(excess, measurement.window.seconds + validated, valid_seconds=excess)
    if cut and any(epoch.complete for epoch in measurement.epochs):
        yield from _slow_start(measurement, cut)


def _named(seconds: float, of_seconds: float, **data: Value) -> Findings:
    share = seconds / of_seconds if of_seconds else 0.0
    if share >= NAMED:
        yield finding("stalled", "unproven" if share >= UNPROVEN else "warn", share=share, **data)


def _stalled_seconds(measurement: Measurement) -> list[float]:
    """What each value's slow outlier took beyond the steps around it, and beyond the start of every epoch."""
    series, epochs = measurement.step_us, measurement.epochs
    stalled: list[float] = stalled_seconds(series).tolist()
    starts = (
        start // series.steps_per_value for start in accumulate((each.steps for each in epochs), initial=0)
    )
    firsts = {start for start in starts if start < series.count}
    usual = median_low(stalled[first] for first in firsts) if len(firsts) >= EPOCHS_ALIKE else 0.0
    for first in firsts:
        stalled[first] = max(0.0, stalled[first] - usual)
    return stalled


def _outside_seconds(measurement: Measurement) -> float:
    """Of the window in no step. Of a host that runs ahead of its GPU nothing is said: it marks no end."""
    if measurement.step_clock == "host" and measurement.device.kind != "cpu":
        return 0.0
    series, window = measurement.step_us, measurement.window
    marked = series.count * series.steps_per_value
    return window.seconds - sum(series.values()) / 1e6 * max(1.0, window.steps / marked)


def _slow_validations(measurement: Measurement) -> tuple[float, float]:
    """Seconds of validations beyond the usual one, and of all; a sample takes no longer than in training."""
    whole, window = measurement.protocol.valid_batches, measurement.window
    ran = [
        (epoch.valid_seconds, batches)
        for epoch in measurement.epochs
        if epoch.valid_seconds is not None
        and (batches := whole if epoch.valid_batches is None else epoch.valid_batches)
    ]
    if not ran:
        return 0.0, 0.0
    usual = [median_low(seconds / batches for seconds, batches in ran)]
    if measurement.data.valid_items and whole:
        usual.append(window.seconds / window.samples * measurement.data.valid_items / whole)
    excess = sum(max(0.0, seconds - min(usual) * batches) for seconds, batches in ran)
    return excess, sum(seconds for seconds, _ in ran)


def _slow_start(measurement: Measurement, cut: int) -> Findings:
    """A start that no throughput holds, and the seconds of whole epochs do: it was to be, as a rule."""
    values, first = measurement.step_us.values(), cut * measurement.step_us.steps_per_value
    slower = (sum(values[:cut]) - cut * median(values)) / 1e6
    share = slower / measurement.window.seconds
    if share >= NAMED:
        yield finding("stalled", share=share, first_steps=first, stalled_seconds=slower)
