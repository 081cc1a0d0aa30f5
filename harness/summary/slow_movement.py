"""How far step times drift, and how well their mean is known, where neighbouring steps are alike.

A parabola through block means holds the drift. What it leaves moves up and down; the correlation of
neighbouring blocks says how many blocks count as independent, and so how large every error is.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy
from numpy.polynomial import legendre
from numpy.typing import NDArray

BLOCKS = 40
LEAST_BLOCKS = 12
LEAST_VALUES = 4
"""Of a block."""
CORRELATION_AT_MOST = 0.9


@dataclass(frozen=True, slots=True)
class SlowMovement:
    """All relative to the mean."""

    change: float
    """Of a line, from the first value to the last."""
    change_error: float
    """Its standard error."""
    mean_error: float
    """The standard error of the mean of all values."""
    trend: float
    """F of line and parabola against the rest: about 1 where nothing drifts."""


def slow_movement(values: NDArray[numpy.float64]) -> SlowMovement | None:
    """A least-squares parabola with residuals of first-order autocorrelation; null where values are too few.

    The correlation is corrected for its bias in short series (Kendall, 1954), never taken as negative, and at
    most CORRELATION_AT_MOST. It widens the variance by (1 + r) ÷ (1 − r).
    """
    blocks = min(BLOCKS, values.size // LEAST_VALUES)
    if blocks < LEAST_BLOCKS:
        return None
    edges = numpy.linspace(0, values.size, blocks + 1).astype(int)
    means = numpy.add.reduceat(values, edges[:-1]) / numpy.diff(edges)
    basis, _ = numpy.linalg.qr(legendre.legvander(numpy.linspace(-1, 1, blocks), 2))
    fitted = basis.T @ means
    rest = means - basis @ fitted
    squares = max(float(rest @ rest), 1e-24 * float(means @ means))
    correlation = float(rest[1:] @ rest[:-1]) / squares
    correlation = min(CORRELATION_AT_MOST, max(0.0, correlation + (3 + 4 * correlation) / blocks))
    variance = squares / (blocks - 3) * (1 + correlation) / (1 - correlation)
    mean, reach = float(means.mean()), float(basis[-1, 1] - basis[0, 1])
    return SlowMovement(
        change=float(fitted[1]) * reach / mean,
        change_error=abs(reach) * variance**0.5 / mean,
        mean_error=(variance / blocks) ** 0.5 / mean,
        trend=float(fitted[1] ** 2 + fitted[2] ** 2) / 2 / variance,
    )
