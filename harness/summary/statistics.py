"""Per-trial statistics: pure functions from what a workload measured to what a record's summary says."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, Literal

import numpy

from harness.record import Epoch, Finding, Measurement, Record, Series, Steady, Summary
from harness.record.finding import gravest_verdict
from harness.summary.checks import measurement_findings, validation_times
from harness.summary.device_checks import device_findings
from harness.summary.steady_state import microseconds, percentiles, steady_state

CLOSE = 1e-6
"""Relative: two builds of one library, or two processors, may add up in another order."""

MOST_MEMORY_SHARE = 0.95
"""A batch that reserves more of a device's memory is not taken for one that fits."""


def summarise(measurement: Measurement, more: Iterable[Finding] = ()) -> Summary:
    """Return a trial's statistics and its verdict, from raw samples alone, and from what `more` was found.

    throughput = (samples − cut steps · samples per step) ÷ (window − Σ cut steps' seconds), samples/s; with
    nothing cut this is samples ÷ host window. Step times are of the steady part, seconds. Over the same steps
    host_bound_share = 1 − kernels' seconds of a step ÷ mean step, and input_share = Σ input ÷ Σ step, or
    host_bound_share where that is less: a wait while the device still works costs nothing.
    """
    steady = _steady_part(measurement)
    series = measurement.step_us
    steps = microseconds(series)[_cut_values(series, steady) :] / (1e6 * series.steps_per_value)
    input_share = _share(measurement.input_us, measurement.step_us, steady)
    mean = float(steps.mean()) if steps.size else None
    idle_share = _idle_share(measurement, mean)
    if input_share is not None and idle_share is not None:
        input_share = min(input_share, idle_share)
    low, middle, high = percentiles(steps, 5, 50, 95) if steps.size else (math.nan,) * 3
    findings = (*measurement_findings(measurement, steady, input_share), *more)
    return Summary(
        throughput=_throughput(measurement, steady),
        step_seconds_median=middle,
        step_seconds_p5=low,
        step_seconds_p95=high,
        steady=steady,
        input_share=input_share,
        host_bound_share=idle_share,
        epoch_seconds=_epoch_seconds(measurement, mean),
        protocol_seconds=_protocol_seconds(measurement, mean),
        projected=not measurement.protocol.complete,
        verdict=gravest_verdict(findings),
        findings=findings,
    )


def _steady_part(measurement: Measurement) -> Steady:
    """Return the steady part; of one figure a run all of it, for its window is the program's own."""
    if measurement.program is not None and measurement.program.figure == "run":
        return Steady(kind="unproven", first_step=0)
    return steady_state(measurement.step_us)


def reserved_share(measurement: Measurement) -> float | None:
    """Return the share of the device's memory that was reserved at most, 0 to 1; null where unknown."""
    whole, reserved = measurement.device.memory_bytes, measurement.memory.reserved_peak_bytes
    return reserved / whole if whole and reserved else None


def judge_trial(record: Record) -> Summary | None:
    """Return a record's summary: its measurement's, with what machine and devices did; null if it failed.

    It is a pure function of the record, so that any reader can compute it again.
    """
    if record.measurement is None:
        return None
    return summarise(record.measurement, device_findings(record))


def is_this_version(record: Record) -> bool:
    """Return whether the gpudyno that made the record judges as this one does."""
    return record.harness.version == _version()


@cache
def _version() -> str:
    return version("gpudyno")


def differing_part(record: Record, recomputed: Summary | None) -> str:
    """Return the first part of a stored summary that the raw samples do not give; empty for none."""
    if recomputed is None or record.summary in (None, recomputed):
        return ""
    stored, given = record.summary.model_dump(mode="json"), recomputed.model_dump(mode="json")
    return next((name for name in given if not _is_close(given[name], stored[name])), "")


def _is_close(given: Any, stored: Any) -> bool:
    if isinstance(given, float) and isinstance(stored, float):
        return math.isclose(given, stored, rel_tol=CLOSE, abs_tol=CLOSE**2)
    if isinstance(given, dict) and isinstance(stored, dict):
        return given.keys() == stored.keys() and all(_is_close(given[key], stored[key]) for key in given)
    if isinstance(given, list) and isinstance(stored, list):
        return len(given) == len(stored) and all(map(_is_close, given, stored))
    return bool(given == stored)


