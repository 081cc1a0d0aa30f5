"""What a delivered machine must reach: each figure of the order less a margin; and which runs speak of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Finding, finding
from harness.record.finding import fault as fault_of
from report import text
from report.compare.cells import Cell
from report.stats.intervals import BLOCKS_NEEDED, Interval, Runs, blocks_interval
from report.trials.key import Key
from report.trials.trial import TrialResult

MARGIN = 0.05
"""About half of the way, in logarithms, to a card that is 10 % too slow: the two errors are alike."""

KEPT = 0.9
"""The share of each figure of its acceptance that a machine must keep in later years."""

LEAST_LEFT = 0.75
"""Of the runs that are asked for: with fewer left undisturbed they are measured again."""


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

    @property
    def few_blocks(self) -> bool:
        """Whether a figure is from fewer blocks of time than would show how much hours differ."""
        return any(len(set(demand.measured.blocks)) < BLOCKS_NEEDED for demand in self.demands)


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
