"""Figures that are too good: faster than the device was seen to be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pandas import DataFrame

from harness.record import Measurement
from report.trials import all_reduce
from report.trials.ceilings import ABOVE, GEMM, ceiling_runs, device_of
from report.trials.table import trials_of
from report.trials.trial import Trial


@dataclass(frozen=True, slots=True)
class Flag:
    """Why a figure is not believed: it cannot be, which makes its trial invalid, or it asks for a reason."""

    name: str
    sentence: str
    verdict: Literal["invalid", "warn"] = "invalid"


def too_good(table: DataFrame) -> list[tuple[Flag, ...]]:
    """Each trial's flags, in the order of the rows."""
    trials = trials_of(table)
    flagged: list[list[Flag]] = [[] for _ in trials]
    runs = ceiling_runs(trial.record for trial in trials)
    shared = all_reduce.runs(trial.record for trial in trials)
    for place, trial in enumerate(trials):
        found = (_above_ceiling(trial, runs), _above_all_reduce(trial, shared))
        flagged[place] += (flag for flag in found if flag)
    return [tuple(flags) for flags in flagged]


def _above_ceiling(
    trial: Trial, runs: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
) -> Flag | None:
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
    sentence = (
        f"{share:.2f} times the fastest product in {len(values)} runs of this device's ceiling: "
        "that was disturbed, or less was computed than is counted"
    )
    return Flag("above-ceiling", sentence, "warn")


def _above_all_reduce(trial: Trial, runs: Mapping[all_reduce.Devices, Sequence[Measurement]]) -> Flag | None:
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
    sentence = (
        f"a step takes {step_seconds:.4g} s, where its gradients alone take {least:.4g} s in the fastest of "
        f"{len(runs[devices])} runs of all-reduce: those were disturbed, or less was shared than is counted"
    )
    return Flag("above-ceiling", sentence, "warn")
