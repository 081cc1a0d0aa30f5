"""A fleet: three or more units of one card that did the same work, the fastest first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from report.comparisons.units.spread import (
    UNITS_TO_MEASURE,
    UnitSpread,
    log_spread,
    mean_rate,
    unit_spread,
    units_by_work,
)
from report.stats.intervals import critical_t
from report.text import clean
from report.trials.key import Key
from report.trials.pairs import grouped_by
from report.trials.trial import Trial


@dataclass(frozen=True, slots=True)
class Unit:
    """One card, or the processor of one machine: its mean samples a second."""

    name: str
    trials: tuple[Trial, ...]
    rate: float
    share: float
    """Of the median unit's rate."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The units of one card on one work and stack, the fastest first."""

    card: str
    key: Key
    units: tuple[Unit, ...]
    spread: UnitSpread
    told_apart: float | None
    """Relative difference that one unit shows in one of twenty pairs of means; null where none ran twice."""


def fleets(trials: Iterable[Trial], lead: str | None) -> tuple[Fleet, ...]:
    """Of each card of the leading session the work that most of its units did, from three units on."""
    on_one = [trial for trial in trials if trial.key.gpus == 1]
    led = {trial.card for trial in on_one if trial.session == lead}
    cards = grouped_by((trial for trial in on_one if trial.card in led), lambda trial: trial.card)
    works = [max(units_by_work(own).values(), key=len, default={}) for own in cards.values()]
    return tuple(_fleet(list(units.values())) for units in works if len(units) >= UNITS_TO_MEASURE)


def _fleet(by_unit: Sequence[Sequence[Trial]]) -> Fleet:
    rates = [mean_rate(own) for own in by_unit]
    middle = median(rates)
    names = _names([own[0] for own in by_unit])
    units = [
        Unit(name, tuple(own), rate, rate / middle)
        for name, own, rate in zip(names, by_unit, rates, strict=True)
    ]
    first = by_unit[0][0]
    ordered = sorted(units, key=lambda unit: -unit.rate)
    return Fleet(first.device_name, first.key, tuple(ordered), unit_spread(rates), _told_apart(by_unit))


def _names(trials: Sequence[Trial]) -> list[str]:
    """Labels, and the card where several share one: by its place, or its id where that is not told."""
    several = grouped_by(trials, lambda trial: trial.machine_label)
    names = []
    for trial in trials:
        alike = several[trial.machine_label]
        places = [other.record.cards_given[:1] for other in alike]
        told = all(places) and len(set(places)) == len(places)
        card = f", card {trial.record.cards_given[0]}" if told else f", card {(trial.device_unit or '')[:6]}"
        names.append(clean(trial.machine_label, 40) + (card if len(alike) > 1 else ""))
    return names


def _told_apart(by_unit: Sequence[Sequence[Trial]]) -> float | None:
    """By the pooled variance of the runs of one unit, for two means of as many runs as the least have."""
    repeated = [[trial.samples_per_second or 0.0 for trial in own] for own in by_unit if len(own) > 1]
    df = sum(len(rates) - 1 for rates in repeated)
    if not df:
        return None
    pooled = math.sqrt(sum((len(rates) - 1) * log_spread(rates) ** 2 for rates in repeated) / df)
    fewest = min(map(len, by_unit))
    return math.expm1(critical_t(0.95, df) * pooled * math.sqrt(2 / fewest))
