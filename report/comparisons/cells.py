"""Trials → cells: the runs of one variant on one machine in one session, each figure with its interval."""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from statistics import fmean

from pandas import DataFrame

from harness.summary.checks import cause_name
from report.stats.intervals import (
    Interval,
    Runs,
    between_machines,
    log_mean_interval,
    mean_interval,
    within_machine,
)
from report.text import unit_name
from report.trials.columns import IDENTITY, check
from report.trials.key import Key, ProtocolLength, Stack
from report.trials.pairs import grouped_by, same_but
from report.trials.table import figures, row_groups, trials_of
from report.trials.trial import Trial

PROJECTION_TOLERANCE = 0.01
"""A projection further than this from the whole run judges no claim."""

FIGURES = {
    "seconds": "protocol_seconds",
    "epoch_seconds": "epoch_seconds",
    "throughput": "samples_per_second",
    "step_seconds": "step_seconds",
    "quality": "quality",
    "valid_loss": "valid_loss",
    "train_loss": "train_loss",
    "peak_bytes": "peak_bytes",
    "input_share": "input_share",
    "host_share": "host_share",
    "joules": "joules_per_sample",
}
"""Each figure of a cell, and the column that it is of."""

OF_ONE_LENGTH = ("quality", "valid_loss", "train_loss")
"""What a cell has only where its trials trained equally long."""

LEAST_PROVEN = 3
"""Proven runs beside which a cell's unproven ones, if fewer, are set apart."""


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs of one metric: every value is kept, the mean and interval are of those that count."""

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()
    """The block of time that each value belongs to."""
    apart: tuple[float, ...] = ()
    """Of trials that are shown and take no part in the mean."""
    mean: float | None = None
    interval: Interval | None = None

    @property
    def n(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Cell:
    """Trials that differ in nothing but their repeat."""

    key: Key
    length: ProtocolLength
    stack: Stack
    session: str
    machine: str
    machine_label: str
    card: str
    trials: tuple[Trial, ...]
    seconds: Figure
    epoch_seconds: Figure
    throughput: Figure
    step_seconds: Figure
    quality: Figure
    valid_loss: Figure
    train_loss: Figure
    peak_bytes: Figure
    input_share: Figure
    host_share: Figure
    joules: Figure
    verdict: str
    """valid, warn, unproven, or invalid, of the runs that count: unproven unless most are proven."""

    @property
    def started_at(self) -> datetime:
        return self.trials[-1].started_at

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.device_unit for trial in self.trials if trial.device_unit))

    @property
    def blocks(self) -> int:
        return len({trial.record.block for trial in self.trials})

    @property
    def ranked(self) -> bool:
        """Whether it may be said to be faster or slower than another (rules 5, 7; generated data never)."""
        return self.verdict in ("valid", "warn") and self.key.data_source != "generated"


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times `of` is as much as `over`: an interval where both have at least two runs."""

    estimate: float
    interval: Interval | None
    n: tuple[int, int]

    @property
    def tied(self) -> bool | None:
        """Whether the interval includes 1; null without an interval."""
        return None if self.interval is None else self.interval.includes(1.0)


def _figure(values: Sequence[float | None], trials: Sequence[Trial], without: Container[str]) -> Figure:
    """All finite values; those of trials whose verdict is in `without` are kept apart from the mean."""
    finite = [
        (value, trial)
        for value, trial in zip(values, trials, strict=True)
        if value is not None and math.isfinite(value)
    ]
    counted = [(value, trial.record.block) for value, trial in finite if trial.verdict not in without]
    apart = tuple(value for value, trial in finite if trial.verdict in without)
    if not counted:
        return Figure((), (), apart)
    counted_values, blocks = zip(*counted, strict=True)
    return Figure(counted_values, blocks, apart, fmean(counted_values), _not_below_zero(counted_values))


def _not_below_zero(values: Sequence[float]) -> Interval | None:
    """Student's interval; what cannot be below zero is not said to be."""
    interval = mean_interval(values)
    if interval is None or interval.low >= 0 or min(values) < 0:
        return interval
    return replace(interval, low=0.0)


def olympic_mean(values: Sequence[float]) -> float | None:
    """The mean without the least and the most, as MLPerf prints it; null below its five runs."""
    return fmean(sorted(values)[1:-1]) if len(values) >= 5 else None


def cells_of(table: DataFrame) -> tuple[Cell, ...]:
    """Groups the measured trials by key, length, stack, session, machine and card.

    Cells and the trials of each are in the table's order. Raises UserError where the table lacks a column.
    """
    check(table)
    measured = table[table["status"] == "ok"]
    trials = trials_of(measured)
    columns = {name: figures(measured, column) for name, column in FIGURES.items()}
    return tuple(
        _cell(
            tuple(trials[place] for place in repeats),
            {name: [values[place] for place in repeats] for name, values in columns.items()},
        )
        for repeats in row_groups(measured, IDENTITY)
    )


