"""One card or machine against another, in the population that a buyer will receive.

The mix is every work that both have done under one key, each with an equal share of the slower side's
time unless hours are given. Time on one side over time on the other is then Σ wᵢ·rᵢ of the works' ratios
rᵢ. Its bounds are the weighted sums of the works' bounds, as if all erred together: exact for one work,
wide for more.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean

from report import names, words
from report.contests import Contest, Line
from report.stats import Cell, Ratio, cell_ratio
from report.units import UNITS_TO_MEASURE, UnitBand, unit_band

MODES = ("cached", "device", "host")
"""From what shows the card alone to what shows the whole machine."""


@dataclass(frozen=True, slots=True)
class Side:
    """A card in a machine, and what the page calls it."""

    machine: str
    card: str
    name: str


@dataclass(frozen=True, slots=True)
class Work:
    """One line of equal work: how many times as fast the faster side trains it."""

    of: Cell
    over: Cell
    ratio: Ratio


@dataclass(frozen=True, slots=True)
class Range:
    """The least and the most, in times as fast."""

    low: float
    high: float

    def includes(self, value: float) -> bool:
        """Whether the range cannot tell its figure from `value`."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Expectation:
    """How many times as fast `fast` trains the mix as `slow`: these units, and any two of their models."""

    fast: Side
    slow: Side
    works: tuple[Work, ...]
    best: float
    units: Range | None
    model: Range | None
    band: UnitBand
    comparisons: int
    ranked: bool

    @property
    def tied(self) -> bool | None:
        """Whether the range that a buyer will receive includes 1; null without an interval."""
        return None if self.model is None else self.model.includes(1.0)


def expectations(
    contests: Sequence[Contest], hours: Mapping[str, float] | None = None
) -> tuple[Expectation, ...]:
    """The leading side against every other that did equal work: first what beats it most, then what it beats.

    `hours` weighs workloads by name with the hours that the slower side spends on each; a workload without
    hours is left out.
    """
    lines = [line for contest in contests for line in contest.lines]
    own = _sides([line for line in lines if line.own])
    others = _sides([line for line in lines if not line.own])
    pairs = [(a, b) for a in own for b in others if (a.machine, a.card) != (b.machine, b.card)]
    pairs += [(a, b) for a, b in pairwise(own) if a.card != b.card]
    made = [(a, b) for a, b in pairs if _works(contests, a, b, 1)]
    found = [_expectation(contests, a, b, len(made), hours) for a, b in made]
    kept = [one for one in found if one is not None]
    leading = {(side.machine, side.card) for side in own}

    def place(one: Expectation) -> tuple[bool, bool, float]:
        beaten = (one.slow.machine, one.slow.card) in leading
        return not one.ranked, not beaten, -one.best if beaten else one.best

    return tuple(sorted(kept, key=place))


def _sides(lines: Sequence[Line]) -> list[Side]:
    found: dict[tuple[str, str], Cell] = {}
    for line in lines:
        found.setdefault((line.cell.machine, line.cell.card), line.cell)
    return [Side(machine, card, names.short_card(card)) for machine, card in found]


def _named(a: Side, b: Side, contests: Sequence[Contest]) -> tuple[Side, Side]:
    """By their cards; by their machines' labels where the cards are called the same."""
    if a.name != b.name:
        return a, b
    labels = {line.cell.machine: line.cell.machine_label for c in contests for line in c.lines}
    return tuple(replace(side, name=words.clean(labels[side.machine], 40)) for side in (a, b))  # type: ignore[return-value]


def _works(contests: Sequence[Contest], a: Side, b: Side, comparisons: int) -> list[Work]:
    """Lines of equal key and length, in the mode nearest the card where a work was done in several."""
    found: dict[object, Work] = {}
    for contest in contests:
        for of in _of_side(contest, a):
            for over in _of_side(contest, b):
                if of.key != over.key or of.length != over.length:
                    continue
                ratio = cell_ratio(over, of, "seconds", comparisons=comparisons)
                ratio = ratio or cell_ratio(of, over, "throughput", comparisons=comparisons)
                place = replace(of.key, data_mode="", data_sha256=None)
                other = found.get(place)
                if ratio and (other is None or _nearer(of, other.of)):
                    found[place] = Work(of, over, ratio)
    return list(found.values())


def _nearer(one: Cell, other: Cell) -> bool:
    return MODES.index(one.key.data_mode) < MODES.index(other.key.data_mode)


def _of_side(contest: Contest, side: Side) -> list[Cell]:
    return [
        line.cell
        for line in contest.lines
        if (line.cell.machine, line.cell.card) == (side.machine, side.card)
    ]


def _expectation(
    contests: Sequence[Contest], a: Side, b: Side, comparisons: int, hours: Mapping[str, float] | None
) -> Expectation | None:
    works = _works(contests, a, b, comparisons)
    weights = _weights(works, hours)
    if weights is None:
        return None
    first = mix([work.ratio for work in works], weights)
    a, b = _named(a, b, contests)
    if first[0] < 1:
        works = [Work(work.over, work.of, _inverse(work.ratio)) for work in works]
        weights = _weights(works, hours) or weights
        a, b = b, a
    best, units = mix([work.ratio for work in works], weights)
    band = _band(contests, a, b, best)
    model = units and Range(units.low * band.low / best, units.high * band.high / best)
    ranked = all(work.of.ranked and work.over.ranked for work in works)
    return Expectation(a, b, tuple(works), best, units, model, band, comparisons, ranked)


def _weights(works: Sequence[Work], hours: Mapping[str, float] | None) -> list[float] | None:
    if hours is None:
        return [1.0] * len(works) if works else None
    each = {name: sum(work.of.key.workload == name for work in works) for name in hours}
    weights = [
        hours.get(work.of.key.workload, 0.0) / max(each.get(work.of.key.workload, 1), 1) for work in works
    ]
    return weights if sum(weights) > 0 else None


def mix(ratios: Sequence[Ratio], weights: Sequence[float]) -> tuple[float, Range | None]:
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
    return best, Range(over([one.low for one in intervals]), over([one.high for one in intervals]))


def _inverse(ratio: Ratio) -> Ratio:
    interval = ratio.interval
    if interval is not None:
        interval = replace(
            interval, low=1 / interval.high, estimate=1 / interval.estimate, high=1 / interval.low
        )
    return Ratio(1 / ratio.estimate, interval, (ratio.n[1], ratio.n[0]))


def _band(contests: Sequence[Contest], a: Side, b: Side, best: float) -> UnitBand:
    """Measured where three units of each model are on record: both are drawn anew, so their squares add."""
    bands = [unit_band(best, unit_means(contests, side.card)) for side in (a, b)]
    if not all(band.measured for band in bands):
        return unit_band(best)
    reach = math.hypot(*(math.log(band.high / best) for band in bands))
    units = min(band.units for band in bands)
    return UnitBand(best * math.exp(-reach), best * math.exp(reach), True, units)


def unit_means(contests: Sequence[Contest], card: str) -> list[float]:
    """One mean throughput per unit of a card on the work that most of its units did, under one key."""
    by_key: dict[object, dict[str, list[float]]] = {}
    for contest in contests:
        for line in contest.lines:
            if line.cell.card != card or line.cell.verdict == "invalid":
                continue
            for row in line.cell.rows:
                rate = row.metrics.throughput if row.metrics else None
                if row.unit and rate:
                    by_key.setdefault(line.cell.key, {}).setdefault(row.unit, []).append(rate)
    most = max(by_key.values(), key=len, default={})
    return [fmean(values) for values in most.values()] if len(most) >= UNITS_TO_MEASURE else []
