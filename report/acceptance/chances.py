"""How often an acceptance rule is wrong: for a good card, for a slow one.

D = log(delivered) − log(figure), of mean throughputs; D ≥ log(1 − margin) passes. For a good card D = U + E.
U is a level that all rows share: that of the unit, normal with √2 times the coefficient of variation (CV) of
the model's units, since the measured unit is a draw as well; and that of the hours, where they are assumed.
E is the noise of a row: normal, with √2 times the standard error of its figure, since as many runs are made
again. A slow card is a good one with log(1 − slow) added.

That error is estimated, with few degrees of freedom. The chance that E reaches an edge is taken by
the estimator of Lieberman and Resnikoff (J. Am. Stat. Assoc. 50, 1955): over all orders its mean is the true
chance. Student's t would give more than the true one, the normal distribution less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray
from scipy import special

from report.comparisons.units.spread import log_spread
from report.stats.intervals import ASSUMED_BLOCK_SPREAD, BLOCKS_NEEDED, Interval, Runs, critical_t

TOLERANCE = 0.02
"""A chance that the order's runs leave open by more is not stated."""

CONFIDENCE = 0.90
"""That the noise is no larger than what `TOLERANCE` is held against."""

_GRID = 2001
_MANY = 1e6
"""Degrees of freedom from which on the noise is as good as known."""

_NOTHING = 1e-9
"""A share of an error below which it is what rounding leaves."""

Floats = NDArray[numpy.float64]


@dataclass(frozen=True, slots=True)
class Noise:
    """Of one row: the standard error of its figure's logarithm, with its degrees of freedom."""

    error: float
    df: float
    hours: float = 0.0
    """What is assumed of hours, beside that error."""
    unseen: float = 0.0
    """How much hours may differ beyond what is assumed of them."""

    @classmethod
    def of(cls, runs: Runs, figure: Interval) -> Noise:
        """From runs and the interval of their geometric mean.

        In fewer than three blocks that interval holds what is assumed of hours, which is taken out of its
        error, and nothing shows that hours differ by less than runs do.
        """
        reach = math.log(figure.high / figure.estimate)
        error2 = (reach / critical_t(figure.level, figure.df)) ** 2
        blocks = len(set(runs.blocks))
        if blocks >= BLOCKS_NEEDED:
            return cls(math.sqrt(error2), figure.df)
        hours2 = ASSUMED_BLOCK_SPREAD**2 / blocks
        own = 1 - hours2 / error2
        unseen = log_spread(runs.values)
        if own < _NOTHING:
            return cls(0.0, math.inf, math.sqrt(hours2), unseen)
        return cls(math.sqrt(own * error2), figure.df * own**2, math.sqrt(hours2), unseen)

    @property
    def loudest(self) -> Noise:
        """With the most error that its runs allow, as if that were known."""
        low = float(special.chdtri(self.df, CONFIDENCE)) / self.df if self.df < _MANY else 1.0
        return replace(self, error=self.error / math.sqrt(low), df=math.inf)

    @property
    def by_hours(self) -> Noise:
        """With hours that differ as much as runs do."""
        return replace(self, hours=math.hypot(self.hours, self.unseen))


@dataclass(frozen=True, slots=True)
class Chances:
    """Of the rule being wrong, each over all rows together."""

    good_fails: float
    slow_passes: float


def chances(noises: Sequence[Noise], cv: float, *, margin: float, slow: float) -> Chances | None:
    """How often a good card misses a figure, and a slow one none, where units differ by `cv`.

    Null where the runs leave either open by more than `TOLERANCE`.
    """
    stated = _chances(noises, cv, margin, slow)
    loudest, by_hours = [noise.loudest for noise in noises], [noise.by_hours for noise in noises]
    for other in (_chances(loudest, cv, margin, slow), _chances(by_hours, cv, margin, slow)):
        apart = (other.good_fails - stated.good_fails, other.slow_passes - stated.slow_passes)
        if max(map(abs, apart)) > TOLERANCE:
            return None
    return stated


def _chances(noises: Sequence[Noise], cv: float, margin: float, slow: float) -> Chances:
    shared = math.sqrt(2) * math.hypot(cv, max(noise.hours for noise in noises))
    levels = special.ndtri((numpy.arange(_GRID) + 0.5) / _GRID) * shared if shared else numpy.zeros(1)
    edge = math.log1p(-margin)
    good = float(_all_reached(noises, edge - levels).mean())
    slower = float(_all_reached(noises, edge - levels - math.log1p(-slow)).mean())
    return Chances(min(1.0, max(0.0, 1 - good)), min(1.0, max(0.0, slower)))


def _all_reached(noises: Sequence[Noise], edges: Floats) -> Floats:
    """For each edge, the chance that every row's noise reaches it; the rows' noises are independent."""
    chance = numpy.ones_like(edges)
    for noise in noises:
        chance = chance * _reached(-edges, math.sqrt(2) * noise.error, noise.df)
    return chance


def _reached(distances: Floats, scale: float, df: float) -> Floats:
    """The chance that noise of this scale falls no deeper than each distance."""
    if scale == 0:
        return numpy.asarray(distances >= 0, dtype=numpy.float64)
    depths = distances / scale
    if df >= _MANY:
        return numpy.asarray(special.ndtr(depths))
    half = max(df - 1, 1e-3) / 2
    return numpy.asarray(special.betainc(half, half, (1 + numpy.clip(depths / math.sqrt(df), -1, 1)) / 2))
