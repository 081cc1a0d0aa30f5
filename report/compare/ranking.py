"""All that did one work in order: systems, and frameworks, each with the places that its range allows.

A system's time is the mean over the works of its time over the leading system's, so that each work has an
equal share of the leading system's time. The ranges of all systems hold together; where two do not overlap,
one is faster, so the places hold together as well (Klein, Wright, Wieczorek, J. R. Stat. Soc. C 69, 2020).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from statistics import fmean

from harness.record import FrameworkUsed
from report import text
from report.compare.cells import Cell, Ratio, cell_ratio, own_spread, repeated
from report.compare.key import each_nearest_the_card, matched, same_but
from report.compare.scaling import parallelism_of, way_name
from report.stats.intervals import blocks_interval
from report.trials.key import FRAMEWORK, PARALLEL, grouped_by, without

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
    rows: tuple[Standing, ...]

    @property
    def most(self) -> float:
        """Return the longest time, or the end of its range."""
        return max(row.high or row.time or 0.0 for row in self.rows)

    @property
    def blocks(self) -> int:
        """Return the fewest blocks of time behind a rank."""
        placed = (cell for row in self.rows if row.first for cell in row.cells if cell)
        return min((cell.blocks for cell in placed), default=0)


def standings(own_cells: Sequence[Cell], cells: Sequence[Cell]) -> Standings | None:
    """Rank the systems with a cell equal to one of the leading session's; null of fewer than three.

    Of each system and work the newest cell counts, and of a work's data modes the one nearest the card.
    """
    timed = [cell for cell in own_cells if cell.throughput.mean]
    works = [mode[0] for mode in each_nearest_the_card(timed, lambda cell: cell.key)]
    by_work = [_by_system(equal, work) for work, equal in matched(works, cells, _place)]
    systems = list(dict.fromkeys(system for found in by_work for system in found))
    if len(systems) < 3:
        return None
    # The order is by the works that the most systems did.
    most = max(len(found) for found in by_work)
    decide = [len(found) == most for found in by_work]
    rows = [_standing(system, by_work, decide, len(systems)) for system in systems]
    return Standings(tuple(works), tuple(_in_order(rows)))


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
    ranges = [(row.low or 0.0, row.high or 0.0) for row in ranked]
    spans = _places(ranges)
    placed = [replace(row, first=first, last=last) for row, (first, last) in zip(ranked, spans, strict=True)]
    scaled = []
    for row in (*placed, *timed):
        time, low, high = (end and end / fastest for end in (row.time, row.low, row.high))
        scaled.append(replace(row, time=time, low=low, high=high))
    return scaled + without


ALIKE, AS_PUBLISHED = "fair/", "published/"
"""How protocols begin that all frameworks keep alike, and that leave each as it was published."""


@dataclass(frozen=True, slots=True)
class FrameworkLine:
    """What one framework reached in one way of sharing a step, and its time over the fastest's."""

    framework: str
    cell: Cell
    scaled: Ratio | None = None

    @property
    def used(self) -> FrameworkUsed | None:
        """Return the framework as its workload reports it; null in records from before it did."""
        measured = self.cell.trials[0].record.measurement
        return measured.framework if measured else None

    @property
    def name(self) -> str:
        """The framework's, with the way of sharing where several devices did."""
        name = text.clean(self.used.name if self.used else self.framework, 40)
        way = text.clean(way_name(self.cell), 40)
        return f"{name} ({way})" if way else name


@dataclass(frozen=True, slots=True)
class Work:
    """One work on one machine: lines that are ranked by the first, the fastest first, and the published."""

    alike: tuple[FrameworkLine, ...]
    published: tuple[FrameworkLine, ...]

    @property
    def lines(self) -> tuple[FrameworkLine, ...]:
        """All of them."""
        return (*self.alike, *self.published)

    @property
    def compared(self) -> tuple[FrameworkLine, ...]:
        """Return the lines that may be ranked; where fewer than two frameworks are, all that have a range."""
        ranked = tuple(line for line in self.alike if line.cell.ranked)
        if len({line.framework for line in ranked}) > 1:
            return ranked
        return tuple(line for line in self.alike if line.scaled is not None and line.scaled.interval)