def _cut_values(series: Series, steady: Steady) -> int:
    """Return how many values come before the steady part."""
    return min(steady.first_step // series.steps_per_value, series.count)


def _throughput(measurement: Measurement, steady: Steady) -> float:
    series, window = measurement.step_us, measurement.window
    # What is cut of one side's slices alone would be no turn of both.
    cut = 0 if measurement.own and measurement.own.slices else _cut_values(series, steady)
    samples = window.samples - cut * series.steps_per_value * measurement.samples_per_step
    seconds = window.seconds - sum(series.values()[:cut]) / 1e6
    if samples <= 0 or seconds <= 0:
        return window.samples / window.seconds
    return samples / seconds


def _share(part: Series | None, whole: Series, steady: Steady) -> float | None:
    """Return Σ part ÷ Σ whole over the steady steps; null where the part is not of the same steps."""
    if part is None or (part.count, part.steps_per_value) != (whole.count, whole.steps_per_value):
        return None
    cut = _cut_values(whole, steady)
    total = float(microseconds(whole)[cut:].sum())
    return float(microseconds(part)[cut:].sum()) / total if total else None


def _idle_share(measurement: Measurement, step_seconds: float | None) -> float | None:
    """Return the share of the steady steps' time in which no kernel ran; null where nobody counted."""
    kernels = measurement.kernels
    if kernels is None or not step_seconds:
        return None
    return max(0.0, 1 - kernels.busy_seconds / kernels.steps / step_seconds)


def _valid_seconds(measurement: Measurement) -> float | None:
    """Return mean seconds of a whole validation, a capped one scaled by its batches; null for none."""
    batches = measurement.protocol.valid_batches
    if batches == 0:
        return 0.0
    whole = [seconds * batches / run for seconds, run in validation_times(measurement)]
    return float(numpy.mean(whole)) if whole else None


def _whole_epochs(measurement: Measurement) -> list[Epoch]:
    return [epoch for epoch in measurement.epochs if epoch.complete]


def _projected_epoch(measurement: Measurement, step_seconds: float | None) -> float | None:
    """Return steps per epoch · mean steady step, rare slow ones included, + a whole validation, seconds."""
    valid = _valid_seconds(measurement)
    if step_seconds is None or valid is None:
        return None
    return measurement.protocol.steps_per_epoch * step_seconds + valid


def _epoch_seconds(measurement: Measurement, step_seconds: float | None) -> float | None:
    whole, valid = _whole_epochs(measurement), _valid_seconds(measurement)
    if not whole:
        return _projected_epoch(measurement, step_seconds)
    if valid is None:
        return None
    return float(numpy.mean([epoch.train_seconds for epoch in whole])) + valid


def _protocol_seconds(measurement: Measurement, step_seconds: float | None) -> float | None:
    """Return the measured seconds of a whole protocol; else epochs · a later whole epoch, or a projected one.

    The first epoch pays for warm-up once, so it is not used for others.
    """
    whole, valid = _whole_epochs(measurement), _valid_seconds(measurement)
    if valid is None:
        return None
    if measurement.protocol.complete:
        return sum(epoch.train_seconds for epoch in measurement.epochs) + _all_validations(measurement, valid)
    later = [epoch.train_seconds for epoch in whole[1:]]
    typical = float(numpy.mean(later)) + valid if later else _projected_epoch(measurement, step_seconds)
    return None if typical is None else measurement.protocol.epochs * typical


def _all_validations(measurement: Measurement, typical: float) -> float:
    """Return the seconds of one validation per epoch; a validation that ran whole counts as measured."""
    batches = measurement.protocol.valid_batches
    return sum(
        epoch.valid_seconds
        if epoch.valid_seconds is not None and epoch.valid_batches in (None, batches)
        else typical
        for epoch in measurement.epochs
    )


BOUND_SHARE = 0.5
"""What takes more of a step bounds the trial by itself."""


COMPUTE_BOUND_SHARE = 0.5
"""A trial above this share of a measured ceiling waits for arithmetic, or for memory."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What a trial waits for most, and its share: of the time for input and host, else of the ceiling."""

    kind: Literal["input", "host", "memory", "compute", "nothing", "unknown"]
    share: float | None = None


UNKNOWN = Bound("unknown")


def find_bound(
    summary: Summary, *, compute_share: float | None = None, memory_share: float | None = None
) -> Bound:
    """Name a trial's bound; the shares are of measured ceilings, achieved FLOP/s and bytes/s over them.

    The wait for input, or the host's own part (the device's idle share less that wait), is named where it
    takes more than half of a step; where the device does, the larger ceiling share, from one half on, or
    where both are known, since then the other limit is further away; else nothing alone bounds the trial.
    """
    waited = summary.input_share or 0.0
    gap = max(0.0, (summary.host_bound_share or 0.0) - waited)
    if waited > BOUND_SHARE:
        return Bound("input", waited)
    if gap > BOUND_SHARE:
        return Bound("host", gap)
    if waited + gap >= BOUND_SHARE:
        return Bound("nothing")
    ceilings: dict[Literal["memory", "compute"], float] = {}
    if memory_share is not None:
        ceilings["memory"] = memory_share
    if compute_share is not None:
        ceilings["compute"] = compute_share
    if ceilings:
        kind = max(ceilings, key=lambda name: ceilings[name])
        if ceilings[kind] >= COMPUTE_BOUND_SHARE or len(ceilings) == 2:
            return Bound(kind, ceilings[kind])
    return UNKNOWN


def speedup_limit(fixed_share: float) -> float:
    """Return Amdahl's law: 1 ÷ (s + (1 − s)/2), the most that a device twice as fast can gain.

    `fixed_share` s is the share of the time, 0 to 1, that the device does not shorten.
    """
    return 1 / (fixed_share + (1 - fixed_share) / 2)
