"""Cells that differ in their batch alone: the best batch of each precision, and the smallest that failed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.summary.statistics import MOST_MEMORY_SHARE
from harness.summary.statistics import reserved_share as measured_share
from report.comparisons.cells import Cell, unit_of
from report.trials.key import Key, Pairs
from report.trials.pairs import MEASURED_FIELDS, grouped_by, same_but
from report.trials.trial import Trial

FEWEST_POINTS = 2
FEWEST_BATCHES = 3
SPILL = 0.7
"""A throughput below this part of a smaller batch's is suspected of memory that spills to the host."""

ANY_BATCH = ("batch_size", *MEASURED_FIELDS)
_sweep = same_but(*ANY_BATCH, within=("limit", "card", "machine", "session"))
_asked = same_but(*ANY_BATCH, within=("machine", "session"))
"""What a trial that did not fit shares with the others of its sweep, besides the limit."""


@dataclass(frozen=True, slots=True)
class BatchSweep:
    """The batches of one work in one precision on one card, growing, and the smallest that failed to fit."""

    rungs: tuple[Cell, ...]
    wall: int | None

    @property
    def work(self) -> Key:
        """The key of the smallest batch, which all share but for the batch and what measuring finds."""
        return self.rungs[0].key

    @property
    def precision(self) -> str:
        return self.work.precision

    @property
    def unit(self) -> str:
        return unit_of(self.rungs[0])

    @property
    def fitting(self) -> tuple[Cell, ...]:
        """Rungs below the wall that leave the device some room."""
        return tuple(
            cell
            for cell in self.rungs
            if (self.wall is None or cell.key.batch_size < self.wall)
            and (reserved_share(cell) or 0.0) <= MOST_MEMORY_SHARE
        )

    @property
    def best(self) -> Cell | None:
        """The rung of the highest mean throughput, which need not be the largest."""
        return max(self.fitting, key=lambda cell: cell.throughput.mean or 0.0, default=None)

    @property
    def spills(self) -> bool:
        """Whether a larger batch is so much slower that memory may have spilled to the host."""
        means = [cell.throughput.mean or 0.0 for cell in self.rungs]
        return any(later < SPILL * max(means[:place]) for place, later in enumerate(means) if place)


def reserved_share(cell: Cell) -> float | None:
    """The most of its device's memory that a run reserved, 0 to 1; null where that is unknown."""
    measured = [trial.record.measurement for trial in cell.trials]
    shares = [measured_share(found) for found in measured if found is not None]
    return max((share for share in shares if share is not None), default=None)


def without_sweeps(cells: Sequence[Cell], lead: str | None) -> tuple[Cell, ...]:
    """The cells that stand by themselves; all, where the leading session has nothing but ladders."""
    stepped = [cell for cell in cells if "steps" in dict(cell.length.limit)]
    sweeps = grouped_by(stepped, _sweep).values()
    rungs = {id(cell) for found in sweeps if len(found) >= FEWEST_BATCHES for cell in found}
    kept = tuple(cell for cell in cells if id(cell) not in rungs)
    return kept if any(cell.session == lead for cell in kept) else tuple(cells)


def batch_sweeps(cells: Sequence[Cell], failed: Sequence[Trial]) -> list[BatchSweep]:
    """All batches of each work and precision, where there are several."""
    usable = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean is not None]
    lost = grouped_by((r for r in failed if r.failure and r.failure.reason == "out-of-memory"), _asked)
    found = []
    for members in grouped_by(usable, _sweep).values():
        if len(members) >= FEWEST_POINTS:
            rungs = tuple(sorted(members, key=lambda cell: cell.key.batch_size))
            limits = (rungs[0].length.limit, ())
            beyond = [
                trial.key.batch_size for trial in lost.get(_asked(rungs[0]), ()) if _limit(trial) in limits
            ]
            found.append(BatchSweep(rungs, min(beyond, default=None)))
    return found


def _limit(trial: Trial) -> Pairs:
    asked = trial.record.trial.asked.variant.limit
    return tuple((name, value) for name, value in asked if value is not None)