def _cell(trials: tuple[Trial, ...], values: Mapping[str, Sequence[float | None]]) -> Cell:
    first = trials[0]
    assert first.length is not None
    without = _without(trials)
    figure = {name: _figure(column, trials, without) for name, column in values.items()}
    lengths = {(trial.epochs_trained, trial.steps_trained) for trial in trials if trial.verdict != "invalid"}
    if len(lengths) > 1:
        figure |= dict.fromkeys(OF_ONE_LENGTH, Figure(()))
    return Cell(
        key=first.key,
        length=first.length,
        stack=first.stack,
        session=first.session,
        machine=first.machine,
        machine_label=first.machine_label,
        card=first.card,
        trials=trials,
        verdict=_verdict(trials, without),
        **figure,
    )


def _without(trials: Sequence[Trial]) -> frozenset[str]:
    """The verdicts whose trials take no part: invalid, and unproven beside three proven ones, and more."""
    unproven = sum(trial.verdict == "unproven" for trial in trials)
    proven = sum(trial.verdict in ("valid", "warn") for trial in trials)
    most = proven >= LEAST_PROVEN and proven > unproven
    return frozenset({"invalid", "unproven"} if most else {"invalid"})


def _verdict(trials: Sequence[Trial], without: frozenset[str]) -> str:
    counted = {trial.verdict for trial in trials} - without
    for word in ("unproven", "warn", "valid"):
        if word in counted:
            return word
    return "invalid"


def ratio(of: Figure, over: Figure, *, one_machine: bool, comparisons: int = 1) -> Ratio | None:
    """`of` ÷ `over` with its interval; without one, the ratio of the means.

    On one machine the differences within blocks are the replicates, between machines the block means; the
    level holds for all `comparisons` together.
    """
    if of.mean is None or over.mean is None:
        return None
    compare = within_machine if one_machine else between_machines
    interval = compare(
        Runs(of.values, of.blocks), Runs(over.values, over.blocks), comparisons=max(comparisons, 1)
    )
    estimate = interval.estimate if interval else of.mean / over.mean
    return Ratio(estimate, interval, (of.n, over.n))


def cell_ratio(of: Cell, over: Cell, name: str, *, comparisons: int = 1) -> Ratio | None:
    """The ratio of one figure of two cells, by its attribute's name."""
    together = (of.machine, of.session) == (over.machine, over.session)
    return ratio(getattr(of, name), getattr(over, name), one_machine=together, comparisons=comparisons)


def own_spread(of: Figure) -> Ratio | None:
    """The reference against itself: 1.00 with the interval of its own geometric mean."""
    if of.mean is None:
        return None
    interval = log_mean_interval(of.values)
    if interval is None:
        return Ratio(1.0, None, (of.n, of.n))
    low, high = interval.low / interval.estimate, interval.high / interval.estimate
    return Ratio(1.0, replace(interval, low=low, estimate=1.0, high=high), (of.n, of.n))


def fewest_runs(cells: Sequence[Cell]) -> int:
    """The runs of the figure that has the fewest; a whole run beside projections does not count."""
    alike = grouped_by(cells, same_but(within=("session", "card", "stack"))).values()
    most = [max(cell.throughput.n for cell in same) for same in alike]
    return min((n for n in most if n), default=0)


def input_bound(cell: Cell) -> bool:
    """Whether a trial waited for input for more than a tenth of its time."""
    return any(cause_name(cause) == "input-bound" for trial in cell.trials for cause in trial.causes)


def standing(cell: Cell) -> str:
    """What a cell's row in the table says of it."""
    words = [cell.verdict if cell.verdict != "valid" else ""]
    words.append("projected" if cell.length.projected else "whole run")
    words.append("generated data" if cell.key.data_source == "generated" else "")
    words.append("random body" if cell.key.weights == "random" else "")
    environments = [trial.environment for trial in cell.trials]
    words.append("unpinned" if any(not used.pinned for used in environments) else "")
    words.append("base substituted" if any(used.base_substituted for used in environments) else "")
    words.append("input-bound" if input_bound(cell) else "")
    return ", ".join(part for part in words if part)


def _has_unproven(cell: Cell) -> bool:
    return any(trial.verdict == "unproven" for trial in cell.trials)


def unit_of(cell: Cell) -> str:
    """The card of a cell in its machine."""
    return unit_name(cell.card, cell.machine_label)
