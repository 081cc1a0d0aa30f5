"""What a delivered machine must reach: each figure of the order less a margin; and whether it does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.record import Finding, finding
from harness.record.finding import finding_fault as fault_of
from harness.record.finding import finding_label, finding_sentence
from report import text
from report.compare.card_units import (
    BoxCards,
    CardBehind,
    UnitSpread,
    cards_behind,
    cards_of_box,
    least_ratio,
    missing_share,
)
from report.compare.cells import Cell
from report.stats.contrast import assumed_hours, contrast_interval
from report.stats.intervals import BETWEEN_SESSIONS, Interval, Runs, blocks_interval
from report.trials.key import MEASURED_FIELDS, PartialKey, without_fields
from report.trials.trial import TrialResult

MARGIN = 0.05
"""About half of the way, in logarithms, to a card that is 10 % too slow: the two errors are alike."""

LEAST_LEFT = 0.75
"""The share of the required runs that must be undisturbed; with fewer they are measured again."""
LEAST_RUNS = 2
"""How many runs must count: one that did not settle, or was disturbed, is set aside."""


@dataclass(frozen=True, slots=True)
class SpeedRequirement:
    """One figure that must be reached: samples per second, the geometric mean of its runs."""

    cell: Cell
    """The order's own; the plan makes as many runs as it has trials."""
    figure: Interval

    @property
    def runs(self) -> int:
        """How many runs are to be made: as many as the figure is from."""
        return self.cell.throughput.n

    @property
    def what(self) -> str:
        """The work in a few words."""
        key = self.cell.key
        size = f", {key.image_size} px" if key.image_size else ""
        work = f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}{size}"
        return text.clean(f"{work}, {key.data_mode} data", 120)


@dataclass(frozen=True, slots=True)
class AcceptanceClause:
    """The requirements of one session."""

    margin: float
    demands: tuple[SpeedRequirement, ...]
    disturbed: int
    """How many of the order's own runs their surroundings disturbed."""
    spread: UnitSpread
    """How far units of the ordered card lie apart."""
    box: BoxCards = field(default_factory=BoxCards)
    behind: tuple[CardBehind, ...] = ()
    """The order's own cards that are too slow beside its others."""

    @property
    def unproven(self) -> bool:
        """Whether a test of the order was too short, so that this is a first look and no clause."""
        return any(demand.cell.verdict == "unproven" for demand in self.demands)

    @property
    def least_beside(self) -> float | None:
        """What each card must reach of the mean of the others; null for one card."""
        cards = self.box.present
        return least_ratio(cards, len(self.demands)) if cards > 1 else None

    @property
    def missing_share(self) -> float:
        """The share of sound machines that miss a figure by their unit alone."""
        return missing_share(self.spread, self.margin)


def clause(
    cells: Sequence[Cell], spreads: Mapping[str, UnitSpread], *, margin: float = MARGIN
) -> AcceptanceClause | None:
    """Return the requirements that the cells of one session support; null where none has two valid runs."""
    usable = [cell for cell in cells if cell.verdict != "invalid"]
    of_several = [cell for cell in usable if cell.throughput.n >= LEAST_RUNS]
    figures = [blocks_interval(cell.throughput, assumed=BETWEEN_SESSIONS) for cell in of_several]
    both = zip(of_several, figures, strict=True)
    demands = tuple(SpeedRequirement(cell, figure) for cell, figure in both if figure)
    if not demands:
        return None
    trials = [trial for cell in usable for trial in cell.trials]
    spread = spreads.get(demands[0].cell.card, UnitSpread())
    spoiled = sum(disturbed(trial) for trial in trials)
    return AcceptanceClause(margin, demands, spoiled, spread, cards_of_box(trials), cards_behind(trials))


def fault(trial: TrialResult) -> Finding | None:
    """Return what makes an invalid run the machine's own failure; null where it is disturbed, or not invalid.

    A run that gives no reason is the machine's.
    """
    if trial.verdict != "invalid":
        return None
    grave = [found for found in trial.findings if found.severity == "invalid"]
    own = (found for found in grave if fault_of(found) == "machine")
    return next(own, None if grave else finding("unnamed"))


