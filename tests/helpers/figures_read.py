"""What several adapters read, made as the page makes it, and the shapes that they share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from report.analysis import Analysis
from report.compare.cells import Cell, Ratio
from report.compare.figures import Figure
from report.compare.spread import UnitBand
from report.stats.intervals import Interval
from report.trials.key import Key, ProtocolLength
from report.trials.trial import TrialResult


def workloads(analysis: Analysis) -> dict[str, tuple[list[Cell], list[TrialResult]]]:
    """By workload, in the page's order: all cells of the machines that stand on it, and its failures."""
    beside = {(entry.cell.session, entry.cell.machine) for c in analysis.groups for entry in c.entries}
    near = [cell for cell in analysis.cells if (cell.session, cell.machine) in beside]
    failed = [trial for trial in analysis.own if trial.failure is not None]
    return {
        name: (
            [cell for cell in near if cell.key.workload == name],
            [trial for trial in failed if trial.key.workload == name],
        )
        for name in dict.fromkeys(group.base.workload for group in analysis.groups)
    }


def trial(path: str) -> str:
    """A trial's path without date and machine: `20260131-aaaaaa/word_lm-r1-0123456789ab`."""
    parts = Path(path).with_suffix("").parts
    return f"{parts[-2][-15:]}/{parts[-1]}"


def trials_of(cell: Cell) -> list[str]:
    """Without the session, which is one for all."""
    return [trial(row.path).partition("/")[2] for row in cell.trials]


def first_trial(cell: Cell) -> str:
    """What a cell is called where it stands as a side of a ratio."""
    return trial(cell.trials[0].path)


def key(of: Key) -> dict[str, Any]:
    """The fields that keep figures apart here, with their values. Hashes by their start."""
    fields = {
        "workload": of.workload,
        "protocol": of.protocol,
        "model": of.model,
        "precision": of.precision or None,
        "batch_size": of.batch_size or None,
        "data_source": of.data_source,
        "data_sha256": of.data_sha256 and of.data_sha256[:12],
        "data_mode": of.data_mode,
        "weights": of.weights,
        "weights_sha256": of.weights_sha256 and of.weights_sha256[:12],
        "image_size": of.image_size,
        "sequence_length": of.sequence_length,
        "layout": of.layout,
        "profile": of.profile,
        "devices": of.gpus,
        "options": dict(of.options) or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def length(of: ProtocolLength) -> dict[str, Any]:
    return {
        "steps_per_epoch": of.steps_per_epoch,
        "epochs": of.epochs,
        "validation_batches": of.valid_batches,
        "projected": of.projected,
        "limit": dict(of.limit),
    }


def figure(of: Figure) -> list[Any] | None:
    """A metric over trials: mean, low and high end of its interval, and how many runs.

    Null where no trial has it. What takes no part in the mean is listed at the end.
    """
    if not of.values and not of.apart:
        return None
    mean = None if of.mean is None else float(of.mean)
    ends = [of.interval.low, of.interval.high] if of.interval else [None, None]
    apart = [[float(value) for value in of.apart]] if of.apart else []
    return [mean, *ends, of.n, *apart]


def interval(of: Interval | None) -> list[Any] | None:
    if of is None:
        return None
    return [of.low, of.estimate, of.high, of.n, of.df, of.comparisons]


def ratio(of: Ratio | None) -> list[Any] | None:
    """A ratio with its interval: estimate, low, high, runs of each side, comparisons."""
    if of is None:
        return None
    ends = of.interval
    if ends is None:
        return [of.estimate, None, None, of.n, None]
    return [of.estimate, ends.low, ends.high, of.n, ends.comparisons]


def band(of: UnitBand) -> dict[str, Any]:
    return {"reach": of.reach, "measured": of.measured, "units": of.units}
