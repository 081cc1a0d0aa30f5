"""One card or machine against another, in the population that a buyer will receive.

The mix is the buyer's own hours of each benchmark that both have run, or, where none are given, every such
benchmark with an equal share of the slower system's time. Time on one system over time on the other is then
Σ wᵢ·rᵢ of the benchmarks' ratios rᵢ. Its bounds are the weighted sums of theirs, as if all erred together:
exact for one benchmark, wide for more. The range for any two units adds to them, in squares, how far two
units of each model may lie apart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from report.compare.cells import Cell, Ratio, cell_ratio
from report.compare.groups import ComparisonGroup, GroupEntry
from report.compare.key import each_nearest_the_card, matched, same_but
from report.compare.spread import UnitBand, UnitSpreads, spreads_among, unit_band
from report.stats.intervals import Ranking, ranking
from report.trials.key import Key, ProtocolLength, grouped_by

_place = same_but(within=("length",))

CellsBySystem = Mapping[tuple[str, str], Sequence[Cell]]
"""Of one group, by machine and card."""


@dataclass(frozen=True, slots=True)
class System:
    """A card in a machine."""

    machine: str
    card: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One workload run by both: how many times as fast the faster system trains it."""

    of: Cell
    over: Cell
    ratio: Ratio

    @property
    def inverse(self) -> Benchmark:
        """The slower system against the faster."""
        return Benchmark(self.over, self.of, self.ratio.inverse)


@dataclass(frozen=True, slots=True)
class Buyer:
    """The buyer's own mix: hours of each workload, as they pass on one system, a machine and a card."""

    hours: Mapping[tuple[Key, ProtocolLength], float]
    on: tuple[str, str]


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
    benchmarks: tuple[Benchmark, ...]
    best: float
    units: SpeedRange | None
    model: SpeedRange | None
    band: UnitBand
    comparisons: int
    ranked: bool
    own_mix: bool = False
    """Whether the benchmarks are weighed by the buyer's hours."""

    @property
    def tied(self) -> bool | None:
        """Whether the range that a buyer will receive includes 1; null without an interval."""
        return None if self.model is None else self.model.includes(1.0)

    @property
    def ranking(self) -> Ranking:
        """Whether `fast` may be called the faster."""
        return ranking(tied=self.tied, ranked=self.ranked and not self.blocks_assumed)

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
    groups: Sequence[ComparisonGroup], buyer: Buyer | None = None, spreads: UnitSpreads | None = None
) -> tuple[Expectation, ...]:
    """The leading systems against all with equal benchmarks: first what beats them most, then what they beat.

    With a `buyer` only benchmarks that have hours count; a pair that ran none of them is left out. `spreads`
    are of all units on record; by default of those in the groups.
    """
    entries = [entry for group in groups for entry in group.entries]
    own = _systems([entry for entry in entries if entry.own])
    others = _systems([entry for entry in entries if not entry.own])
    pairs = [(a, b) for a in own for b in others if (a.machine, a.card) != (b.machine, b.card)]
    pairs += [(a, b) for a, b in pairwise(own) if a.card != b.card]
    in_groups = ([entry.cell for entry in group.entries] for group in groups)
    cells = [grouped_by(alike, lambda cell: (cell.machine, cell.card)) for alike in in_groups]
    compared = [(a, b) for a, b in pairs if _benchmarks(cells, a, b, 1, buyer)]
    leading = {(system.machine, system.card) for system in own}

    def rank(expectation: Expectation) -> tuple[bool, bool, float]:
        beaten = (expectation.slow.machine, expectation.slow.card) in leading
        return not expectation.ranked, not beaten, -expectation.best if beaten else expectation.best

    spreads = spreads or spreads_among(entry.cell for entry in entries)
    made = (_expectation(groups, cells, a, b, len(compared), buyer, spreads) for a, b in compared)
    return tuple(sorted(made, key=rank))


def _systems(entries: Sequence[GroupEntry]) -> list[System]:
    places = dict.fromkeys((entry.cell.machine, entry.cell.card) for entry in entries)
    return [System(machine, card) for machine, card in places]