def disturbed(trial: TrialResult) -> bool:
    """Return whether a run is invalid by its surroundings alone: it is set aside, and fails no card."""
    return trial.verdict == "invalid" and fault(trial) is None


@dataclass(frozen=True, slots=True)
class RequirementResult:
    """One requirement and what was delivered: `passed` is null where too little is known to say."""

    demand: SpeedRequirement
    passed: bool | None
    why: str
    ratio: Interval | None = None
    """Delivered ÷ figure; null where that is not known either."""


def judge(
    rule: AcceptanceClause, delivered: Sequence[Cell], failed: Sequence[TrialResult] = ()
) -> tuple[RequirementResult, ...]:
    """Judge each requirement by the delivered machine's cells of its key, and its trials that `failed`."""
    return tuple(_result(demand, rule.margin, delivered, failed) for demand in rule.demands)


def _result(
    demand: SpeedRequirement, margin: float, delivered: Sequence[Cell], failed: Sequence[TrialResult]
) -> RequirementResult:
    own = [cell for cell in delivered if cell.key == demand.cell.key]
    trials = [trial for cell in own for trial in cell.trials]
    faults = sorted({finding_sentence(found) for trial in trials if (found := fault(trial))})
    if faults:
        return RequirementResult(demand, False, f"a trial is invalid: {text.clean(faults[0], 120)}")
    runs = Runs(
        tuple(value for cell in own for value in cell.throughput.values),
        tuple(block for cell in own for block in cell.throughput.blocks),
    )
    if len(trials) < demand.runs:
        return _too_few_runs(demand, len(trials), own, delivered, failed)
    spoiled = [trial for trial in trials if disturbed(trial)]
    if spoiled and len(trials) - len(spoiled) < LEAST_LEFT * demand.runs:
        names = ", ".join(sorted({finding_label(found) for trial in spoiled for found in trial.causes}))
        count = f"{len(spoiled)} of {text.count(len(trials), 'run')}"
        return RequirementResult(demand, None, f"{count} were disturbed ({text.clean(names, 80)})")
    if len(runs.values) < LEAST_RUNS:
        return _too_few_runs(demand, len(trials), own, delivered, failed)
    if demand.cell.verdict != "unproven" and any(cell.verdict == "unproven" for cell in own):
        return RequirementResult(
            demand, None, "its windows are too short to be proven, where the order's were proven"
        )
    sides = runs, demand.cell.throughput
    ratio = contrast_interval(*sides, paired=False, assumed=assumed_hours(*sides, paired=False))
    if ratio is None:
        return RequirementResult(demand, None, "its runs give no interval")
    passed = ratio.estimate >= 1 - margin
    return RequirementResult(demand, passed, "reached" if passed else "too slow", ratio)


def _too_few_runs(
    demand: SpeedRequirement,
    n: int,
    own: Sequence[Cell],
    delivered: Sequence[Cell],
    failed: Sequence[TrialResult],
) -> RequirementResult:
    """Return the result of too few runs: the card's own failure is an answer, everything else is none."""
    counted = f"{n} of {demand.runs} runs were measured"
    work = without_fields(demand.cell.key, *MEASURED_FIELDS)
    alike = [trial for trial in failed if without_fields(trial.key, *MEASURED_FIELDS) == work]
    lost = [trial.failure for trial in alike if trial.failure]
    for failure in lost:
        if failure.kind == "trial":
            reason = text.clean(text.failure_words(failure.reason), 60)
            return RequirementResult(demand, False, f"{counted}, and one trial {reason}")
    if n == 0 and not own and not lost:
        same = ("workload", "model", "precision")
        keys = [cell.key for cell in delivered]
        near = [
            PartialKey.of(demand.cell.key).differences(PartialKey.of(key))
            for key in keys
            if all(getattr(demand.cell.key, name) == getattr(key, name) for name in same)
        ]
        for other in min(near, key=len, default=())[:1]:
            values = f"ordered {_value(other.over)}, delivered {_value(other.of)}"
            another = f"it was measured with another {other.name}: {values}"
            return RequirementResult(demand, None, another)
    return RequirementResult(demand, None, counted)


def _value(value: object) -> str:
    return "none" if value is None else text.clean(value, 40)
