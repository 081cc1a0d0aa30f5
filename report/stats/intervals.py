"""The interval of one side's mean, and what makes intervals doubtful."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Any

from scipy import special

LEVEL = 0.95
"""The confidence level of every interval that is not said to have another."""

BLOCKS_NEEDED = 3
"""Two block means leave one degree of freedom: no usable interval."""

BETWEEN_SESSIONS = 0.01
"""Relative standard deviation between a machine's blocks of time, or sessions, where too few show it."""

RARELY_MISSED = 0.05
"""From 29 runs on a slow run that is one in ten is missed less often than this."""

OUTLIER_DISTANCE = 0.05
OUTLIER_RANGES = 4.0
SPREAD_RATIO = 4.0
SPREAD_PROBABILITY = 0.01


@dataclass(frozen=True, slots=True)
class Doubt:
    """What makes a figure or its interval doubtful, by name with its values; a template words it."""

    name: str
    data: Mapping[str, Any] = field(default_factory=dict, hash=False)


def outlying_run(values: Sequence[float]) -> Doubt | None:
    """Return the doubt `odd-run` where one run is an outlier: the interval then covers less than its level.

    An outlier is further from the median of the other runs than 5 % of it and than four times their range.
    """
    if len(values) < 3:
        return None
    ordered = sorted(values)
    for outermost, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        middle, spread = median(others), others[-1] - others[0]
        if abs(outermost - middle) > max(OUTLIER_DISTANCE * abs(middle), OUTLIER_RANGES * spread):
            return Doubt("odd-run", {"change": outermost / middle - 1, "others": len(others)})
    return None


def unequal_spread(a: Sequence[float], b: Sequence[float]) -> Doubt | None:
    """The doubt `unequal-spread` where one side's is over four times the other's, by an F test at 1 %.

    The skew of the wider side then no longer cancels, and the interval covers less than its level.
    """
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    sides = ([math.log(value) for value in runs] for runs in (a, b))
    (narrow, few), (wide, many) = sorted(
        (_sum_of_squares(logs) / (len(logs) - 1), len(logs)) for logs in sides
    )
    if narrow == 0:
        return None
    square = wide / narrow
    if square <= SPREAD_RATIO**2 or special.fdtrc(many - 1, few - 1, square) >= SPREAD_PROBABILITY:
        return None
    return Doubt("unequal-spread", {"times": math.sqrt(square)})


def rare_runs_missed(n: int) -> Doubt | None:
    """The doubt `rare-runs` where so few runs may hold no slow one that is one in ten: the chance is 0.9ⁿ."""
    return Doubt("rare-runs", {"runs": n}) if n and 0.9**n >= RARELY_MISSED else None


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval, whose level holds for all `comparisons` together."""

    low: float
    estimate: float
    high: float
    df: float
    comparisons: int = 1
    notes: tuple[Doubt, ...] = ()
    hour_assumed: float = 0.0
    """The relative deviation between a machine's hours that is assumed in it; 0 where blocks show it."""

    def includes(self, value: float) -> bool:
        """Return whether the interval contains `value`."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Runs:
    """One value per run, and the block of time that each run belongs to.

    No blocks at all are for what an hour does to no machine, such as an accuracy: each run is a replicate.
    """

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()

    @property
    def mean(self) -> float | None:
        """The mean of the blocks' means; null without a run."""
        return fmean(map(fmean, values_in_blocks(self, False).values())) if self.values else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean of block means, or of their differences, with its squared standard error."""

    mean: float
    error2: float
    df: float


def blocks_interval(
    side: Runs, *, level: float = LEVEL, assumed: float = 0.0, logs: bool = True
) -> Interval | None:
    """Return the interval of the mean of runs in blocks of time; with `logs` the mean is geometric.

    With three blocks the block means are the replicates. With fewer the runs are, and the relative standard
    deviation that is `assumed` between blocks joins their error: of what is said beyond these hours.

    Null where the runs are too few to show a spread, and where a logarithm is asked of what is not positive.
    """
    if logs and any(value <= 0 for value in side.values):
        return None
    blocks = values_in_blocks(side, logs)
    if not side.blocks or len(blocks) >= BLOCKS_NEEDED:
        assumed = 0.0
    found = side_estimate(blocks, assumed)
    if found is None:
        return None
    reach = critical_t(level, found.df) * math.sqrt(found.error2)
    ends = (found.mean - reach, found.mean, found.mean + reach)
    low, middle, high = map(math.exp, ends) if logs else ends
    return Interval(low, middle, high, float(found.df), hour_assumed=assumed)


def values_in_blocks(side: Runs, logs: bool) -> dict[int, list[float]]:
    """Return the values of each block of time, or their logarithms; all are of one where it has none."""
    values = map(math.log, side.values) if logs else side.values
    grouped: dict[int, list[float]] = {}
    for value, block in zip(values, side.blocks or (0,) * len(side.values), strict=True):
        grouped.setdefault(block, []).append(value)
    return grouped


def side_estimate(blocks: Mapping[int, Sequence[float]], assumed: float = 0.0) -> Estimate | None:
    """Return the mean of one side; `assumed` is the standard deviation of a block where too few show it.

    Null where nothing shows a spread.
    """
    means = [fmean(values) for values in blocks.values()]
    error2, df = error_within_blocks(blocks)
    return estimate_of_means(means, error2, df, assumed)


def error_within_blocks(blocks: Mapping[int, Sequence[float]]) -> tuple[float, float]:
    """The squared error of the mean of block means from the spread within blocks, and its freedom."""
    df = sum(len(values) - 1 for values in blocks.values())
    if df == 0:
        return 0.0, 0
    squares = sum(_sum_of_squares(values) for values in blocks.values())
    return squares / df * sum(1 / len(values) for values in blocks.values()) / len(blocks) ** 2, df


def _sum_of_squares(values: Sequence[float]) -> float:
    # Equal values must not leave a spread of rounding errors.
    if min(values) == max(values):
        return 0.0
    middle = fmean(values)
    # A power raises where a product of floats gives infinity, as of an absurd figure in a record.
    return math.fsum((value - middle) * (value - middle) for value in values)


def estimate_of_means(
    means: Sequence[float], within: float, within_df: float, assumed: float = 0.0
) -> Estimate | None:
    """Return the estimate by the spread of three or more means, else by that in blocks and an assumed one.

    Two means that differ by more than both explain count as they are.
    """
    blocks = len(means)
    if blocks == 0 or (blocks == 1 and within_df == 0):
        return None
    between = _sum_of_squares(means) / (blocks - 1) / blocks if blocks > 1 else 0.0
    expected = within + assumed**2 / blocks
    if blocks >= BLOCKS_NEEDED:
        return Estimate(fmean(means), between, blocks - 1)
    if within_df == 0:
        return Estimate(fmean(means), max(between, expected), blocks - 1)
    df = within_df * (expected / within) ** 2 if within else math.inf if assumed else within_df
    return Estimate(fmean(means), max(between, expected), df)


def critical_t(level: float, df: float) -> float:
    """The quantile of Student's t that a two-sided interval of that level reaches to."""
    return float(special.stdtrit(df, (1 + level) / 2))
