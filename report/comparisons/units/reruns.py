"""Who else measured the same: equal work on an equal card and stack, on another machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from report.comparisons.cells import Cell, Ratio, cell_ratio, repeated
from report.trials.pairs import matched, same_but

_alike = same_but(within=("length", "card", "stack"))


@dataclass(frozen=True, slots=True)
class Rerun:
    """A figure and the same one of another machine; the ratio is how many times as fast the other was."""

    own: Cell
    other: Cell
    ratio: Ratio | None

    @property
    def of_the_same_unit(self) -> bool:
        """Whether the very card was measured again."""
        return bool(set(self.own.units) & set(self.other.units))


def reruns(own_cells: Sequence[Cell], cells: Sequence[Cell]) -> tuple[Rerun, ...]:
    """Of each cell of a session the newest equal one of each other machine; the intervals hold together."""
    pairs = tuple(_pairs(own_cells, cells))
    comparisons = max(1, sum(map(repeated, pairs)))
    return tuple(
        Rerun(own, other, cell_ratio(other, own, "throughput", comparisons=comparisons))
        for own, other in pairs
    )


def _pairs(own_cells: Sequence[Cell], cells: Sequence[Cell]) -> Iterator[tuple[Cell, Cell]]:
    for own, alike in matched(own_cells, cells, _alike):
        newest: dict[str, Cell] = {}
        for cell in sorted(alike, key=lambda cell: cell.started_at):
            if cell.machine != own.machine and not _steps(cell) & _steps(own):
                newest[cell.machine] = cell
        yield from ((own, other) for other in newest.values())


def _steps(cell: Cell) -> set[str]:
    """Of each trial its step times: one that stands in both was copied and not measured again."""
    measured = (trial.record.measurement for trial in cell.trials)
    return {found.step_us.microseconds for found in measured if found is not None}
