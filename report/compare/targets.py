"""Time to a target over the repeats of a cell: epochs and seconds, where every run of it had the target."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from report.compare.cells import Cell
from report.compare.figures import Figure, Run, figure
from report.trials.learning import Reached, more_is_better, reached
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class ToTarget:
    """How long the runs of one cell took to a target.

    Where a run ended without it, nothing but a bound is known of that run: it is counted, and neither figure
    has a value, since a mean of the others would be of the fast ones.
    """

    target: float
    epochs: Figure
    seconds: Figure
    reached: int
    runs: int


def to_target(cell: Cell, target: float) -> ToTarget:
    """The epochs and seconds to one target, of the runs that count."""
    without = frozenset({"invalid"} if cell.takes_unproven else {"invalid", "unproven"})
    if cell.verdict == "unproven":
        without = frozenset({"invalid"})
    counted = [
        trial for trial in cell.trials if trial.verdict not in without and trial.best_quality is not None
    ]
    found = [(trial, place) for trial in counted if (place := target_reached(trial, target)) is not None]
    whole = found if len(found) == len(counted) else []

    def figure_of(read: Callable[[Reached], float], *, in_blocks: bool) -> Figure:
        runs = [Run(read(place), trial.record.block, trial.verdict) for trial, place in whole]
        return figure(runs, without, in_blocks=in_blocks)

    return ToTarget(
        target=target,
        epochs=figure_of(lambda place: float(place.epochs), in_blocks=False),
        seconds=figure_of(lambda place: place.seconds, in_blocks=True),
        reached=len(found),
        runs=len(counted),
    )


def target_reached(trial: TrialResult, target: float) -> Reached | None:
    """When one trial had a target; null where it did not."""
    return reached(trial.record.measurement, target) if trial.record.measurement else None


def targets_of(cells: Iterable[Cell]) -> tuple[float, ...]:
    """All targets that the cells' trials were given, the easiest first."""
    trials = [trial for cell in cells for trial in cell.trials]
    stated = {target for trial in trials for target in trial.record.trial.targets}
    rising = any(trial.record.measurement and more_is_better(trial.record.measurement) for trial in trials)
    return tuple(sorted(stated, reverse=not rising))
