"""Figures that are too good: faster than the device, or its network, was ever seen to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from harness.record import Finding, Measurement, finding
from report.trials import all_reduce
from report.trials.ceilings import ABOVE, GEMM, ceiling_runs, device_of
from report.trials.trial import TrialResult


def too_good(trials: Sequence[TrialResult]) -> list[tuple[Finding, ...]]:
    """Each trial's flags."""
    runs = ceiling_runs(trial.record for trial in trials)
    shared = all_reduce.runs(trial.record for trial in trials)
    found = ((_above_ceiling(trial, runs), _above_all_reduce(trial, shared)) for trial in trials)
    return [tuple(flag for flag in flags if flag) for flags in found]


def _above_ceiling(
    trial: TrialResult, runs: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
) -> Finding | None:
    """Operations a second above the fastest of the ceiling's own runs, by more than `ABOVE`.

    Bytes are not asked: what is counted of them is more than the memory moves.
    """
    measured, device = trial.record.measurement, device_of(trial.record)
    rate = trial.samples_per_second
    if measured is None or device is None or trial.is_ceiling or rate is None:
        return None
    values = runs.get(device, {}).get(GEMM.get(measured.precision.label, ""), ())
    if not values or measured.flops.per_sample is None:
        return None
    share = measured.flops.per_sample * rate / (max(values) * 1e12 * measured.device.count)
    if share <= ABOVE:
        return None
    return finding("above-ceiling", share=share, runs=len(values))


def _above_all_reduce(
    trial: TrialResult, runs: Mapping[all_reduce.Devices, Sequence[Measurement]]
) -> Finding | None:
    """A step shorter than the sum of its gradients in the fastest of all runs, by more than `ABOVE`."""
    measured, devices = trial.record.measurement, all_reduce.devices_of(trial.record)
    rate = trial.samples_per_second
    if measured is None or devices is None or rate is None or devices not in runs:
        return None
    fastest = max(one.ceilings[all_reduce.ALGORITHM] for one in runs[devices]) * 1e9
    least = all_reduce.least_seconds(measured, fastest)
    step_seconds = measured.samples_per_step / rate
    if least is None or least <= ABOVE * step_seconds:
        return None
    return finding("above-ceiling", step_seconds=step_seconds, least_seconds=least, runs=len(runs[devices]))
