"""Trials → cells: the runs of one variant on one machine in one session, each figure with its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import NamedTuple

from report.metrics import FIGURES
from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.key import LOADER_ALONE, Key, ProtocolLength, Stack, grouped_by
from report.trials.learning import Reached, learning_key, more_is_better, target_place
from report.trials.trial import PROVEN, TrialResult, identity_of, most_proven


class Run(NamedTuple):
    """One run's value, the block of time that it belongs to, and its verdict."""

    value: float
    block: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Figure(Runs):
    """The runs of one metric that count, and the interval of their mean."""

    interval: Interval | None = None
    unproven: Runs | None = None
    """The unproven runs, where they take no part in the mean."""

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def with_unproven(self) -> Runs:
        """Return the runs that count, and the unproven ones."""
        if self.unproven is None:
            return self
        return Runs(self.values + self.unproven.values, self.blocks + self.unproven.blocks)


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
    trials: tuple[TrialResult, ...]
    figures: Mapping[str, Figure] = field(hash=False)
    """By the names of `report.metrics.FIGURES`."""
    verdict: str
    """valid, warn, unproven, or invalid, of the runs that count: unproven unless most are proven."""
    left_out: frozenset[str]
    """The verdicts whose runs do not count: unproven ones do where most are, or change the speed."""

    @property
    def seconds(self) -> Figure:
        """The seconds of the whole protocol."""
        return self.figures["seconds"]

    @property
    def throughput(self) -> Figure:
        """Samples per second of all devices together."""
        return self.figures["throughput"]

    @property
    def all_runs(self) -> Runs:
        """Samples per second of every run that is not invalid, whether it settled or not."""
        return self.throughput.with_unproven

    @property
    def started_at(self) -> datetime:
        return self.trials[-1].record.started_at

    @property
    def turn(self) -> tuple[int, datetime]:
        """Sorts one machine's cells as it measured them: between machines nothing is newer."""
        return self.trials[-1].turn, self.started_at

    @property
    def units(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(trial.device_unit for trial in self.trials if trial.device_unit))

    @property
    def quality_name(self) -> str:
        """What its quality is: 'accuracy', 'perplexity'; empty where it has none."""
        return next((trial.quality_name for trial in self.trials if trial.quality_name), "")

    @property
    def blocks(self) -> int:
        return len({trial.record.block for trial in self.trials})

    @property
    def settled(self) -> bool:
        """Whether the windows of all its runs settled."""
        return all(trial.verdict != "unproven" for trial in self.trials)

    @property
    def seeds_itself(self) -> bool:
        """Whether each of several runs learned the same: its program sets its own seed, wherever it runs."""
        return len(self.trials) > 1 and len(_distinct_trials(self.trials)) == 1

    @property
    def ranked(self) -> bool:
        """Whether it may be said to be faster or slower than another (rules 5, 7; generated data never)."""
        return self.verdict in PROVEN and self.key.data_source != "generated"


def cells_of(trials: Iterable[TrialResult]) -> tuple[Cell, ...]:
    """Groups the measured trials by key, length, stack, session, machine and card, in the order given."""
    measured = [trial for trial in trials if trial.record.status == "ok"]
    return tuple(cell_of(tuple(repeats)) for repeats in grouped_by(measured, identity_of).values())


def own_and_other_cells(
    cells: Sequence[Cell], lead: str | None, earlier: Collection[str]
) -> tuple[tuple[Cell, ...], tuple[Cell, ...]]:
    """Return the cells of a machine, and the newest cell of each work, stack and machine beside it.

    Its own are those of the leading session, then the newest of its `earlier` ones that did other work.
    """
    leading = [cell for cell in cells if cell.session == lead]
    known = set(map(_work_on_machine, leading))
    rest = sorted((cell for cell in cells if cell.session != lead), key=lambda cell: cell.turn)
    newest = {_work_on_machine(cell): cell for cell in rest}
    mine = {place for place, cell in newest.items() if cell.session in earlier and place not in known}
    own = sorted((newest[place] for place in mine), key=lambda cell: cell.turn, reverse=True)
    return (*leading, *own), tuple(cell for place, cell in newest.items() if place not in mine)


