"""Runs that a simulation draws, whose logarithms have the mean 0, and lines of the page that hold them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from benchmarks.report_scale import make_record
from harness.record.store import Stored
from report.compare.cells import cells_of
from report.stats.intervals import Runs
from report.trials.trial import trial_of

CV = BLOCK_CV = 0.01
laggauss = cache(np.polynomial.laguerre.laggauss)


def lognormal(spread=CV):
    return lambda rng, n: np.exp(rng.normal(0, spread, n))


def exponential(rng, n):
    """A fastest time and an exponential tail above it."""
    nodes, weights = laggauss(100)
    return (1 + CV * (rng.exponential(1, n) - 1)) * np.exp(-float(weights @ np.log1p(CV * (nodes - 1))))


def student(rng, n):
    """Logarithms of Student's t with 3 degrees."""
    return np.exp(CV / np.sqrt(3) * rng.standard_t(3, n))


def contaminated(share, slow):
    """A share of the runs takes longer by `slow`."""
    mean = share * np.log1p(slow)
    return lambda rng, n: np.exp(rng.normal(0, CV, n) + np.log1p(slow) * (rng.random(n) < share) - mean)


def runs(values, lengths=()) -> Runs:
    return Runs(tuple(values.tolist()), tuple(np.repeat(range(1, 1 + len(lengths)), lengths).tolist()))


def in_blocks(rng, lengths, *, block_cv=BLOCK_CV, cv=CV / 2, effects=None, times=1.0) -> Runs:
    """Runs in blocks of time; `effects` are the blocks' own logarithms, else drawn."""
    own = rng.normal(0, block_cv, len(lengths)) if effects is None else effects
    return runs(np.exp(np.repeat(own, lengths) + rng.normal(0, cv, sum(lengths))) * times, lengths)


@cache
def template(place):
    (cell,) = cells_of([trial_of(Stored(f"{place}.json", make_record(place, 0, 0.02)))])
    return cell


@cache
def trial_like(place, block, verdict):
    trial = template(place).trials[0]
    record = trial.record.model_copy(update={"block": block})
    return replace(trial, record=record, verdict=verdict, findings=())
