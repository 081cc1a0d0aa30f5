"""Per-trial statistics: pure functions from what a workload measured to what a record's summary says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from harness.causes import INPUT_WAIT_LIMIT, ScaleHealth, cause_name, causes, scale_health
from harness.record import Epoch, Measurement, Record, Series, Steady, Summary
from harness.state import between_trials, busy_share, busy_shares, machine_remarks, state_causes, used_cards
from harness.steady import steady_state

__all__ = [
    "METHOD",
    "ROOM",
    "Bound",
    "ScaleHealth",
    "between_trials",
    "bound",
    "busy_share",
    "busy_shares",
    "cause_name",
    "judge_trial",
    "machine_remarks",
    "room_taken",
    "scale_health",
    "speedup_limit",
    "summarise",
    "used_cards",
]

METHOD = "2"
"""The version of this method; a stored summary of another is computed anew."""

HOST_BOUND_LIMIT = 0.05
"""A larger gap between the host's and the device's time is named."""

COMPUTE_BOUND_SHARE = 0.5
"""Of the measured ceiling: above it arithmetic, or memory, is what a trial waits for."""

ROOM = 0.95
"""Of a device's memory: a batch that reserves more is not taken for one that fits."""

MEAN_BLOCKS = 9
"""An odd number, so that the median of the block means is one of them."""

Floats = NDArray[np.float64]
Verdict = Literal["valid", "warn", "invalid", "unproven"]


def summarise(measurement: Measurement) -> Summary:
    """A trial's statistics and its verdict, from raw samples alone.

    throughput = (samples − cut steps · samples per step) ÷ (window − Σ cut steps' seconds), samples/s; with
    nothing cut this is samples ÷ host window. Step times are of the steady part, seconds. input_share =
    Σ input ÷ Σ step and host_bound_share = 1 − Σ device ÷ Σ step over the same steps.
    """
    steady = steady_state(measurement.step_us)
    steps = _seconds_per_step(measurement.step_us, steady)
    input_share = _share(measurement.input_us, measurement.step_us, steady)
    device_share = _share(measurement.device_us, measurement.step_us, steady)
    low, middle, high = np.percentile(steps, (5, 50, 95)) if steps.size else (np.nan,) * 3
    found = list(causes(measurement, steady, input_share))
    return Summary(
        method=METHOD,
        throughput=_throughput(measurement, steady),
        step_seconds_median=float(middle),
        step_seconds_p5=float(low),
        step_seconds_p95=float(high),
        steady=steady,
        input_share=input_share,
        host_bound_share=None if device_share is None else max(0.0, 1 - device_share),
        epoch_seconds=_epoch_seconds(measurement, steps),
        protocol_seconds=_protocol_seconds(measurement, steps),
        projected=not measurement.protocol.complete,
        verdict=_verdict({severity for severity, _ in found}),
        causes=tuple(cause for _, cause in found),
    )


def room_taken(measurement: Measurement) -> float | None:
    """The part of its device's memory that the framework reserved at most, 0 to 1; null where unknown."""
    whole, reserved = measurement.device.memory_bytes, measurement.memory.reserved_peak_bytes
    return reserved / whole if whole and reserved else None


def judge_trial(record: Record) -> Summary | None:
    """What a record's summary is: its measurement's, with what machine and devices did; null if it failed.

    A pure function of the record, so that whoever reads one can compute it anew.
    """
    if record.measurement is None:
        return None
    summary = summarise(record.measurement)
    found = list(state_causes(record))
    against = [(severity, cause) for severity, cause in found if severity != "note"]
    return summary.model_copy(
        update={
            "verdict": _verdict({summary.verdict, *(severity for severity, _ in against)}),
            "causes": (*summary.causes, *(cause for _, cause in against)),
            "notes": tuple(note for severity, note in found if severity == "note"),
        }
    )


def _verdict(severities: set[str]) -> Verdict:
    grave: tuple[Verdict, ...] = ("invalid", "unproven", "warn")
    return next((verdict for verdict in grave if verdict in severities), "valid")


