"""Frameworks that did one work alike on one machine: which lines stand together, and over the fastest."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from harness.record import FrameworkUsed
from report import text
from report.comparisons.cells import Cell, Ratio, cell_ratio, own_spread, repeated
from report.comparisons.scaling import parallelism_of, way_name
from report.trials.key import FRAMEWORK, PARALLEL
from report.trials.pairs import grouped_by

ALIKE, AS_PUBLISHED = "fair/", "published/"
"""How protocols begin that all frameworks keep alike, and that leave each as it was published."""


@dataclass(frozen=True, slots=True)
class Line:
    """What one framework reached in one way of sharing a step, and its time over the fastest's."""

    framework: str
    cell: Cell
    scaled: Ratio | None = None

    @property
    def used(self) -> FrameworkUsed | None:
        """As its workload tells of it; null in records from before it did."""
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

    alike: tuple[Line, ...]
    published: tuple[Line, ...]

    @property
    def lines(self) -> tuple[Line, ...]:
        """All of them."""
        return (*self.alike, *self.published)

    @property
    def ranked(self) -> tuple[Line, ...]:
        """Those that may be said to be faster or slower than another."""
        return tuple(line for line in self.alike if line.cell.ranked)


def places(line: Line, among: Sequence[Line]) -> tuple[int, int] | None:
    """The first and the last place that the ranges allow; null of what has no range, or cannot be ranked."""
    ranges = {id(each): _range(each) for each in among if each.cell.ranked}
    own = ranges.get(id(line))
    if own is None:
        return None
    known = [each for each in ranges.values() if each is not None]
    faster = sum(high < own[0] for _, high in known)
    slower = sum(low > own[1] for low, _ in known)
    return 1 + faster, len(ranges) - slower


def _range(line: Line) -> tuple[float, float] | None:
    interval = line.cell.seconds.interval
    return (interval.low, interval.high) if interval else None


def works(measured: Sequence[Cell], lead: str | None) -> tuple[Work, ...]:
    """Each work that at least two frameworks did alike on one machine; only the stacks differ, as they must.

    Of equal lines that of session `lead`, else the newest.
    """
    here = [cell for cell in measured if framework_of(cell) and cell.verdict != "invalid"]
    newest = sorted(here, key=lambda cell: (cell.session == lead, cell.turn), reverse=True)
    found = []
    for members in grouped_by(newest, _place).values():
        fair = [cell for cell in members if cell.key.protocol.startswith(ALIKE)]
        published = [cell for cell in members if cell.key.protocol.startswith(AS_PUBLISHED)]
        for alike in grouped_by(fair, lambda cell: (cell.key.protocol, cell.key.data_sha256)).values():
            lines = _scaled([Line(framework_of(cell), cell) for cell in _one_of_each(alike)])
            if len({line.framework for line in lines}) > 1:
                beside = tuple(Line(framework_of(cell), cell) for cell in _one_of_each(published))
                found.append(Work(lines, beside))
    return tuple(found)


def framework_of(cell: Cell) -> str:
    """Its framework by its name in options; empty where it names none."""
    return str(dict(cell.key.options).get(FRAMEWORK, ""))


def _place(cell: Cell) -> Hashable:
    """What all frameworks have to have alike; the data's hash joins it where the protocol is one for all."""
    options = tuple(option for option in cell.key.options if option[0] not in (FRAMEWORK, PARALLEL))
    key = replace(cell.key, protocol="", data_sha256=None, options=options)
    return key, cell.length.epochs, cell.machine, cell.card


def _one_of_each(cells: Sequence[Cell]) -> list[Cell]:
    timed = [cell for cell in cells if cell.seconds.mean is not None and cell.throughput.mean is not None]
    return [same[0] for same in grouped_by(timed, lambda c: (framework_of(c), parallelism_of(c))).values()]


def _scaled(lines: Sequence[Line]) -> tuple[Line, ...]:
    """The lines over the fastest that may be ranked, else over the fastest; the fastest first."""
    fit = [line for line in lines if line.cell.ranked] or lines
    if not fit:
        return ()
    # The data choose the reference, so the level holds for all pairs.
    first = min(fit, key=_seconds)
    pairs = sum(repeated((one.cell, other.cell)) for one, other in combinations(lines, 2))
    scaled = [
        replace(line, scaled=own_spread(line.cell.seconds))
        if line is first
        else replace(line, scaled=cell_ratio(line.cell, first.cell, "seconds", comparisons=max(pairs, 1)))
        for line in lines
    ]
    return tuple(sorted(scaled, key=_seconds))


def _seconds(line: Line) -> float:
    return line.cell.seconds.mean or 0.0
