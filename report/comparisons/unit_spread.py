"""From one card to its model: the band that other units of the same model may lie in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy
from scipy import special

from report import text
from report.comparisons.cells import Cell
from report.stats.intervals import critical_t
from report.trials.trial import Trial

ASSUMED_SPREAD = 0.08
"""Between cards of one model, after Sinha et al., SC'22 (arXiv 2208.11035): 8 % on average."""

UNITS_TO_MEASURE = 3


@dataclass(frozen=True, slots=True)
class UnitBand:
    """Where another unit of the model may lie. `units` counts those on record."""

    low: float
    high: float
    measured: bool
    units: int

    @property
    def label(self) -> str:
        """The band's name beside its chart."""
        if self.measured:
            return f"unit-to-unit, measured on {self.units} units"
        return f"unit-to-unit, assumed ±{ASSUMED_SPREAD:.0%}"


def unit_band(ratio: float, units: Sequence[float] = (), level: float = 0.95) -> UnitBand:
    """The band around `ratio`; `units` holds one mean per unit of the model on record, in any one metric.

    Assumed ±8 % until three units are on record; then the prediction interval of one more unit,
    ratio · exp(± t(m − 1)·s·√(1 + 1/m)), s the standard deviation of the m units' logarithms.
    """
    m = len(units)
    if m < UNITS_TO_MEASURE:
        return UnitBand(ratio * (1 - ASSUMED_SPREAD), ratio * (1 + ASSUMED_SPREAD), False, m)
    reach = critical_t(level, m - 1) * log_spread(units) * math.sqrt(1 + 1 / m)
    return UnitBand(ratio * math.exp(-reach), ratio * math.exp(reach), True, m)


def pair_band(cells: Sequence[Cell], first: str, second: str, ratio: float = 1.0) -> UnitBand:
    """The band around a ratio of two cards; measured where three units of each are on record.

    Both are drawn anew, so the squares of their reaches add.
    """
    bands = [unit_band(ratio, unit_means(cells, card)) for card in (first, second)]
    if not all(band.measured for band in bands):
        return unit_band(ratio)
    reach = math.hypot(*(math.log(band.high / ratio) for band in bands))
    units = min(band.units for band in bands)
    return UnitBand(ratio * math.exp(-reach), ratio * math.exp(reach), True, units)


def unit_means(cells: Iterable[Cell], card: str) -> list[float]:
    """One mean throughput per unit of a card, on the one key that most of its units were measured on."""
    means = unit_levels(trial for cell in cells if cell.card == card for trial in cell.trials)
    return means if len(means) >= UNITS_TO_MEASURE else []


def unit_levels(trials: Iterable[Trial]) -> list[float]:
    """One mean throughput per unit, on the one card and key that most units were measured on."""
    levels: dict[object, dict[str, list[float]]] = {}
    for trial in trials:
        rate = trial.samples_per_second if trial.verdict != "invalid" else None
        if trial.device_unit and rate:
            levels.setdefault((trial.key, trial.card), {}).setdefault(trial.device_unit, []).append(rate)
    most: dict[str, list[float]] = max(levels.values(), key=len, default={})
    return [fmean(values) for values in most.values()]


def log_spread(values: Sequence[float]) -> float:
    """The standard deviation of the values' logarithms, of at least two."""
    return float(numpy.log(numpy.asarray(values, dtype=numpy.float64)).std(ddof=1))


@dataclass(frozen=True, slots=True)
class UnitSpread:
    """Of the logarithm of another unit's speed over this one's. `df` is infinite where it is assumed."""

    scale: float
    df: float
    units: int

    @property
    def measured(self) -> bool:
        return math.isfinite(self.df)

    @property
    def words(self) -> str:
        """How it is known."""
        if self.measured:
            return f"measured on {self.units} units"
        return f"assumed: ±{text.percent(ASSUMED_SPREAD)} holds 95 % of units"


def assumed_units() -> UnitSpread:
    """The band of ±8 % of the methodology, read as holding 95 % of units."""
    return UnitSpread(math.log(1 + ASSUMED_SPREAD) / float(special.ndtri(0.975)), math.inf, 1)


def unit_spread(levels: Sequence[float]) -> UnitSpread:
    """From one mean per unit of a model, in any one metric; assumed until three units are on record.

    One unit against another has √2 times the standard deviation of the units.
    """
    if len(levels) < UNITS_TO_MEASURE:
        return assumed_units()
    return UnitSpread(math.sqrt(2) * log_spread(levels), len(levels) - 1, len(levels))


def units_of(trials: Sequence[Trial], cells: Sequence[Cell]) -> UnitSpread:
    """The spread of the units of the cells' model, over the one workload that most units have measured."""
    places = {(cell.key, cell.card) for cell in cells}
    levels = unit_levels(trial for trial in trials if (trial.key, trial.card) in places)
    return replace(unit_spread(levels), units=max(len(levels), 1))
