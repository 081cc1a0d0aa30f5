"""Cells that differ in their batch size alone: the best of each precision, and the smallest that failed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from harness.summary.statistics import MOST_MEMORY_SHARE
from harness.summary.statistics import reserved_share as measured_share
from report.compare.cells import Cell
from report.trials.key import MEASURED_FIELDS, grouped_by, limit_of, without_fields
from report.trials.trial import TrialResult

FEWEST_POINTS = 2
FEWEST_BATCHES = 3

ANY_BATCH = ("batch_size", *MEASURED_FIELDS)


@dataclass(frozen=True, slots=True)
class BatchSweep:
    """The batch sizes of one workload and precision on one card, growing, and the smallest that failed."""

    cells: tuple[Cell, ...]
    out_of_memory_batch: int | None

    @property
    def fitting(self) -> tuple[Cell, ...]:
        """Cells below the out-of-memory limit that leave memory headroom."""
        return tuple(
            cell
            for cell in self.cells
            if (self.out_of_memory_batch is None or cell.key.batch_size < self.out_of_memory_batch)
            and (reserved_share(cell) or 0.0) <= MOST_MEMORY_SHARE
        )

    @property
    def largest(self) -> Cell | None:
        """The largest batch that fits."""
        return self.fitting[-1] if self.fitting else None

    @property
    def wall(self) -> int | None:
        """The smallest batch that does not fit, or that leaves no headroom; null where all of them do."""
        fitting = {id(cell) for cell in self.fitting}
        too_large = [cell.key.batch_size for cell in self.cells if id(cell) not in fitting]
        failed = [] if self.out_of_memory_batch is None else [self.out_of_memory_batch]
        return min([*too_large, *failed], default=None)

    @property
    def best(self) -> Cell | None:
        """The cell of the highest mean throughput, which need not be the largest."""
        return max(self.fitting, key=lambda cell: cell.throughput.mean or 0.0, default=None)


def reserved_share(cell: Cell) -> float | None:
    """The most of its device's memory that a run reserved, 0 to 1; null where that is unknown."""
    measured = [trial.record.measurement for trial in cell.trials]
    shares = [measured_share(measurement) for measurement in measured if measurement is not None]
    return max((share for share in shares if share is not None), default=None)


def _sweep(cell: Cell) -> Hashable:
    return _failed_sweep(cell), cell.length.limit, cell.card


def _failed_sweep(item: Cell | TrialResult) -> Hashable:
    """Return what a trial that did not fit shares with the others of its sweep, besides the limit."""
    return without_fields(item.key, *ANY_BATCH), item.machine, item.session


def without_sweeps(cells: Sequence[Cell], lead: str | None) -> tuple[Cell, ...]:
    """The cells that stand by themselves; all, where the leading session has only batch-size sweeps."""
    stepped = [cell for cell in cells if "steps" in dict(cell.length.limit)]
    sweeps = grouped_by(stepped, _sweep).values()
    swept = {id(cell) for sweep in sweeps if len(sweep) >= FEWEST_BATCHES for cell in sweep}
    single = tuple(cell for cell in cells if id(cell) not in swept)
    return single if any(cell.session == lead for cell in single) else tuple(cells)


def batch_sweeps(cells: Sequence[Cell], failed: Sequence[TrialResult]) -> list[BatchSweep]:
    """The batch sizes of each workload and precision, where there are several."""
    usable = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean is not None]
    out_of_memory = grouped_by(
        (r for r in failed if r.failure and r.failure.reason == "out-of-memory"), _failed_sweep
    )
    sweeps = []
    for members in grouped_by(usable, _sweep).values():
        if len(members) >= FEWEST_POINTS:
            batches = tuple(sorted(members, key=lambda cell: cell.key.batch_size))
            limits = (batches[0].length.limit, ())
            too_large = [
                trial.key.batch_size
                for trial in out_of_memory.get(_failed_sweep(batches[0]), ())
                if limit_of(trial.record.trial.asked) in limits
            ]
            sweeps.append(BatchSweep(batches, min(too_large, default=None)))
    return sweeps
