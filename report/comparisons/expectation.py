"""One card or machine against another, in the population that a buyer will receive.

The mix is the buyer's own hours of each work that both have done, or, where none are given, every such work
with an equal share of the slower side's time. Time on one side over time on the other is then Σ wᵢ·rᵢ of the
works' ratios rᵢ. Its bounds are the weighted sums of the works' bounds, as if all erred together: exact for
one work, wide for more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from report import text
from report.comparisons.cells import Cell, Ratio, cell_ratio
from report.comparisons.groups import ComparisonGroup, Entry
from report.comparisons.unit_spread import UnitBand, pair_band
from report.trials.key import Key, ProtocolLength
from report.trials.pairs import each_nearest_the_card, matched, same_but

_place = same_but(within=("length",))


@dataclass(frozen=True, slots=True)
class System:
    """A card in a machine, and what the page calls it."""

    machine: str
    card: str
    name: str


@dataclass(frozen=True, slots=True)
class Benchmark:
    """One line of equal work: how many times as fast the faster side trains it."""

    of: Cell
    over: Cell
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Buyer:
    """The buyer's own mix: hours of each work, as they pass on one side, a machine and a card."""

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


@dataclass(frozen=True, slots=True)
class Expectation:
    """How many times as fast `fast` trains the mix as `slow`: these units, and any two of their models."""

    fast: System
    slow: System
    works: tuple[Benchmark, ...]
    best: float
    units: SpeedRange | None
    model: SpeedRange | None
    band: UnitBand
    comparisons: int
    ranked: bool
    own_mix: bool = False
    """Whether the works are weighed by the buyer's hours."""

    @property
    def tied(self) -> bool | None:
        """Whether the range that a buyer will receive includes 1; null without an interval."""
        return None if self.model is None else self.model.includes(1.0)


def expectations(groups: Sequence[ComparisonGroup], buyer: Buyer | None = None) -> tuple[Expectation, ...]:
    """The leading side against every other that did equal work: first what beats it most, then what it beats.

    With a `buyer` only work that has hours counts; a pair that did none of it is left out.
    """
    lines = [entry for group in groups for entry in group.entries]
    own = _sides([line for line in lines if line.own])
    others = _sides([line for line in lines if not line.own])
    pairs = [(a, b) for a in own for b in others if (a.machine, a.card) != (b.machine, b.card)]
    pairs += [(a, b) for a, b in pairwise(own) if a.card != b.card]
    made = [(a, b) for a, b in pairs if _works(groups, a, b, 1, buyer)]
    kept = [_expectation(groups, a, b, len(made), buyer) for a, b in made]
    leading = {(side.machine, side.card) for side in own}

    def place(one: Expectation) -> tuple[bool, bool, float]:
        beaten = (one.slow.machine, one.slow.card) in leading
        return not one.ranked, not beaten, -one.best if beaten else one.best

    return tuple(sorted(kept, key=place))


def _sides(lines: Sequence[Entry]) -> list[System]:
    found: dict[tuple[str, str], Cell] = {}
    for line in lines:
        found.setdefault((line.cell.machine, line.cell.card), line.cell)
    return [System(machine, card, text.short_card(card)) for machine, card in found]


def _named(a: System, b: System, groups: Sequence[ComparisonGroup]) -> tuple[System, System]:
    """By their cards; by their machines' labels where the cards are called the same."""
    if a.name != b.name:
        return a, b
    labels = {entry.cell.machine: entry.cell.machine_label for c in groups for entry in c.entries}
    return tuple(replace(side, name=text.clean(labels[side.machine], 40)) for side in (a, b))  # type: ignore[return-value]


def _works(
    groups: Sequence[ComparisonGroup], a: System, b: System, comparisons: int, buyer: Buyer | None
) -> list[Benchmark]:
    """Lines of equal key and length: those with hours, else in the mode nearest the card of each work."""
    found = []
    for group in groups:
        for of, equal in matched(_of_side(group, a), _of_side(group, b), _place):
            if buyer is None or buyer.hours.get((of.key, of.length)):
                found += [work for over in equal if (work := _compared(of, over, comparisons))]
    return [nearest[0] for nearest in each_nearest_the_card(found, lambda work: work.of.key)]


