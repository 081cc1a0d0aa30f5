"""Figures that are too good: faster than the device was seen to be, ahead of all seeds, or too alike."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev

from pandas import DataFrame
from scipy import special

from harness.record import Finding, Measurement, finding
from report.trials import all_reduce
from report.trials.ceilings import ABOVE, GEMM, ceiling_runs, device_of
from report.trials.columns import IDENTITY, KEY
from report.trials.table import row_groups, trials_of
from report.trials.trial import Trial

LEAST_OTHERS = 4
"""Equal runs that a run's end is held against, besides itself."""

ENDS_LEVEL = 0.01
"""How often a cell of honest runs may have one that ends too well."""

LEAST_GAIN = 0.01
"""Relative: an end that is better by less than this is not worth a word."""

LEAST_EPOCHS = 3
LEAST_CONSTANT_STEPS = 50
CLOCK_SECONDS = 1e-6
"""The resolution of a record's step times."""


def too_good(table: DataFrame) -> list[tuple[Finding, ...]]:
    """Each trial's flags, in the order of the rows."""
    trials = trials_of(table)
    flagged: list[list[Finding]] = [[] for _ in trials]
    runs = ceiling_runs(trial.record for trial in trials)
    shared = all_reduce.runs(trial.record for trial in trials)
    for place, trial in enumerate(trials):
        found = (_above_ceiling(trial, runs), _above_all_reduce(trial, shared))
        flagged[place] += (flag for flag in found if flag)
    for place, flag in (*_alike(table, trials), *_ends(table, trials), *_starts(table, trials)):
        flagged[place].append(flag)
    return [tuple(flags) for flags in flagged]


def _above_ceiling(
    trial: Trial, runs: Mapping[tuple[str, str], Mapping[str, Sequence[float]]]
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
    trial: Trial, runs: Mapping[all_reduce.Devices, Sequence[Measurement]]
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


def _alike(table: DataFrame, trials: Sequence[Trial]) -> list[tuple[int, Finding]]:
    """Runs of one key that share every step, runs of one cell with equal windows, steps without a spread."""
    flags: list[tuple[int, Finding]] = []
    by_series: dict[tuple[object, ...], list[int]] = {}
    for place, trial in enumerate(trials):
        measured, summary = trial.record.measurement, trial.summary
        if measured is None or summary is None or measured.step_us.count < LEAST_CONSTANT_STEPS:
            continue
        if (
            summary.step_seconds_p5 == summary.step_seconds_p95
            and summary.step_seconds_median > 1000 * CLOCK_SECONDS
        ):
            flags.append((place, finding("too-alike")))
        series = (trial.key, measured.step_us.count, measured.step_us.microseconds)
        by_series.setdefault(series, []).append(place)
    for places in by_series.values():
        if len(places) > 1:
            flag = finding("too-alike", runs=len(places))
            flags += [(place, flag) for place in places]
    for places in row_groups(table, (*IDENTITY, "steps_trained")):
        seconds = [m.window.seconds for place in places if (m := trials[place].record.measurement)]
        if len(seconds) > 2 and max(seconds) - min(seconds) < CLOCK_SECONDS:
            flag = finding("too-alike", windows=len(seconds))
            flags += [(place, flag) for place in places if trials[place].summary]
    return flags


def _ends(table: DataFrame, trials: Sequence[Trial]) -> list[tuple[int, Finding]]:
    """Runs that end better than one more run of their cell would: one-sided prediction intervals.

    mean ± t(n − 1) · s · √(1 + 1/n) of the n others, at a level that holds for the cell.
    """
    flags: list[tuple[int, Finding]] = []
    for places in row_groups(table, (*IDENTITY, "steps_trained")):
        believed = [place for place in places if trials[place].verdict != "invalid"]
        for name in ("quality", "valid_loss", "train_loss"):
            ends = {place: end for place in believed if (end := _end(trials[place], name)) is not None}
            for place, value in ends.items():
                others = [end for other, end in ends.items() if other != place]
                if len(others) >= LEAST_OTHERS and _beyond(value, others, 3 * len(ends)):
                    shown = name.replace("quality", trials[place].quality_name or name).replace("_", " ")
                    found = finding(
                        "ends-too-well",
                        quantity=shown,
                        value=abs(value),
                        others=len(others),
                        others_mean=abs(fmean(others)),
                    )
                    flags.append((place, found))
    return flags


def _end(trial: Trial, name: str) -> float | None:
    """Its end by one metric, with the sign that makes more the better; null where it has none."""
    if name == "train_loss":
        value = trial.train_loss
    else:
        epoch = trial.last_validated
        value = getattr(epoch, name) if epoch else None
    if value is None or not math.isfinite(value):
        return None
    return value if name == "quality" and trial.quality_name in ("accuracy", "auc") else -value


def _beyond(value: float, others: Sequence[float], tests: int) -> bool:
    middle, count = fmean(others), len(others)
    quantile = float(special.stdtrit(count - 1, 1 - ENDS_LEVEL / tests))
    reach = quantile * stdev(others) * math.sqrt(1 + 1 / count)
    return value - middle > max(reach, LEAST_GAIN * abs(middle))


def _starts(table: DataFrame, trials: Sequence[Trial]) -> list[tuple[int, Finding]]:
    """Runs whose loss after one epoch is below the lowest that any equal run reached in all its epochs."""
    flags: list[tuple[int, Finding]] = []
    for places in row_groups(table, KEY):
        for name in ("train_loss", "valid_loss"):
            curves = {place: _curve(trials[place], name) for place in places}
            lowest = {
                place: min(curve)
                for place, curve in curves.items()
                if len(curve) >= LEAST_EPOCHS and trials[place].verdict != "invalid"
            }
            for place, curve in curves.items():
                others = [low for other, low in lowest.items() if other != place]
                if curve and len(others) > 1 and curve[0] < (1 - LEAST_GAIN) * min(others):
                    found = finding(
                        "starts-too-well",
                        quantity=name.replace("_", " "),
                        value=curve[0],
                        others=len(others),
                        others_best=min(others),
                    )
                    flags.append((place, found))
    return flags


def _curve(trial: Trial, name: str) -> list[float]:
    """A loss after each complete epoch, from the first on; empty where one is missing or not finite."""
    epochs = [epoch for epoch in trial.epochs if epoch.complete]
    values = [getattr(epoch, name) for epoch in epochs]
    return values if all(value is not None and math.isfinite(value) for value in values) else []
