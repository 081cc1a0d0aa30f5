"""Does mixed precision work: the first steps beside fp32's, the end over seeds, and what the loss scale did.

The first steps are held by their losses and by their gradient norms: where gradients are clipped, one that is
wrong by the loss scale leaves the losses alike.

Later losses are not held against each other step by step: a change of one bit makes two runs diverge
(Summers and Dinneen, arXiv 2103.04514). A speed without a verdict on the end says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from harness.record.finding import sentence
from harness.summary.checks import scale_health
from report.comparisons.cells import Cell
from report.stats.equivalence import SEEDS, Verdict, non_inferior
from report.trials.pairs import at_same_batch, matched, same_but
from report.trials.trial import Trial

FIRST_STEPS = 50
LEAST_POINTS = 10
"""Fewer common steps, as where the losses were thinned, show nothing."""

FOLLOWS = 0.02
"""The median of the first losses' relative differences, with their sign: where two types draw other dropout
masks, single losses differ by more, to both sides."""

NORMS_FOLLOW = 0.05
"""The same of the gradient norms, which scatter more: half gradients are rounded, their smallest are 0."""

REFERENCE = "fp32-ieee"
SPEED_ONLY = "speed only, convergence not checked"

_trial_place = same_but("precision", within=("session", "machine", lambda trial: trial.record.trial.seed))
_place = same_but("precision", "batch_size", within=("epochs", "session", "machine", "stack"))
"""One budget of epochs on the same machine; a protocol may give each precision its own batch."""

Points = Sequence[tuple[int, float]]
"""(step, loss or gradient norm)"""


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether the first steps follow fp32's. `differences` are mixed ÷ fp32 − 1 of each common loss."""

    word: Literal["follows", "departs", "unknown"]
    because: str
    differences: tuple[tuple[int, float], ...] = ()


def early_gate(fp32: Points, mixed: Points, fp32_norms: Points = (), mixed_norms: Points = ()) -> Gate:
    """Holds losses and gradient norms of the first 50 steps, of one seed and data, against fp32-ieee's.

    A norm that is not finite is of a step that the loss scale dropped, and is left out.
    """
    lost = next((step for step, loss in mixed if step <= FIRST_STEPS and not math.isfinite(loss)), None)
    if lost is not None:
        return Gate("departs", f"its loss is not finite at step {lost}")
    usable = _differences(fp32, mixed)
    if len(usable) < LEAST_POINTS:
        because = f"{len(usable)} of the first {FIRST_STEPS} losses are known of both"
        return Gate("unknown", because, usable)
    off = median(difference for _, difference in usable)
    because = f"the first {len(usable)} losses differ by {off:+.2%} in the median, ±{FOLLOWS:.0%} is allowed"
    follows = abs(off) <= FOLLOWS
    norms = _differences(fp32_norms, mixed_norms)
    if len(norms) < LEAST_POINTS:
        because += "; too few gradient norms are known"
    else:
        off = median(difference for _, difference in norms)
        because += f"; {len(norms)} gradient norms by {off:+.2%}, ±{NORMS_FOLLOW:.0%} is allowed"
        follows = follows and abs(off) <= NORMS_FOLLOW
    return Gate("follows" if follows else "departs", because, usable)


def _differences(fp32: Points, mixed: Points) -> tuple[tuple[int, float], ...]:
    """(step, mixed ÷ fp32 − 1) at each of the first steps where both are finite."""
    reference = {step: value for step, value in fp32 if step <= FIRST_STEPS and math.isfinite(value)}
    return tuple(
        (step, value / reference[step] - 1)
        for step, value in mixed
        if math.isfinite(value) and reference.get(step)
    )


def early_gates(trials: Iterable[Trial]) -> tuple[tuple[Trial, Gate], ...]:
    """A gate for each mixed-precision trial that has its fp32-ieee twin: same session, seed and workload."""
    measured = [trial for trial in trials if trial.summary is not None]
    references = [trial for trial in measured if trial.key.precision == REFERENCE]
    mixed = [trial for trial in measured if not trial.key.precision.startswith("fp32-")]
    return tuple(
        (trial, _gate(twins[-1], trial)) for trial, twins in matched(mixed, references, _trial_place) if twins
    )


