"""The figure of a cell, or of a trial, that a claim is of."""

from __future__ import annotations

from harness.record import Claim
from report.compare.cells import Cell
from report.compare.figures import Figure
from report.compare.targets import target_reached, to_target
from report.metrics import CLAIMED
from report.trials.trial import TrialResult


def figure_of(claim: Claim, cell: Cell) -> Figure | None:
    """What a cell has of a claim's metric; null where no cell has it."""
    if claim.target is not None:
        found = to_target(cell, claim.target)
        return found.epochs if claim.metric == "epochs_to_target" else found.seconds
    return measured_of(cell, claim.metric)


def measured_of(cell: Cell, metric: str) -> Figure | None:
    """What a cell has of a metric of claims that is of no target; null where no cell has it."""
    return cell.figures.get(CLAIMED[metric].name)


def value_of(claim: Claim, trial: TrialResult) -> float | None:
    """What one trial has of a claim's metric."""
    if claim.target is not None:
        place = target_reached(trial, claim.target)
        if place is None:
            return None
        return float(place.epochs) if claim.metric == "epochs_to_target" else place.seconds
    return CLAIMED[claim.metric].of(trial)
