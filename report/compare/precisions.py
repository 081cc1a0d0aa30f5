"""One precision against another on the same machine: how much faster it is, and whether it learns as well.

Every ratio of speeds names its denominator. A speed without a verdict on the end of training says so. The
first steps are held by their losses and by their gradient norms: where gradients are clipped, one that is
wrong by the loss scale leaves the losses alike. Later losses are not held against each other step by step: a
change of one bit makes two runs diverge (Summers and Dinneen, arXiv 2103.04514).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.record import FULL_PRECISION
from report.compare.cells import Cell
from report.stats.equivalence import SEEDS, Verdict, non_inferior
from report.trials.key import grouped_by, without_fields
from report.trials.trial import TrialResult

FIRST_STEPS = 50
LEAST_POINTS = 10
"""Fewer common steps, as where the losses were thinned, show nothing."""

FOLLOWS = 0.02
"""The median of the first losses' relative differences, with their sign: where two types draw other dropout
masks, single losses differ by more, to both sides."""

NORMS_FOLLOW = 0.05
"""The same of the gradient norms, which scatter more: half gradients are rounded, their smallest are 0."""

REFERENCE = "fp32-ieee"

Unjudged = Literal["no reference", "cut short", "generated data", "no quality", "lost runs", "few seeds"]
"""Why a speed has no verdict on the end beside it."""

Points = Sequence[tuple[int, float]]
"""(step, loss or gradient norm)"""


Gate = Literal["follows", "departs", "unknown"]
"""Whether the first steps follow fp32's."""


def early_gate(fp32: Points, mixed: Points, fp32_norms: Points = (), mixed_norms: Points = ()) -> Gate:
    """Holds losses and gradient norms of the first 50 steps, of one seed and data, against fp32-ieee's.

    A norm that is not finite is of a step that the loss scale dropped, and is left out.
    """
    if any(step <= FIRST_STEPS and not math.isfinite(loss) for step, loss in mixed):
        return "departs"
    losses = _median_difference(fp32, mixed)
    if losses is None:
        return "unknown"
    norms = _median_difference(fp32_norms, mixed_norms)
    follows = abs(losses) <= FOLLOWS and (norms is None or abs(norms) <= NORMS_FOLLOW)
    return "follows" if follows else "departs"


def _median_difference(fp32: Points, mixed: Points) -> float | None:
    """Return the median of mixed ÷ fp32 − 1 over the first steps; null where too few are finite in both."""
    reference = {step: value for step, value in fp32 if step <= FIRST_STEPS and math.isfinite(value)}
    known = [
        value / reference[step] - 1 for step, value in mixed if math.isfinite(value) and reference.get(step)
    ]
    return median(known) if len(known) >= LEAST_POINTS else None


def early_gates(trials: Iterable[TrialResult]) -> tuple[tuple[TrialResult, Gate], ...]:
    """A gate for each mixed-precision trial that has its fp32-ieee twin: same session, seed and workload."""
    measured = [trial for trial in trials if trial.summary is not None]
    references = [trial for trial in measured if trial.key.precision == REFERENCE]
    mixed = [trial for trial in measured if trial.key.precision not in FULL_PRECISION]
    twins = {_trial_place(trial): trial for trial in references}
    return tuple(
        (trial, early_gate(fp32.losses, trial.losses, _norms(fp32), _norms(trial)))
        for trial in mixed
        if (fp32 := twins.get(_trial_place(trial)))
    )


def _trial_place(trial: TrialResult) -> Hashable:
    key = without_fields(trial.key, "precision")
    return key, trial.session, trial.machine, trial.stack, trial.record.trial.seed


def _norms(trial: TrialResult) -> Points:
    measured = trial.record.measurement
    return measured.gradient_norms if measured else ()


@dataclass(frozen=True, slots=True)
class Parity:
    """Whether one precision ends as well as fp32-ieee; else why its speed has no verdict beside it."""

    of: Cell
    verdict: Verdict | None
    unjudged: Unjudged | None = None


def parities(cells: Sequence[Cell]) -> tuple[Parity, ...]:
    """A verdict for each mixed-precision cell, on the final quality of whole trials; else "speed only".

    The level holds for all verdicts of one workload together.
    """
    mixed = [cell for cell in cells if cell.key.precision not in FULL_PRECISION]
    references = [cell for cell in cells if cell.key.precision == REFERENCE]
    placed = grouped_by(references, _parity_place)
    pairs = [(of, _nearest_batch(of, placed.get(_parity_place(of), ()))) for of in mixed]
    both = [(of, over) for of, over in pairs if over and not _why_unjudged(of, over)]
    enough = (of for of, over in both if min(cell.figures["quality"].n for cell in (of, over)) >= SEEDS)
    judged = Counter(map(_parity_place, enough))
    return tuple(_parity(of, over, judged[_parity_place(of)]) for of, over in pairs)


def _parity_place(cell: Cell) -> Hashable:
    """One budget of epochs on the same machine; a protocol may give each precision its own batch."""
    key = without_fields(cell.key, "precision", "batch_size")
    return key, cell.length.epochs, cell.session, cell.machine, cell.stack


def _nearest_batch(of: Cell, references: Sequence[Cell]) -> Cell | None:
    """Return the first reference of the same batch size, else the first of another."""
    return min(references, key=lambda cell: cell.key.batch_size != of.key.batch_size, default=None)


def _parity(of: Cell, over: Cell | None, comparisons: int) -> Parity:
    reason = _why_unjudged(of, over)
    if reason or over is None:
        return Parity(of, None, reason)
    more_is_better = of.trials[0].quality_name in ("accuracy", "auc")
    verdict = non_inferior(
        _final_qualities(over),
        _final_qualities(of),
        greater_is_better=more_is_better,
        comparisons=comparisons,
    )
    return Parity(of, verdict, "few seeds" if verdict.interval is None else None)


def _final_qualities(cell: Cell) -> list[float]:
    """Accuracies, or losses, which perplexities are e to the power of: the margin is one of the loss."""
    by_perplexity = cell.trials[0].quality_name == "perplexity"
    return [math.log(value) if by_perplexity else value for value in cell.figures["quality"].values]


def _why_unjudged(of: Cell, over: Cell | None) -> Unjudged | None:
    if over is None:
        return "no reference"
    if of.length.projected or over.length.projected:
        return "cut short"
    if of.key.data_source == "generated":
        return "generated data"
    if any(trial.lost for cell in (of, over) for trial in cell.trials):
        return "lost runs"
    if not of.figures["quality"].values or not over.figures["quality"].values:
        return "no quality"
    return None
