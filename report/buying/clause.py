"""What a delivered machine must reach: each figure of the order less a margin; and whether it does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Finding, finding
from harness.record.finding import fault as fault_of
from harness.record.finding import label, sentence
from report import text
from report.compare.cells import Cell
from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.key import Key, differing, without
from report.trials.trial import TrialResult

MARGIN = 0.05
"""About half of the way, in logarithms, to a card that is 10 % too slow: the two errors are alike."""

KEPT = 0.9
"""The share of each figure of its acceptance that a machine must keep in later years."""

LEAST_LEFT = 0.75
"""Of the runs that are asked for: with fewer left undisturbed they are measured again."""
LEAST_RUNS = 2
"""That count, of those that were asked for: one that did not settle, or was disturbed, is set apart."""


@dataclass(frozen=True, slots=True)
class Demand:
    """One figure that must be reached: samples per second, the geometric mean of its runs."""

    key: Key
    card: str
    unit: str
    measured: Runs
    figure: Interval
    planned: int
    """How many runs the plan makes of it."""
    unproven: bool

    @property
    def runs(self) -> int:
        """How many runs are to be made: as many as the figure stands on."""
        return len(self.measured.values)

    @property
    def what(self) -> str:
        """The work in a few words."""
        size = f", {self.key.image_size} px" if self.key.image_size else ""
        return text.clean(
            f"{text.model_name(self.key.model)}, {self.key.precision}, batch {self.key.batch_size}{size}, "
            f"{self.key.data_mode} data",
            120,
        )


@dataclass(frozen=True, slots=True)
class Clause:
    """The demands of one session."""

    margin: float
    demands: tuple[Demand, ...]
    disturbed: int
    """How many of the order's own runs their surroundings disturbed."""

    @property
    def kept(self) -> float:
        """The share of what is accepted that must be kept in later years."""
        return KEPT

    @property
    def unproven(self) -> bool:
        """Whether a test of the order was too short, so that this is a first look and no clause."""
        return any(demand.unproven for demand in self.demands)


def clause(cells: Sequence[Cell], *, margin: float = MARGIN) -> Clause | None:
    """The demands that the cells of one session support; null where none has two valid runs."""
    usable = [cell for cell in cells if cell.verdict != "invalid"]
    demands = tuple(demand for cell in usable if (demand := _demand(cell)))
    if not demands:
        return None
    trials = [trial for cell in usable for trial in cell.trials]
    return Clause(margin, demands, sum(disturbed(trial) for trial in trials))


def _demand(cell: Cell) -> Demand | None:
    measured = cell.throughput.runs
    figure = blocks_interval(measured) if len(measured.values) >= 2 else None
    if figure is None:
        return None
    return Demand(
        key=cell.key,
        card=cell.card,
        unit=cell.trials[0].sample_unit,
        measured=measured,
        figure=figure,
        planned=len(cell.trials),
        unproven=cell.verdict == "unproven",
    )


def fault(trial: TrialResult) -> Finding | None:
    """What makes an invalid run the machine's own failure; null where it is disturbed, or not invalid.

    A run that gives no reason is the machine's.
    """
    if trial.verdict != "invalid":
        return None
    grave = [found for found in trial.findings if found.severity == "invalid"]
    own = (found for found in grave if fault_of(found) == "machine")
    return next(own, None if grave else finding("unnamed"))


def disturbed(trial: TrialResult) -> bool:
    """Whether a run is invalid by its surroundings alone: it is set aside, and fails no card."""
    return trial.verdict == "invalid" and fault(trial) is None


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
