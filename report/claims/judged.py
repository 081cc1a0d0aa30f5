"""A claim with its verdict, and what every form of claim is judged with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Claim, Seeds, Side
from harness.record.published.cards import Card
from report.claims.matching import side_differences
from report.claims.metrics import figure_of
from report.claims.obstacles import obstacles
from report.compare.batch_sweeps import BatchSweep
from report.compare.cells import Cell
from report.compare.key import Difference
from report.stats.equivalence import SEEDS, Verdict
from report.stats.intervals import Runs


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, its verdict, and the cells it was held against; or what keeps it away from every cell."""

    claim: Claim
    verdict: Verdict
    cells: tuple[Cell, ...] = ()
    measured: float | None = None
    differences: tuple[Difference, ...] = ()

    @property
    def compared(self) -> bool:
        """Whether like met like, whatever came of it."""
        return self.verdict.word != "not comparable"


@dataclass(frozen=True, slots=True)
class Measured:
    """What claims are held against: the leading session's cells, those beside it, and its batch sweeps."""

    own: Sequence[Cell]
    everything: Sequence[Cell]
    sweeps: Sequence[BatchSweep]
    cards: Sequence[Card]


def not_compared(claim: Claim, *differences: Difference) -> Judged:
    """The claim, with what keeps it away from every record."""
    return Judged(claim, Verdict("not comparable"), differences=tuple(dict.fromkeys(differences)))


def nearest_differences(side: Side, claim: Claim, places: Sequence[Cell]) -> tuple[Difference, ...]:
    """What keeps the nearest cell away from a side; empty where one has all of it."""
    return min((side_differences(side, claim, cell) for cell in places), key=len)


def met(
    claim: Claim, sides: Sequence[Claim], candidates: Sequence[tuple[Cell, ...]], measured: Measured
) -> tuple[Cell, ...] | Judged:
    """Of candidates with a cell for each side that of the most evidence; else why none may be judged."""
    reasons = [
        [
            reason
            for side, cell in zip(sides, cells, strict=True)
            for reason in obstacles(side, cell, measured.cards, measured.everything)
        ]
        for cells in candidates
    ]
    comparable = [cells for cells, reason in zip(candidates, reasons, strict=True) if not reason]
    if not comparable:
        return not_compared(claim, *reasons[0])
    # What has the fewest runs counts for all that belong together.
    return max(comparable, key=lambda cells: min(_evidence(claim, cell) for cell in cells))


def _evidence(claim: Claim, cell: Cell) -> tuple[int, int, bool]:
    """The most runs, then blocks; whole runs on a tie."""
    figure = figure_of(claim, cell)
    runs = figure.runs if figure else cell.throughput.runs
    return len(runs.values), runs.block_count, not cell.length.projected


def seeds_for(claim: Claim, *sides: Runs) -> Seeds | None:
    """The published spread of seeds, where a side has runs and too few to show their own."""
    counts = [len(runs.values) for runs in sides]
    return claim.seeds if 0 < min(counts) < SEEDS else None