def _work_on_machine(cell: Cell) -> Hashable:
    return cell.key, cell.length, cell.machine, cell.card, cell.stack


def cell_of(trials: tuple[TrialResult, ...]) -> Cell:
    first = trials[0]
    # Where one run of a limit ended and another was stopped by it, all of them count as projected.
    length = next((trial.length for trial in trials if trial.length and trial.length.projected), first.length)
    assert length is not None
    verdicts = [trial.verdict for trial in trials]
    distinct = _distinct_trials(trials)
    runs = {
        name: [
            Run(value, trial.record.block, trial.verdict)
            for trial in (distinct if metric.kind == "quality" else trials)
            if (value := metric.of(trial)) is not None and math.isfinite(value)
        ]
        for name, metric in FIGURES.items()
    }
    without = verdicts_left_out(verdicts, runs["throughput"])
    figures = {
        name: figure_of_runs(of, without, in_blocks=not FIGURES[name].at_any_hour)
        for name, of in runs.items()
    }
    lengths = {(trial.epochs_trained, trial.steps_trained) for trial in trials if trial.verdict != "invalid"}
    if len(lengths) > 1:
        figures |= {name: Figure(()) for name, metric in FIGURES.items() if metric.of_one_length}
    return Cell(
        key=first.key,
        length=length,
        stack=first.stack,
        session=first.session,
        machine=first.machine,
        machine_label=first.machine_label,
        card=first.card,
        trials=trials,
        verdict=_verdict(trials, without),
        left_out=without,
        figures=figures,
    )