def _compared(of: Cell, over: Cell, comparisons: int) -> Benchmark | None:
    ratio = cell_ratio(over, of, "seconds", comparisons=comparisons)
    ratio = ratio or cell_ratio(of, over, "throughput", comparisons=comparisons)
    return Benchmark(of, over, ratio) if ratio else None


def _of_side(group: ComparisonGroup, side: System) -> list[Cell]:
    return [
        entry.cell
        for entry in group.entries
        if (entry.cell.machine, entry.cell.card) == (side.machine, side.card)
    ]


def _expectation(
    groups: Sequence[ComparisonGroup], a: System, b: System, comparisons: int, buyer: Buyer | None
) -> Expectation:
    works = _works(groups, a, b, comparisons, buyer)
    best, _ = mix([work.ratio for work in works], _weights(works, buyer, groups))
    a, b = _named(a, b, groups)
    if best < 1:
        works = [Benchmark(work.over, work.of, _inverse(work.ratio)) for work in works]
        a, b = b, a
    best, units = mix([work.ratio for work in works], _weights(works, buyer, groups))
    band = pair_band([entry.cell for c in groups for entry in c.entries], a.card, b.card, best)
    model = units and SpeedRange(units.low * band.low / best, units.high * band.high / best)
    ranked = all(work.of.ranked and work.over.ranked for work in works)
    return Expectation(
        a, b, tuple(works), best, units, model, band, comparisons, ranked, own_mix=buyer is not None
    )


def _weights(
    works: Sequence[Benchmark], buyer: Buyer | None, groups: Sequence[ComparisonGroup]
) -> list[float]:
    """The time that each work takes on the side which the others are held against; any unit."""
    if buyer is None:
        return [1.0] * len(works)
    return [_hours_over(work, buyer, groups) for work in works]


def _hours_over(work: Benchmark, buyer: Buyer, groups: Sequence[ComparisonGroup]) -> float:
    """The buyer's hours as they pass on the side `over`: times its time ÷ that of the side they are given on.

    Where that side did not do this work they are taken to be of `over` itself.
    """
    hours = buyer.hours[work.over.key, work.over.length]
    if buyer.on == (work.over.machine, work.over.card):
        return hours
    if buyer.on == (work.of.machine, work.of.card):
        return hours * work.ratio.estimate
    for group in groups:
        for entry in group.entries:
            cell = entry.cell
            if (cell.machine, cell.card) == buyer.on and (cell.key, cell.length) == (
                work.over.key,
                work.over.length,
            ):
                found = cell_ratio(work.over, cell, "seconds") or cell_ratio(cell, work.over, "throughput")
                return hours * (found.estimate if found else 1.0)
    return hours


def mix(ratios: Sequence[Ratio], weights: Sequence[float]) -> tuple[float, SpeedRange | None]:
    """Times as fast over a mix: 1 ÷ Σ wᵢ/xᵢ, w the shares of the slower side's time, xᵢ times as fast.

    Null for a range where one ratio has no interval.
    """
    total = sum(weights)
    shares = [weight / total for weight in weights]

    def over(values: Sequence[float]) -> float:
        return 1 / sum(share / value for share, value in zip(shares, values, strict=True))

    best = over([ratio.estimate for ratio in ratios])
    intervals = [ratio.interval for ratio in ratios if ratio.interval]
    if len(intervals) < len(ratios):
        return best, None
    return best, SpeedRange(over([one.low for one in intervals]), over([one.high for one in intervals]))


def _inverse(ratio: Ratio) -> Ratio:
    interval = ratio.interval
    if interval is not None:
        interval = replace(
            interval, low=1 / interval.high, estimate=1 / interval.estimate, high=1 / interval.low
        )
    return Ratio(1 / ratio.estimate, interval, (ratio.n[1], ratio.n[0]))