def _benchmarks(
    cells: Sequence[CellsBySystem], a: System, b: System, comparisons: int, buyer: Buyer | None
) -> list[Benchmark]:
    """Cells of equal key and length: those with hours, else in the mode nearest the card of each workload."""
    benchmarks = []
    for of_group in cells:
        own, others = (of_group.get((system.machine, system.card), ()) for system in (a, b))
        for of, equal in matched(own, others, _place):
            if buyer is None or buyer.hours.get((of.key, of.length)):
                benchmarks += [benchmark for over in equal if (benchmark := _compared(of, over, comparisons))]
    return [nearest[0] for nearest in each_nearest_the_card(benchmarks, lambda benchmark: benchmark.of.key)]


def _compared(of: Cell, over: Cell, comparisons: int) -> Benchmark | None:
    ratio = cell_ratio(over, of, "seconds", comparisons=comparisons)
    ratio = ratio or cell_ratio(of, over, "throughput", comparisons=comparisons)
    return Benchmark(of, over, ratio) if ratio else None


def _expectation(
    groups: Sequence[ComparisonGroup],
    cells: Sequence[CellsBySystem],
    a: System,
    b: System,
    comparisons: int,
    buyer: Buyer | None,
    spreads: UnitSpreads,
) -> Expectation:
    benchmarks = _benchmarks(cells, a, b, comparisons, buyer)
    best, _ = mix([benchmark.ratio for benchmark in benchmarks], _weights(benchmarks, buyer, groups))
    if best < 1:
        benchmarks = [each.inverse for each in benchmarks]
        a, b = b, a
    best, units = mix([benchmark.ratio for benchmark in benchmarks], _weights(benchmarks, buyer, groups))
    band = unit_band(spreads.of(a.card), spreads.of(b.card), comparisons=comparisons)
    model = units and SpeedRange(*band.around(units.low, best, units.high))
    ranked = all(benchmark.of.ranked and benchmark.over.ranked for benchmark in benchmarks)
    return Expectation(
        a, b, tuple(benchmarks), best, units, model, band, comparisons, ranked, own_mix=buyer is not None
    )


def _weights(
    benchmarks: Sequence[Benchmark], buyer: Buyer | None, groups: Sequence[ComparisonGroup]
) -> list[float]:
    """The time that each benchmark takes on the system that the other is held against; any unit."""
    if buyer is None:
        return [1.0] * len(benchmarks)
    return [_hours_over(benchmark, buyer, groups) for benchmark in benchmarks]


def _hours_over(benchmark: Benchmark, buyer: Buyer, groups: Sequence[ComparisonGroup]) -> float:
    """The buyer's hours as they pass on `over`: times its time ÷ that of the system they are given on.

    Where that system did not run this benchmark they are taken to be of `over` itself.
    """
    of, over = benchmark.of, benchmark.over
    hours = buyer.hours[over.key, over.length]
    if buyer.on == (over.machine, over.card):
        return hours
    if buyer.on == (of.machine, of.card):
        return hours * benchmark.ratio.estimate
    for cell in (entry.cell for group in groups for entry in group.entries):
        if (cell.machine, cell.card) == buyer.on and (cell.key, cell.length) == (over.key, over.length):
            ratio = cell_ratio(over, cell, "seconds") or cell_ratio(cell, over, "throughput")
            return hours * (ratio.estimate if ratio else 1.0)
    return hours


def mix(ratios: Sequence[Ratio], weights: Sequence[float]) -> tuple[float, SpeedRange | None]:
    """Times as fast over a mix: 1 ÷ Σ wᵢ/xᵢ, w the shares of the slower system's time, xᵢ times as fast.

    Null for a range where one ratio has no interval.
    """
    total = sum(weights)
    shares = [weight / total for weight in weights]

    def over(values: Sequence[float]) -> float:
        return 1 / sum(share / value for share, value in zip(shares, values, strict=True))

    best = over([ratio.estimate for ratio in ratios])
    ends = [(ratio.interval.low, ratio.interval.high) for ratio in ratios if ratio.interval]
    if len(ends) < len(ratios):
        return best, None
    lows, highs = zip(*ends, strict=True)
    return best, SpeedRange(over(lows), over(highs))