def _distinct_trials(trials: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Without runs of which another has every loss and quality: their program sets its own seed."""
    found: dict[Hashable, TrialResult] = {}
    for trial in trials:
        measured = trial.record.measurement
        found.setdefault((measured and learning_key(measured)) or trial.path, trial)
    return tuple(found.values())


def _verdict(trials: Sequence[TrialResult], without: frozenset[str]) -> str:
    """Unproven where most are; a warning where some are, and count."""
    counted = [trial.verdict for trial in trials if trial.verdict not in without]
    unproven = counted.count("unproven")
    if not counted:
        return "invalid"
    if not most_proven(len(counted) - unproven, unproven):
        return "unproven"
    return "warn" if unproven or "warn" in counted else "valid"


def figure_of_runs(runs: Sequence[Run], without: Collection[str], *, in_blocks: bool) -> Figure:
    """Return the figure of the runs but those with a verdict in `without`.

    `in_blocks` says that another hour of the machine may change the values.
    """
    counted = _runs_with(runs, {run.verdict for run in runs}.difference(without), in_blocks)
    unproven = _runs_with(runs, ["unproven"], in_blocks) if "unproven" in without else None
    return Figure(counted.values, counted.blocks, _mean_interval(counted), unproven)


def verdicts_left_out(verdicts: Sequence[str], rates: Sequence[Run]) -> frozenset[str]:
    """Return the verdicts whose trials take no part: invalid, and unproven next to three or more proven ones.

    Whether a speed settled goes with how high it is. So unproven trials stay in where the mean of the `rates`
    would be another without them: where with them it is outside the interval of the proven ones.
    """
    unproven, proven = verdicts.count("unproven"), sum(verdict in PROVEN for verdict in verdicts)
    if not unproven or not most_proven(proven, unproven):
        return frozenset({"invalid"})
    interval = _mean_interval(_runs_with(rates, PROVEN, True))
    together = _runs_with(rates, (*PROVEN, "unproven"), True).mean
    if interval is not None and together is not None and not interval.includes(together):
        return frozenset({"invalid"})
    return frozenset({"invalid", "unproven"})


def _runs_with(runs: Sequence[Run], verdicts: Collection[str], in_blocks: bool) -> Runs:
    chosen = [run for run in runs if run.verdict in verdicts]
    blocks = tuple(run.block for run in chosen) if in_blocks else ()
    return Runs(tuple(run.value for run in chosen), blocks)


def _mean_interval(runs: Runs) -> Interval | None:
    """The interval of the mean; what cannot be below zero is not said to be."""
    interval = blocks_interval(runs, logs=False)
    if interval is None or interval.low >= 0 or min(runs.values) < 0:
        return interval
    return replace(interval, low=0.0)


def is_side_by_side(of: Cell, over: Cell) -> bool:
    """Whether both ran on one machine in one session, so that what an hour does is common to both."""
    return (of.machine, of.session) == (over.machine, over.session)


def fewest_runs(cells: Iterable[Cell]) -> int:
    """Return the runs of the figure that has the fewest; a whole run next to projections does not count."""
    alike = grouped_by(cells, lambda cell: (cell.key, cell.session, cell.card, cell.stack)).values()
    return min((n for same in alike if (n := max(cell.throughput.n for cell in same))), default=0)


def states_of(cell: Cell) -> tuple[str, ...]:
    """What a reader has to know of a line before its figures."""
    environments = [trial.environment for trial in cell.trials]
    states = {
        cell.verdict: cell.verdict != "valid",
        "projected": cell.length.projected,
        "generated": cell.key.data_source == "generated",
        "random-weights": cell.key.weights == "random",
        "unpinned": any(not used.pinned for used in environments),
        "base-substituted": any(used.base_substituted for used in environments),
        "input-bound": any(found.name == "input-bound" for each in cell.trials for found in each.causes),
    }
    return tuple(name for name, holds in states.items() if holds)


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """Shares of the steady steps' time; they add up to 1.

    Where the device keeps no clock of its own, `compute` is all that did not wait for input, `other` null.
    """

    input_wait: float
    compute: float
    other: float | None


def time_breakdown(cell: Cell) -> TimeBreakdown | None:
    """The means over all valid runs: other = host-bound share − input wait, compute = the device's own time.

    Null where the wait for input was not measured, and of a loader alone, whose work it is.
    """
    waited, host = cell.figures["input_share"].mean, cell.figures["host_share"].mean
    if waited is None or cell.key.protocol == LOADER_ALONE:
        return None
    waited = min(max(waited, 0.0), 1.0)
    if host is None:
        return TimeBreakdown(waited, 1 - waited, None)
    other = min(max(host - waited, 0.0), 1 - waited)
    return TimeBreakdown(waited, 1 - waited - other, other)


@dataclass(frozen=True, slots=True)
class ToTarget:
    """How long the runs of one cell took to a target.

    Where a run ended without it, nothing but a bound is known of that run: it is counted, and neither figure
    has a value, since a mean of the others would be of the fast ones.
    """

    epochs: Figure
    seconds: Figure
    reached: int
    runs: int


def to_target(cell: Cell, target: float) -> ToTarget:
    """The epochs and seconds to one target, of the runs that count; one that was lost did not reach it."""
    counted = [
        trial
        for trial in _distinct_trials(cell.trials)
        if trial.lost or (trial.verdict not in cell.left_out and trial.best_quality is not None)
    ]
    learned = ((trial, trial.record.measurement) for trial in counted if not trial.lost)
    reached = ((trial, target_place(measured, target)) for trial, measured in learned if measured)
    found = [(trial, place) for trial, place in reached if place is not None]
    whole = found if len(found) == len(counted) else []

    def figure_of(read: Callable[[Reached], float], *, in_blocks: bool) -> Figure:
        runs = [Run(read(place), trial.record.block, trial.verdict) for trial, place in whole]
        return figure_of_runs(runs, cell.left_out, in_blocks=in_blocks)

    return ToTarget(
        epochs=figure_of(lambda place: float(place.epochs), in_blocks=False),
        seconds=figure_of(lambda place: place.seconds, in_blocks=True),
        reached=len(found),
        runs=len(counted),
    )


def targets_of(cells: Iterable[Cell]) -> tuple[float, ...]:
    """All targets that the cells' trials were given, the easiest first."""
    trials = [trial for cell in cells for trial in cell.trials]
    stated = {target for trial in trials for target in trial.record.trial.targets}
    rising = any(trial.record.measurement and more_is_better(trial.record.measurement) for trial in trials)
    return tuple(sorted(stated, reverse=not rising))