def places(line: FrameworkLine, among: Sequence[FrameworkLine]) -> tuple[int, int] | None:
    """The first and the last place that its ratios allow; null of what has no range, or cannot be ranked."""
    others = [each.cell for each in among if each.cell.ranked and each is not line]
    if line.cell.seconds.interval is None or not line.cell.ranked or line not in among:
        return None
    ratios = (cell_ratio(line.cell, cell, "seconds", comparisons=_pairs(among)) for cell in others)
    ends = [ratio.interval for ratio in ratios if ratio and ratio.interval]
    return 1 + sum(each.low > 1 for each in ends), 1 + len(others) - sum(each.high < 1 for each in ends)


def _places(ranges: Sequence[tuple[float, float]]) -> list[tuple[int, int]]:
    """Return each range's places among all: behind those wholly below, before those wholly above."""
    lows, highs = sorted(low for low, _ in ranges), sorted(high for _, high in ranges)
    return [(1 + bisect_left(highs, low), bisect_right(lows, high)) for low, high in ranges]


def works(measured: Sequence[Cell], lead: str | None) -> tuple[Work, ...]:
    """Each work that at least two frameworks did alike on one machine; only the stacks differ, as they must.

    Of equal lines that of session `lead`, else the newest.
    """
    here = [cell for cell in measured if framework_of(cell) and cell.verdict != "invalid"]
    newest = sorted(here, key=lambda cell: (cell.session == lead, cell.turn), reverse=True)
    found = []
    for members in grouped_by(newest, _framework_place).values():
        fair = [cell for cell in members if cell.key.protocol.startswith(ALIKE)]
        published = [cell for cell in members if cell.key.protocol.startswith(AS_PUBLISHED)]
        for alike in grouped_by(fair, lambda cell: (cell.key.protocol, cell.key.data_sha256)).values():
            lines = _scaled([FrameworkLine(framework_of(cell), cell) for cell in _one_of_each(alike)])
            if len({line.framework for line in lines}) > 1:
                beside = tuple(FrameworkLine(framework_of(cell), cell) for cell in _one_of_each(published))
                found.append(Work(lines, beside))
    return tuple(found)


def framework_of(cell: Cell) -> str:
    """Its framework by its name in options; empty where it names none."""
    return str(dict(cell.key.options).get(FRAMEWORK, ""))


def _framework_place(cell: Cell) -> Hashable:
    """What all frameworks have to have alike; the data's hash joins it where the protocol is one for all."""
    key = without(cell.key, "protocol", "data_sha256", f"options.{FRAMEWORK}", f"options.{PARALLEL}")
    return key, cell.length.epochs, cell.machine, cell.card


def _one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    timed = [cell for cell in cells if cell.seconds.mean is not None and cell.throughput.mean is not None]
    return [same[0] for same in grouped_by(timed, lambda c: (framework_of(c), parallelism_of(c))).values()]


def _scaled(lines: Sequence[FrameworkLine]) -> tuple[FrameworkLine, ...]:
    """The lines over the fastest that may be ranked, else over the fastest; the fastest first."""
    fit = [line for line in lines if line.cell.ranked] or lines
    if not fit:
        return ()
    # The data choose the reference, so the level holds for all pairs.
    first = min(fit, key=_seconds)
    pairs = _pairs(lines)
    scaled = [
        replace(line, scaled=own_spread(line.cell.seconds))
        if line is first
        else replace(line, scaled=cell_ratio(line.cell, first.cell, "seconds", comparisons=pairs))
        for line in lines
    ]
    return tuple(sorted(scaled, key=_seconds))


def _pairs(lines: Sequence[FrameworkLine]) -> int:
    """How many comparisons the level holds for together."""
    return max(sum(repeated((one.cell, other.cell)) for one, other in combinations(lines, 2)), 1)


def _seconds(line: FrameworkLine) -> float:
    return line.cell.seconds.mean or 0.0
