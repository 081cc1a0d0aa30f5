"""One card or machine against another, in the population that a buyer will receive.

The mix is every benchmark that both have run, with an equal share of the slower system's time. Time on one
system over time on the other is then the mean of the benchmarks' ratios. Its bounds are the means of theirs,
as if all erred together: exact for one benchmark, wide for more. The range for any two units adds to them, in
squares, how far two units of each model may lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import harmonic_mean
from typing import Literal, NamedTuple

from report.compare.cells import Cell, Ratio, Speedup, speedup
from report.compare.groups import ComparisonGroup
from report.compare.key import each_nearest_the_card, matched, same_but
from report.compare.spread import UnitBand, UnitSpread, unit_band, unit_spreads
from report.trials.key import grouped_by

_place = same_but(within=("length",))


class System(NamedTuple):
    """A card in a machine."""

    machine: str
    card: str


CellsBySystem = Mapping[System, Sequence[Cell]]
"""The cells of one group."""


@dataclass(frozen=True, slots=True)
class SpeedRange:
    """The least and the most, in times as fast."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the range cannot tell its figure from `value`."""
        return self.low <= value <= self.high

    @property
    def inverse(self) -> SpeedRange:
        """In times as slow."""
        return SpeedRange(1 / self.high, 1 / self.low)


VAGUE = 4.0
"""Times its low end: a range that ends higher does not say how fast."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """How many times as fast `fast` trains the mix as `slow`: these units, and any two of their models."""

    fast: System
    slow: System
    benchmarks: tuple[Speedup, ...]
    best: float
    units: SpeedRange | None
    model: SpeedRange | None
    band: UnitBand
    ranked: bool

    @property
    def tied(self) -> bool | None:
        """Whether the range that a buyer will receive includes 1; null without an interval."""
        return None if self.model is None else self.model.includes(1.0)

    @property
    def divided(self) -> bool:
        """Whether the works say otherwise of each other, whichever of the two is taken for the slower."""
        return self.best < 1 and self.units is None and all(each.ratio.interval for each in self.benchmarks)

    @property
    def standing(self) -> Literal["faster", "tied", "first look", "by the work", "single runs"]:
        """What may be said of `fast`: unranked runs, and too few blocks of time, are a first look."""
        if self.divided:
            return "by the work"
        if self.tied is None:
            return "single runs"
        if self.tied:
            return "tied"
        return "faster" if self.ranked and not self.blocks_assumed else "first look"

    @property
    def blocks_assumed(self) -> int | None:
        """The fewest blocks of time of a work, where they show no spread between hours, which is assumed."""
        intervals = (each.ratio.interval for each in self.benchmarks)
        few = [blocks for interval in intervals if interval and (blocks := interval.blocks_assumed)]
        return min(few, default=None)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Both sides of each benchmark."""
        return tuple(cell for work in self.benchmarks for cell in (work.of, work.over))

    @property
    def vague(self) -> bool:
        """Whether runs of these two units lie too far apart to say how many times as fast one is."""
        return self.units is not None and self.units.high > VAGUE * self.units.low


def expectations(
    groups: Sequence[ComparisonGroup], spreads: Mapping[str, UnitSpread] | None = None
) -> tuple[Expectation, ...]:
    """The leading systems against all with equal benchmarks: first what beats them most, then what they beat.

    `spreads` are of all units on record; by default of those in the groups.
    """
    entries = [entry for group in groups for entry in group.entries]
    own = list(dict.fromkeys(_system(entry.cell) for entry in entries if entry.own))
    others = dict.fromkeys(_system(entry.cell) for entry in entries if not entry.own)
    pairs = [(a, b) for a in own for b in others if a != b]
    pairs += [(a, b) for a, b in pairwise(own) if a.card != b.card]
    in_groups = ([entry.cell for entry in group.entries] for group in groups)
    cells = [grouped_by(alike, _system) for alike in in_groups]
    compared = [(a, b) for a, b in pairs if _benchmarks(cells, a, b, 1)]

    def rank(expectation: Expectation) -> tuple[bool, bool, float]:
        beaten = expectation.slow in own
        return not expectation.ranked, not beaten, -expectation.best if beaten else expectation.best

    spreads = spreads or unit_spreads(trial for entry in entries for trial in entry.cell.trials)
    made = (_expectation(cells, a, b, len(compared), spreads) for a, b in compared)
    return tuple(sorted(made, key=rank))


def _system(cell: Cell) -> System:
    return System(cell.machine, cell.card)


def _benchmarks(cells: Sequence[CellsBySystem], a: System, b: System, comparisons: int) -> list[Speedup]:
    """Cells of equal key and length, of each workload in the mode nearest the card."""
    benchmarks = []
    for of_group in cells:
        for of, equal in matched(of_group.get(a, ()), of_group.get(b, ()), _place):
            found = (speedup(of, over, comparisons=comparisons) for over in equal)
            benchmarks += [benchmark for benchmark in found if benchmark]
    return [nearest[0] for nearest in each_nearest_the_card(benchmarks, lambda benchmark: benchmark.of.key)]


def _expectation(
    cells: Sequence[CellsBySystem],
    a: System,
    b: System,
    comparisons: int,
    spreads: Mapping[str, UnitSpread],
) -> Expectation:
    benchmarks = _benchmarks(cells, a, b, comparisons)
    best, _ = mix([benchmark.ratio for benchmark in benchmarks])
    if best < 1:
        benchmarks = [each.inverse for each in benchmarks]
        a, b = b, a
    best, units = mix([benchmark.ratio for benchmark in benchmarks])
    if best < 1 and any(benchmark.ratio.tied is False for benchmark in benchmarks):
        units = None
    band = unit_band(*(spreads.get(each.card, UnitSpread()) for each in (a, b)), comparisons=comparisons)
    model = units and SpeedRange(*band.around(units.low, best, units.high))
    ranked = all(benchmark.of.ranked and benchmark.over.ranked for benchmark in benchmarks)
    return Expectation(a, b, tuple(benchmarks), best, units, model, band, ranked)


def mix(ratios: Sequence[Ratio]) -> tuple[float, SpeedRange | None]:
    """Return times as fast over a mix, the harmonic mean; null for a range where one has no interval."""
    best = harmonic_mean([ratio.estimate for ratio in ratios])
    ends = [(ratio.interval.low, ratio.interval.high) for ratio in ratios if ratio.interval]
    if len(ends) < len(ratios):
        return best, None
    lows, highs = zip(*ends, strict=True)
    return best, SpeedRange(harmonic_mean(lows), harmonic_mean(highs))
