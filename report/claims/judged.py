"""A claim with its verdict, and what every form of claim is judged with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record import Claim, Seeds, Side
from harness.record.published.cards import Card
from report.claims.matching import side_differences
from report.claims.metrics import figure_of
from report.comparisons.batch_sweeps import BatchSweep
from report.comparisons.cells import Cell
from report.stats.equivalence import SEEDS, Verdict, not_comparable
from report.stats.intervals import Runs


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, its verdict, and the cells it was held against."""

    claim: Claim
    verdict: Verdict
    cells: tuple[Cell, ...] = ()
    measured: float | None = None

    @property
    def compared(self) -> bool:
        """Whether like met like, whatever came of it."""
        return self.verdict.word != "not comparable"

    def saying(self, sentence: str, *, first: bool = False) -> Judged:
        """The same with one more reason."""
        because = self.verdict.because
        because = (sentence, *because) if first else (*because, sentence)
        return replace(self, verdict=replace(self.verdict, because=because))


@dataclass(frozen=True, slots=True)
class Measured:
    """What claims are held against: the leading session's cells, those beside it, and its batch sweeps."""

    own: Sequence[Cell]
    everything: Sequence[Cell]
    sweeps: Sequence[BatchSweep]
    cards: Sequence[Card]


def not_compared(claim: Claim, *because: str) -> Judged:
    """The claim, with what keeps it away from every record."""
    return Judged(claim, not_comparable(dict.fromkeys(because)))


def nearest_differences(side: Side, claim: Claim, places: Sequence[Cell]) -> tuple[str, ...]:
    """What keeps the nearest cell away from a side; empty where one has all of it."""
    differences = [side_differences(side, claim, cell) for cell in places]
    return min(differences, key=len, default=("nothing was measured",))


def most_evidence(claim: Claim, candidates: Sequence[tuple[Cell, ...]]) -> tuple[Cell, ...]:
    """Of cells, or of several that belong together, those of the most runs, then blocks; whole runs on a tie.

    What has the fewest counts for all that belong together.
    """
    return max(candidates, key=lambda cells: min(_evidence(claim, cell) for cell in cells))


def _evidence(claim: Claim, cell: Cell) -> tuple[int, int, bool]:
    figure = figure_of(claim, cell)
    runs = figure.runs if figure else cell.throughput.runs
    return len(runs.values), runs.block_count, not cell.length.projected


def saying_which(judged: Judged, candidates: Sequence[tuple[Cell, ...]]) -> Judged:
    """A verdict that names its runs where others would have done as well."""
    if len(candidates) < 2 or not judged.compared:
        return judged
    runs = min(_evidence(judged.claim, cell)[0] for cell in judged.cells)
    cell = judged.cells[0]
    kind = "projected" if cell.length.projected else "whole"
    taken = f"{runs} {kind} {'run' if runs == 1 else 'runs'} in data mode {cell.key.data_mode}"
    return judged.saying(f"taken: {taken}, which is the most of {len(candidates)} that were made")


def seeds_for(claim: Claim, *sides: Runs) -> Seeds | None:
    """The published spread of seeds, where a side has runs and too few to show their own."""
    counts = [len(runs.values) for runs in sides]
    return claim.seeds if 0 < min(counts) < SEEDS else None
