"""Trials → cells: the runs of one variant on one machine in one session, each figure with its interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pandas import DataFrame

from report.comparisons.figures import Figure, Run, figure, left_out, most_proven
from report.metrics import FIGURES
from report.stats.intervals import Interval, Runs, blocks_interval
from report.text import unit_name
from report.trials.columns import IDENTITY, check
from report.trials.key import Key, ProtocolLength, Stack
from report.trials.pairs import grouped_by, same_but
from report.trials.table import figures, row_groups, trials_of
from report.trials.trial import Trial

PROJECTION_TOLERANCE = 0.01
"""A projection further than this from the whole run judges no claim."""


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
    best_quality: Figure
    early_fall: Figure
    valid_loss: Figure
    train_loss: Figure
    smoothed_train_loss: Figure
    test_quality: Figure
    peak_bytes: Figure
    allocated_bytes: Figure
    input_share: Figure
    host_share: Figure
    joules: Figure
    verdict: str
    """valid, warn, unproven, or invalid, of the runs that count: unproven unless most are proven."""
    takes_unproven: bool
    """Whether unproven runs count: where most are, or where the speed would be another without them."""

    @property
    def started_at(self) -> datetime:
        return self.trials[-1].started_at

    @property
    def turn(self) -> tuple[int, datetime]:
        """Sorts one machine's cells as it measured them: between machines nothing is newer."""
        return self.trials[-1].turn, self.started_at

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.device_unit for trial in self.trials if trial.device_unit))

    @property
    def blocks(self) -> int:
        return len({trial.record.block for trial in self.trials})

    @property
    def unproven_left_out(self) -> tuple[Trial, ...]:
        """Unproven runs that take no part."""
        if self.takes_unproven:
            return ()
        return tuple(trial for trial in self.trials if trial.verdict == "unproven")

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


def cells_of(table: DataFrame) -> tuple[Cell, ...]:
    """Groups the measured trials by key, length, stack, session, machine and card.

    Cells and the trials of each are in the table's order. Raises UserError where the table lacks a column.
    """
    check(table)
    measured = table[table["status"] == "ok"]
    trials = trials_of(measured)
    columns = {name: figures(measured, metric.column or name) for name, metric in FIGURES.items()}
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
    blocks, verdicts = [trial.record.block for trial in trials], [trial.verdict for trial in trials]
    runs = {
        name: [
            Run(value, block, verdict)
            for value, block, verdict in zip(column, blocks, verdicts, strict=True)
            if value is not None and math.isfinite(value)
        ]
        for name, column in values.items()
    }
    without = left_out(verdicts, runs["throughput"])
    metrics = {
        name: figure(of, without, in_blocks=not FIGURES[name].at_any_hour) for name, of in runs.items()
    }
    lengths = {(trial.epochs_trained, trial.steps_trained) for trial in trials if trial.verdict != "invalid"}
    if len(lengths) > 1:
        metrics |= {name: Figure(()) for name, metric in FIGURES.items() if metric.of_one_length}
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
        takes_unproven="unproven" not in without and any(trial.verdict == "unproven" for trial in trials),
        **metrics,
    )


def _verdict(trials: Sequence[Trial], without: frozenset[str]) -> str:
    """Unproven where most are; a warning where some are, and count."""
    counted = [trial.verdict for trial in trials if trial.verdict not in without]
    unproven = counted.count("unproven")
    if not counted:
        return "invalid"
    if not most_proven(len(counted) - unproven, unproven):
        return "unproven"
    return "warn" if unproven or "warn" in counted else "valid"


def selected_alike(of: Cell, over: Cell, figure: Figure, other: Figure) -> tuple[Runs, Runs]:
    """The runs of a figure of both: where unproven ones count on one side, they do on the other."""
    if of.takes_unproven or over.takes_unproven:
        return figure.with_unproven, other.with_unproven
    return figure.runs, other.runs


def side_by_side(of: Cell, over: Cell) -> bool:
    """Whether both ran on one machine in one session, so that what an hour does is common to both."""
    return (of.machine, of.session) == (over.machine, over.session)


def repeated(pair: tuple[Cell, Cell]) -> bool:
    """Whether the ratio of a pair may have an interval, and so counts as one of several comparisons."""
    return all(cell.throughput.n > 1 for cell in pair)


def cell_ratio(of: Cell, over: Cell, name: str, *, comparisons: int = 1) -> Ratio | None:
    """The ratio of one figure of two cells, by its attribute's name; without an interval, of the means.

    The level holds for all `comparisons` together.
    """
    return figure_ratio(of, over, getattr(of, name), getattr(over, name), comparisons=comparisons)


def figure_ratio(
    of: Cell, over: Cell, figure: Figure, other: Figure, *, comparisons: int = 1
) -> Ratio | None:
    """The same of a figure that each cell has, which need not be an attribute of it."""
    runs, others = selected_alike(of, over, figure, other)
    if runs.mean is None or others.mean is None:
        return None
    interval = blocks_interval(runs, others, paired=side_by_side(of, over), comparisons=comparisons)
    if interval is not None:
        interval = replace(interval, notes=(*interval.notes, *_selection(of, over, figure, other)))
    n = len(runs.values), len(others.values)
    return Ratio(interval.estimate if interval else runs.mean / others.mean, interval, n)


def _selection(of: Cell, over: Cell, figure: Figure, other: Figure) -> tuple[str, ...]:
    """What was left out on either side, or taken in on both."""
    if of.takes_unproven != over.takes_unproven and (of.unproven_left_out or over.unproven_left_out):
        return ("unproven runs count on both sides, as they must on one",)
    return tuple(dict.fromkeys((*figure.notes, *other.notes)))


def own_spread(of: Figure) -> Ratio | None:
    """The reference against itself: 1.00 with the interval of its own geometric mean."""
    if of.mean is None:
        return None
    interval = blocks_interval(of.runs, paired=True)
    if interval is None:
        return Ratio(1.0, None, (of.n, of.n))
    low, high = interval.low / interval.estimate, interval.high / interval.estimate
    return Ratio(1.0, replace(interval, low=low, estimate=1.0, high=high), (of.n, of.n))


def fewest_runs(cells: Sequence[Cell]) -> int:
    """The runs of the figure that has the fewest; a whole run beside projections does not count."""
    return min(runs_of_figures(cells), default=0)


def runs_of_figures(cells: Sequence[Cell]) -> list[int]:
    """How many runs each figure averages, where it has any."""
    alike = grouped_by(cells, same_but(within=("session", "card", "stack"))).values()
    return [n for same in alike if (n := max(cell.throughput.n for cell in same))]


def input_bound(cell: Cell) -> bool:
    """Whether a trial waited for input for more than a tenth of its time."""
    return any(found.name == "input-bound" for trial in cell.trials for found in trial.causes)


def standing(cell: Cell) -> str:
    """What a cell's row in the table says of it."""
    words = [cell.verdict if cell.verdict != "valid" else ""]
    words.append("projected" if cell.length.projected else "whole run")
    words.append("generated data" if cell.key.data_source == "generated" else "")
    words.append("random weights" if cell.key.weights == "random" else "")
    environments = [trial.environment for trial in cell.trials]
    words.append("unpinned" if any(not used.pinned for used in environments) else "")
    words.append("base substituted" if any(used.base_substituted for used in environments) else "")
    words.append("input-bound" if input_bound(cell) else "")
    return ", ".join(part for part in words if part)


def unit_of(cell: Cell) -> str:
    """The card of a cell in its machine."""
    return unit_name(cell.card, cell.machine_label)
