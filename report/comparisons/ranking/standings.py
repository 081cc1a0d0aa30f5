"""All systems that did the same work, the fastest first, each with the places that the ranges allow.

A system's time is the mean over the works of its time over the leading system's, so that each work has an
equal share of the leading system's time. The ranges of all systems hold together; where two do not overlap,
one is faster, so the places hold together as well (Klein, Wright, Wieczorek, J. R. Stat. Soc. C 69, 2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from report.comparisons.cells import Cell
from report.stats.intervals import blocks_interval
from report.trials.pairs import each_nearest_the_card, matched, same_but

_place = same_but(within=("length",))


@dataclass(frozen=True, slots=True)
class Standing:
    """One system: its cell of each work, its time over the fastest's, and its places from `first` to `last`.

    Places are null where a run may not be ranked, where single runs give no range, or where a work that
    decides the order is missing; the time is null in the last case alone.
    """

    machine: str
    card: str
    cells: tuple[Cell | None, ...]
    time: float | None = None
    low: float | None = None
    high: float | None = None
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class Standings:
    """The works, as the leading session's cells, and the systems: those with places first."""

    works: tuple[Cell, ...]
    decide: tuple[bool, ...]
    """Of each work, whether the order is by it: those that the most systems did."""
    rows: tuple[Standing, ...]


def standings(own_cells: Sequence[Cell], cells: Sequence[Cell]) -> Standings | None:
    """Of each system with a cell equal to one of the leading session's; null of fewer than three.

    Of each system and work the newest cell counts, and of a work's data modes the one nearest the card.
    """
    timed = [cell for cell in own_cells if cell.throughput.mean]
    works = [mode[0] for mode in each_nearest_the_card(timed, lambda cell: cell.key)]
    by_work = [_by_system(equal, work) for work, equal in matched(works, cells, _place)]
    systems = list(dict.fromkeys(system for found in by_work for system in found))
    if len(systems) < 3:
        return None
    most = max(len(found) for found in by_work)
    decide = tuple(len(found) == most for found in by_work)
    rows = [_standing(system, by_work, decide, len(systems)) for system in systems]
    return Standings(tuple(works), decide, tuple(_in_order(rows)))


def _by_system(cells: Sequence[Cell], own: Cell) -> dict[tuple[str, str], Cell]:
    """The newest cell of each system; of the leading one its own."""
    found: dict[tuple[str, str], Cell] = {(own.machine, own.card): own}
    for cell in sorted(cells, key=lambda cell: cell.turn):
        if cell.throughput.mean and (cell.machine, cell.card) != (own.machine, own.card):
            found[cell.machine, cell.card] = cell
    return found


def _standing(
    system: tuple[str, str],
    by_work: Sequence[Mapping[tuple[str, str], Cell]],
    decide: Sequence[bool],
    systems: int,
) -> Standing:
    cells = tuple(found.get(system) for found in by_work)
    times, lows, highs = [], [], []
    for cell, found, counts in zip(cells, by_work, decide, strict=True):
        if not counts:
            continue
        own = next(iter(found.values())).throughput.mean
        if cell is None or not cell.throughput.mean or not own:
            return Standing(*system, cells)
        times.append(own / cell.throughput.mean)
        interval = blocks_interval(cell.throughput.runs, comparisons=systems)
        if interval is not None and cell.ranked:
            lows.append(own / interval.high)
            highs.append(own / interval.low)
    if len(lows) < len(times):
        return Standing(*system, cells, fmean(times))
    return Standing(*system, cells, fmean(times), fmean(lows), fmean(highs))


def _in_order(rows: Sequence[Standing]) -> list[Standing]:
    """Ranked systems by their time over the fastest's, then the others."""
    ranked = sorted((row for row in rows if row.low is not None), key=lambda row: row.time or 0.0)
    timed = sorted(
        (row for row in rows if row.low is None and row.time is not None), key=lambda row: row.time or 0.0
    )
    without = [row for row in rows if row.time is None]
    fastest = next((row.time for row in (*ranked, *timed) if row.time), 1.0)
    lows, highs = sorted(row.low or 0.0 for row in ranked), sorted(row.high or 0.0 for row in ranked)
    placed = [
        replace(
            row,
            first=1 + sum(high < (row.low or 0.0) for high in highs),
            last=len(ranked) - sum(low > (row.high or 0.0) for low in lows),
        )
        for row in ranked
    ]
    return [_over(row, fastest) for row in (*placed, *timed)] + without


def _over(row: Standing, fastest: float) -> Standing:
    time, low, high = (
        value / fastest if value is not None else None for value in (row.time, row.low, row.high)
    )
    return replace(row, time=time, low=low, high=high)