def _cut(series: Series, steady: Steady) -> int:
    """How many values lie before the steady part."""
    return min(steady.first_step // series.steps_per_value, series.count)


def _seconds_per_step(series: Series, steady: Steady) -> Floats:
    values = np.asarray(series.values(), dtype=np.float64)[_cut(series, steady) :]
    return values / (1e6 * series.steps_per_value)


def _throughput(measurement: Measurement, steady: Steady) -> float:
    series, window = measurement.step_us, measurement.window
    cut = _cut(series, steady)
    samples = window.samples - cut * series.steps_per_value * measurement.samples_per_step
    seconds = window.seconds - sum(series.values()[:cut]) / 1e6
    if samples <= 0 or seconds <= 0:
        return window.samples / window.seconds
    return samples / seconds


def _share(part: Series | None, whole: Series, steady: Steady) -> float | None:
    """Σ part ÷ Σ whole over the steady steps; null where the part was not measured on the same steps."""
    if part is None or (part.count, part.steps_per_value) != (whole.count, whole.steps_per_value):
        return None
    cut = _cut(whole, steady)
    total = sum(whole.values()[cut:])
    return sum(part.values()[cut:]) / total if total else None


def _typical_step(steps: Floats) -> float | None:
    """Median of block means, seconds: the mean of a step that a passing disturbance does not move."""
    if steps.size == 0:
        return None
    blocks = MEAN_BLOCKS if steps.size >= 10 * MEAN_BLOCKS else 1
    return float(np.median([part.mean() for part in np.array_split(steps, blocks)]))


def _valid_seconds(measurement: Measurement) -> float | None:
    """Median seconds of a whole validation: a capped one is scaled by its batches; null where none ran."""
    batches = measurement.protocol.valid_batches
    if batches == 0:
        return 0.0
    whole = [
        epoch.valid_seconds * batches / run
        for epoch in measurement.epochs
        if epoch.valid_seconds is not None
        and (run := batches if epoch.valid_batches is None else epoch.valid_batches)
    ]
    return float(np.median(whole)) if whole else None


def _whole_epochs(measurement: Measurement) -> list[Epoch]:
    return [epoch for epoch in measurement.epochs if epoch.complete]


def _projected_epoch(measurement: Measurement, steps: Floats) -> float | None:
    """steps per epoch · typical steady step + a whole validation, seconds."""
    step, valid = _typical_step(steps), _valid_seconds(measurement)
    if step is None or valid is None:
        return None
    return measurement.protocol.steps_per_epoch * step + valid


def _epoch_seconds(measurement: Measurement, steps: Floats) -> float | None:
    whole, valid = _whole_epochs(measurement), _valid_seconds(measurement)
    if not whole:
        return _projected_epoch(measurement, steps)
    if valid is None:
        return None
    return float(np.median([epoch.train_seconds for epoch in whole])) + valid


def _protocol_seconds(measurement: Measurement, steps: Floats) -> float | None:
    """Measured where the protocol ran to its end; else epochs · a later whole epoch, or a projected one.

    The first epoch pays for warm-up once, so it stands for no other.
    """
    whole, valid = _whole_epochs(measurement), _valid_seconds(measurement)
    if valid is None:
        return None
    if measurement.protocol.complete:
        return sum(epoch.train_seconds for epoch in measurement.epochs) + _all_validations(measurement, valid)
    later = [epoch.train_seconds for epoch in whole[1:]]
    typical = float(np.median(later)) + valid if later else _projected_epoch(measurement, steps)
    return None if typical is None else measurement.protocol.epochs * typical


def _all_validations(measurement: Measurement, typical: float) -> float:
    """Seconds of one validation per epoch; those that ran whole count as they were."""
    batches = measurement.protocol.valid_batches
    return sum(
        epoch.valid_seconds
        if epoch.valid_seconds is not None and epoch.valid_batches in (None, batches)
        else typical
        for epoch in measurement.epochs
    )


@dataclass(frozen=True, slots=True)
class Bound:
    """What a trial waits for most, and its share: of the time for input and host, else of the ceiling."""

    kind: Literal["input", "host", "memory", "compute", "unknown"]
    share: float | None = None
    fixed_share: float | None = None
    """Of the time, what a faster device would not shorten: waiting for input and for the host."""

    def sentence(self) -> str:
        """The bound as a reader may quote it."""
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


def bound(
    summary: Summary, *, compute_share: float | None = None, memory_share: float | None = None
) -> Bound:
    """Names a trial's bound; the shares are of measured ceilings, achieved FLOP/s and bytes/s over them.

    The wait for input, then the host's own part (its gap to the device less that wait), are named where they
    pass their limits; else the larger ceiling share, from one half on, or where both are known, since then
    the other limit is further away. What is not measured names nothing.
    """
    waited = summary.input_share or 0.0
    gap = 0.0 if summary.host_bound_share is None else max(0.0, summary.host_bound_share - waited)
    known = not (summary.input_share is None and summary.host_bound_share is None)
    fixed = waited + gap if known else None
    if waited > INPUT_WAIT_LIMIT and waited >= gap:
        return Bound("input", waited, fixed)
    if gap > HOST_BOUND_LIMIT:
        return Bound("host", gap, fixed)
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