def _gate(fp32: Trial, mixed: Trial) -> Gate:
    return early_gate(fp32.losses, mixed.losses, _norms(fp32), _norms(mixed))


def _norms(trial: Trial) -> Points:
    measured = trial.record.measurement
    return measured.gradient_norms if measured else ()


@dataclass(frozen=True, slots=True)
class Parity:
    """Whether one precision ends as well as fp32-ieee; `sentence` stands wherever its speed does."""

    of: Cell
    over: Cell | None
    verdict: Verdict | None
    sentence: str


def parities(cells: Sequence[Cell]) -> tuple[Parity, ...]:
    """A verdict for each mixed-precision cell, on the final quality of whole trials; else "speed only".

    The level holds for all verdicts of one workload together.
    """
    mixed = [cell for cell in cells if not cell.key.precision.startswith("fp32-")]
    references = [cell for cell in cells if cell.key.precision == REFERENCE]
    pairs = [(of, at_same_batch(of, twins)) for of, twins in matched(mixed, references, _place)]
    judged = Counter(_place(of) for of, over in pairs if over and _enough(of, over))
    return tuple(_parity(of, over, judged[_place(of)]) for of, over in pairs)


def _enough(of: Cell, over: Cell) -> bool:
    return not _unjudged(of, over) and min(of.quality.n, over.quality.n) >= SEEDS


def _parity(of: Cell, over: Cell | None, comparisons: int) -> Parity:
    reason = _unjudged(of, over)
    if reason or over is None:
        return Parity(of, over, None, f"{SPEED_ONLY}: {reason}")
    more_is_better = of.trials[0].quality_name in ("accuracy", "auc")
    verdict = non_inferior(
        _ends(over),
        _ends(of),
        greater_is_better=more_is_better,
        comparisons=comparisons,
    )
    if verdict.interval is None:
        return Parity(of, over, verdict, f"{SPEED_ONLY}: {'; '.join(verdict.because)}")
    endings = {"parity": "ends as well as fp32-ieee", "worse": "ends worse than fp32-ieee"}
    words = endings.get(verdict.word, "whether it ends as well as fp32-ieee is inconclusive")
    if of.key.batch_size != over.key.batch_size:
        words += f" (at batch {of.key.batch_size} against {over.key.batch_size})"
    words += f", over {comparisons} comparisons together" if comparisons > 1 else ""
    return Parity(of, over, verdict, f"{words}: {'; '.join(verdict.because)}")


def _ends(cell: Cell) -> list[float]:
    """Accuracies, or losses, which perplexities are e to the power of: the margin is one of the loss."""
    by_perplexity = cell.trials[0].quality_name == "perplexity"
    return [math.log(value) if by_perplexity else value for value in cell.quality.values]


def _unjudged(of: Cell, over: Cell | None) -> str:
    if over is None:
        return "there is no fp32-ieee trial of the same work beside it"
    if of.length.projected or over.length.projected:
        return "the trials did not run to the end of their protocol"
    if of.key.data_source == "generated":
        return "nothing is judged on generated data"
    if not of.quality.values or not over.quality.values:
        return "no quality was measured at the end"
    return ""


def scale_words(trial: Trial) -> str:
    """What a trial's loss scale did, in a sentence; empty where it had none."""
    if trial.loss_scale is None:
        return ""
    health = scale_health(trial.loss_scale, trial.steps_trained or 0)
    words = {
        "healthy": "the loss scale is healthy",
        "skips": "the loss scale skips",
        "failed": "the loss scale failed",
    }
    ended = f"{health.settled:g} once settled, {trial.loss_scale.last:g} at the end"
    said = f": {sentence(health.found)}" if health.found else ""
    return f"{words[health.word]}{said} ({ended})"
