"""How many sound machines miss the figure that they were ordered by, because units of one model differ."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy
from scipy import special

from report.compare.spread import UnitSpread

ORDERS = (1, 8, 64)
"""Machines of an order."""

_POINTS = 100
_LEAST_CV = 1e-9
"""In place of none, by which nothing can be divided."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Of so many `machines` the number that is expected to miss the figure, and its 95 % range."""

    machines: int
    expected: float
    low: int
    high: int


def shortfalls(spread: UnitSpread, margin: float) -> tuple[Shortfall, ...]:
    """The same for each size of an order."""
    return tuple(shortfall(machines, spread, margin) for machines in ORDERS)


def shortfall(machines: int, spread: UnitSpread, margin: float) -> Shortfall:
    """How many of N machines do less than 1 − margin of a figure that was measured on another unit.

    Logarithms of the speeds of units are normal with standard deviation CV. Where the unit of the figure lies
    z·CV above their mean, each machine misses with p(z) = Φ(z + ln(1 − margin) ÷ CV), and k of N with the
    binomial probability of p. All share one z ~ N(0, 1) and, where the CV was measured on m units, one
    CV·√(df ÷ χ²) with df = m − 1: the range is that of the mixture over both. The expected number is
    N·T(ln(1 − margin) ÷ (√2·CV)), T being Student's distribution function with df, normal for an assumed CV.
    """
    limit = math.log1p(-margin) / max(spread.cv, _LEAST_CV)
    at = (numpy.arange(_POINTS) + 0.5) / _POINTS
    scale = numpy.sqrt(special.chdtri(spread.df, at) / spread.df) if spread.measured else numpy.ones(1)
    missing = special.ndtr(special.ndtri(at)[:, None] + limit * scale)
    at_most = numpy.array([special.bdtr(k, machines, missing).mean() for k in range(machines)])
    beyond = limit / math.sqrt(2)
    share = special.stdtr(spread.df, beyond) if spread.measured else special.ndtr(beyond)
    low, high = (int((at_most < end).sum()) for end in (0.025, 0.975))
    return Shortfall(machines, machines * float(share), low, high)
