"""One precision against another on the same machine: every ratio names its denominator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.comparability import Pairs, Value, differing, without_precision
from report.comparisons.cells import Cell, Ratio, cell_ratio

FULL_PRECISION = ("fp32-ieee", "fp32-default", "fp32-tf32")


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast `of` trains as `over`, on one machine; both are named wherever it stands."""

    of: Cell
    over: Cell
    ratio: Ratio
    differs: tuple[tuple[str, Value, Value], ...]
    """What differs besides the precision."""


def speedups(cells: Sequence[Cell]) -> tuple[Speedup, ...]:
    """Each precision against fp32-ieee and fp32-tf32 of the same machine, session and stack.

    At the same batch where there is one; else at the batch that the denominator has, which is then named.
    """
    found = []
    for of in cells:
        for over in _denominators(of, cells):
            value = cell_ratio(over, of, "seconds") or cell_ratio(of, over, "throughput")
            if value is not None:
                differs = differing(without_precision(of.key), without_precision(over.key))
                found.append(Speedup(of, over, value, differs))
    return tuple(found)


def _denominators(of: Cell, cells: Sequence[Cell]) -> list[Cell]:
    found = []
    for label in FULL_PRECISION:
        near = [cell for cell in cells if cell.key.precision == label and _same_but_precision(of, cell)]
        near.sort(key=lambda cell: cell.key.batch_size != of.key.batch_size)
        if near and label != of.key.precision and of.key.precision != "fp32-ieee":
            found.append(near[0])
    return found


def _same_but_precision(one: Cell, other: Cell) -> bool:
    places = [
        (without_precision(c.key, batch_too=True), _protocol_length(c), c.session, c.machine, c.card, c.stack)
        for c in (one, other)
    ]
    return places[0] == places[1]


def _protocol_length(cell: Cell) -> tuple[int, bool, Pairs]:
    return (cell.length.epochs, cell.length.projected, cell.length.limit)
