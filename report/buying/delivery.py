"""What a delivered machine has reached of an order's clause: each figure reached, missed, or not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.finding import label, sentence
from report import text
from report.buying.clause import LEAST_LEFT, Clause, Demand, disturbed, fault
from report.compare.cells import Cell
from report.stats.intervals import Runs, blocks_interval
from report.trials.key import Key, differing, without
from report.trials.trial import TrialResult

LEAST_RUNS = 2
"""That count, of those that were asked for: one that did not settle, or was disturbed, is set apart."""


@dataclass(frozen=True, slots=True)
class DemandResult:
    """One demand and what was delivered: `passed` is null where too little is known to say.

    `ratio` is delivered ÷ figure; null where that is not known either.
    """

    demand: Demand
    passed: bool | None
    why: str
    ratio: float | None = None
    low: float | None = None
    high: float | None = None


def judge(
    rule: Clause, delivered: Sequence[Cell], failed: Sequence[TrialResult] = ()
) -> tuple[DemandResult, ...]:
    """Each demand against the delivered machine's cells of the same key, and its trials that `failed`."""
    return tuple(_result(demand, rule.margin, delivered, failed) for demand in rule.demands)


def _result(
    demand: Demand, margin: float, delivered: Sequence[Cell], failed: Sequence[TrialResult]
) -> DemandResult:
    own = [cell for cell in delivered if cell.key == demand.key]
    trials = [trial for cell in own for trial in cell.trials]
    faults = sorted({sentence(found) for trial in trials if (found := fault(trial))})
    if faults:
        return DemandResult(demand, False, f"a trial is invalid: {text.clean(faults[0], 120)}")
    runs = Runs(
        tuple(value for cell in own for value in cell.throughput.values),
        tuple(block for cell in own for block in cell.throughput.blocks),
    )
    if len(trials) < demand.runs:
        return _too_few_runs(demand, len(trials), own, delivered, failed)
    spoiled = [trial for trial in trials if disturbed(trial)]
    if spoiled and len(trials) - len(spoiled) < LEAST_LEFT * demand.runs:
        names = ", ".join(sorted({label(found) for trial in spoiled for found in trial.causes}))
        count = f"{len(spoiled)} of {text.count(len(trials), 'run')}"
        return DemandResult(demand, None, f"{count} were disturbed ({text.clean(names, 80)})")
    if len(runs.values) < LEAST_RUNS:
        return _too_few_runs(demand, len(trials), own, delivered, failed)
    if not demand.unproven and any(cell.verdict == "unproven" for cell in own):
        return DemandResult(
            demand, None, "its windows are too short to be proven, where the order's were proven"
        )
    interval = blocks_interval(runs, demand.measured)
    if interval is None:
        return DemandResult(demand, None, "its runs give no interval")
    passed = interval.estimate >= 1 - margin
    why = "reached" if passed else "too slow"
    return DemandResult(demand, passed, why, interval.estimate, interval.low, interval.high)


def _too_few_runs(
    demand: Demand, n: int, own: Sequence[Cell], delivered: Sequence[Cell], failed: Sequence[TrialResult]
) -> DemandResult:
    """Fewer runs than are asked for: the card's own failure is an answer, everything else is none."""
    counted = f"{n} of {demand.runs} runs were measured"
    lost = [
        trial.failure
        for trial in failed
        if trial.failure and _without_hashes(trial.key) == _without_hashes(demand.key)
    ]
    for failure in lost:
        if failure.kind == "trial":
            reason = text.clean(text.failure_words(failure.reason), 60)
            return DemandResult(demand, False, f"{counted}, and one trial {reason}")
    if n == 0 and not own and not lost:
        same = ("workload", "model", "precision")
        keys = [cell.key for cell in delivered]
        near = [
            differing(demand.key, key)
            for key in keys
            if all(getattr(demand.key, name) == getattr(key, name) for name in same)
        ]
        for name, ordered, given in min(near, key=len, default=())[:1]:
            another = (
                f"it was measured with another {name}: ordered {_value(ordered)}, delivered {_value(given)}"
            )
            return DemandResult(demand, None, another)
    return DemandResult(demand, None, counted)


def _without_hashes(key: Key) -> Key:
    """The key as far as a trial that failed knows it."""
    return without(key, "data_sha256", "weights_sha256")


def _value(value: object) -> str:
    return "none" if value is None else text.clean(value, 40)


def unanswered(results: Sequence[DemandResult]) -> tuple[DemandResult, ...]:
    """Demands of which too little is known to say anything."""
    return tuple(result for result in results if result.passed is None)
