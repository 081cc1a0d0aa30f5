"""What is drawn: runs of two sides, in blocks of time, with the ways in which real ones are not normal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from benchmarks.coverage.cases import Generator
from report.stats.intervals import Runs

Floats = NDArray[np.float64]
Sample = Callable[[Generator, int], Floats]
"""So many values with a log mean of 0."""

CV = 0.01
"""Of runs, where a case says nothing else."""
BLOCK_CV = 0.01
"""Of a machine's hours."""


def lognormal(spread: float = CV) -> Sample:
    return lambda rng, n: np.exp(rng.normal(0, spread, n))


def exponential(spread: float = CV) -> Sample:
    """A fastest time and an exponential tail above it: standard deviation `spread`, skewness 2."""
    nodes, weights = np.polynomial.laguerre.laggauss(100)
    mean = float(weights @ np.log1p(spread * (nodes - 1)))
    return lambda rng, n: (1 + spread * (rng.exponential(1, n) - 1)) * np.exp(-mean)


def student(df: int, spread: float = CV) -> Sample:
    """Logarithms with heavier tails than the normal ones, and their standard deviation."""
    scale = spread / np.sqrt(df / (df - 2))
    return lambda rng, n: np.exp(scale * rng.standard_t(df, n))


def contaminated(share: float, slow: float, spread: float = CV) -> Sample:
    """A share of the runs takes longer by `slow`."""
    mean = share * np.log1p(slow)
    return lambda rng, n: np.exp(rng.normal(0, spread, n) + np.log1p(slow) * (rng.random(n) < share) - mean)


def autocorrelated(rho: float, spread: float = CV) -> Sample:
    """Each run takes after the one before it."""

    def sample(rng: Generator, n: int) -> Floats:
        logs = rng.normal(0, spread, n)
        for place in range(1, n):
            logs[place] = rho * logs[place - 1] + np.sqrt(1 - rho**2) * logs[place]
        return np.exp(logs)

    return sample


def rounded(step: float, spread: float = CV) -> Sample:
    """Of a clock whose ticks are a share of the time: up to `step` of it, half of it at least."""

    def sample(rng: Generator, n: int) -> Floats:
        ticks = rng.uniform(1, 2) / step
        return np.round(np.exp(rng.normal(0, spread, n)) * ticks) / ticks

    return sample


def runs(values: Floats, block_lengths: Sequence[int] = ()) -> Runs:
    """Values in their order, in blocks of these lengths; without lengths blocks play no part."""
    blocks = tuple(block for block, length in enumerate(block_lengths, 1) for _ in range(length))
    return Runs(tuple(values.tolist()), blocks)


def in_blocks(
    rng: Generator,
    lengths: Sequence[int],
    *,
    block_cv: float = BLOCK_CV,
    cv: float = CV / 2,
    effects: Floats | None = None,
) -> Runs:
    """One side's runs in blocks of time; `effects` are the blocks' own logarithms, else drawn."""
    own = rng.normal(0, block_cv, len(lengths)) if effects is None else effects
    logs = np.repeat(own, lengths) + rng.normal(0, cv, sum(lengths))
    return runs(np.exp(logs), lengths)


def scaled(side: Runs, factor: float) -> Runs:
    """The same runs on something else: every value times the factor."""
    return Runs(tuple(value * float(factor) for value in side.values), side.blocks)
