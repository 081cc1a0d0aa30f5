"""From one card to its model: the band that other units of the same model may lie in."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy import stats

from report.stats import Cell

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
    spread = float(np.log(np.asarray(units, dtype=np.float64)).std(ddof=1))
    reach = float(stats.t.ppf((1 + level) / 2, m - 1)) * spread * math.sqrt(1 + 1 / m)
    return UnitBand(ratio * math.exp(-reach), ratio * math.exp(reach), True, m)


def pair_band(cells: Sequence[Cell], one: str, other: str, ratio: float = 1.0) -> UnitBand:
    """The band around a ratio of two cards; measured where three units of each are on record.

    Both are drawn anew, so the squares of their reaches add.
    """
    bands = [unit_band(ratio, unit_means(cells, card)) for card in (one, other)]
    if not all(band.measured for band in bands):
        return unit_band(ratio)
    reach = math.hypot(*(math.log(band.high / ratio) for band in bands))
    units = min(band.units for band in bands)
    return UnitBand(ratio * math.exp(-reach), ratio * math.exp(reach), True, units)


def unit_means(cells: Iterable[Cell], card: str) -> list[float]:
    """One mean throughput per unit of a card, on the work that most of its units did under one key."""
    by_key: dict[object, dict[str, list[float]]] = {}
    for cell in cells:
        for row in cell.rows if cell.card == card else ():
            rate = row.metrics.throughput if row.metrics and row.verdict != "invalid" else None
            if row.unit and rate:
                by_key.setdefault(cell.key, {}).setdefault(row.unit, []).append(rate)
    most: dict[str, list[float]] = max(by_key.values(), key=len, default={})
    return [fmean(values) for values in most.values()] if len(most) >= UNITS_TO_MEASURE else []
