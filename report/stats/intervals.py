"""Intervals of means and ratios, what makes them doubtful, and what they allow to be said of two sides."""

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

ASSUMED_BLOCK_SPREAD = 0.01
"""Relative standard deviation between a machine's blocks of time, where too few of them show it."""

ASSUMED_HOUR_EFFECT = 0.005
"""The same by which an hour treats two variants differently that ran side by side in it."""

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
    missed = 0.9**n
    if n == 0 or missed < RARELY_MISSED:
        return None
    return Doubt("rare-runs", {"runs": n, "missed": missed})


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    `n` counts the replicates of each side, runs or blocks; the level holds for all `comparisons` together.
    """

    low: float
    estimate: float
    high: float
    n: tuple[int, ...]
    df: float
    comparisons: int = 1
    notes: tuple[Doubt, ...] = ()
    blocks_assumed: int | None = None
    """Its blocks of time, where too few show their spread and `ASSUMED_BLOCK_SPREAD` is taken for it."""

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
    """A mean of block means, or of their differences, with its squared standard error.

    `n` counts the replicates of each side, `blocks` the blocks of time that they are from.
    """

    mean: float
    error2: float
    df: float
    n: tuple[int, ...]
    blocks: int


def blocks_interval(
    of: Runs,
    over: Runs | None = None,
    *,
    level: float = LEVEL,
    paired: bool = False,
    comparisons: int = 1,
    logs: bool = True,
) -> Interval | None:
    """Return the interval of the mean of runs in blocks of time, or of one side over another.

    With `logs` the mean is geometric, or the ratio of two; without, it is the plain mean, or the
    difference `of` − `over`. With three blocks the block means are the replicates. With fewer the runs are,
    and the spread of a side that has three joins their error, else `ASSUMED_BLOCK_SPREAD`. `paired` says that
    nothing beyond these blocks is spoken of: two sides ran side by side on one machine, so the replicates are
    their differences in the blocks that they share, and `ASSUMED_HOUR_EFFECT` joins where these are too few;
    one side is taken as it is, and no spread is assumed. Two estimates are joined with Welch's degrees of
    freedom. The level holds for all `comparisons` together (Bonferroni).

    Null where a side has too few runs to show a spread, and where a logarithm is asked of what is not
    positive.
    """
    sides = (of,) if over is None else (of, over)
    if logs and any(value <= 0 for side in sides for value in side.values):
        return None
    estimate, assumed = _estimate_sides(sides, paired=paired, logs=logs)
    if estimate is None:
        return None
    comparisons = max(comparisons, 1)
    reach = critical_t(1 - (1 - level) / comparisons, estimate.df) * math.sqrt(estimate.error2)
    ends = (estimate.mean - reach, estimate.mean, estimate.mean + reach)
    low, middle, high = map(math.exp, ends) if logs else ends
    notes = spread_doubts(sides, estimate.error2, logs=logs)
    few = estimate.blocks if assumed and estimate.blocks < BLOCKS_NEEDED else None
    return Interval(low, middle, high, estimate.n, float(estimate.df), comparisons, notes, few)


def spread_doubts(sides: Sequence[Runs], error2: float, *, logs: bool) -> tuple[Doubt, ...]:
    """Return what makes the spread of one side, or of two in logarithms, doubtful."""
    values = [side.values for side in sides]
    steady = error2 == 0 or all(min(own) == max(own) for own in values)
    of_two = (*map(outlying_run, values), unequal_spread(*values)) if len(values) > 1 and logs else ()
    found = (Doubt("no-spread") if steady else None, *of_two)
    return tuple(doubt for doubt in found if doubt)


def _estimate_sides(sides: Sequence[Runs], *, paired: bool, logs: bool) -> tuple[Estimate | None, bool]:
    """Return the mean, difference or logarithm of the ratio, and whether a spread of blocks was assumed."""
    in_blocks = [values_in_blocks(side, logs) for side in sides]
    if paired and len(sides) == 1:
        return side_estimate(in_blocks[0], 0.0), False
    scales = [1.0 if logs else abs(fmean(side.values)) if side.values else 0.0 for side in sides]
    in_time = all(side.blocks for side in sides)
    side_by_side = (
        paired_estimate(in_blocks, ASSUMED_HOUR_EFFECT * scales[-1] if in_time else 0.0) if paired else None
    )
    if side_by_side is not None:
        return side_by_side, False
    few = [place for place, blocks in enumerate(in_blocks) if len(blocks) < BLOCKS_NEEDED]
    if in_time and len(sides) == 2 and len(few) == 1:
        return _estimate_by_other_spread(in_blocks, few[0], scales), False
    estimates = [
        side_estimate(blocks, ASSUMED_BLOCK_SPREAD * scale if side.blocks else 0.0)
        for side, blocks, scale in zip(sides, in_blocks, scales, strict=True)
    ]
    return joined_estimate(estimates), any(side.blocks for side in sides)


def values_in_blocks(side: Runs, logs: bool) -> dict[int, list[float]]:
    """Return the values of each block of time, or their logarithms; all are of one where it has none."""
    values = map(math.log, side.values) if logs else side.values
    grouped: dict[int, list[float]] = {}
    for value, block in zip(values, side.blocks or (0,) * len(side.values), strict=True):
        grouped.setdefault(block, []).append(value)
    return grouped


def side_estimate(blocks: Mapping[int, Sequence[float]], assumed: float) -> Estimate | None:
    """Return the mean of one side; `assumed` is the standard deviation of a block where too few show it.

    Null where nothing shows a spread.
    """
    means = [fmean(values) for values in blocks.values()]
    error2, df = _within_blocks(blocks)
    return _estimate_of_means(means, error2, df, assumed, (sum(map(len, blocks.values())),))


def _estimate_by_other_spread(
    sides: Sequence[Mapping[int, Sequence[float]]], few: int, scales: Sequence[float]
) -> Estimate | None:
    """The difference of two sides, of which one has too few blocks: the other's show how far hours differ."""
    means = [[fmean(values) for values in side.values()] for side in sides]
    within, df = _within_blocks(sides[few])
    if not df:
        return None
    # Both sides use one spread, so that its own degrees of freedom are all there are.
    many, count = means[1 - few], len(means[few])
    spread2 = _sum_of_squares(many) / (len(many) - 1)
    between = spread2 / len(many) + spread2 * (scales[few] / scales[1 - few]) ** 2 / count
    counts = tuple(map(len, means))
    difference = fmean(means[0]) - fmean(means[1])
    return Estimate(difference, between + within, len(many) - 1, counts, len(many))


def paired_estimate(sides: Sequence[Mapping[int, Sequence[float]]], assumed: float) -> Estimate | None:
    """Return the mean difference of two sides in the blocks that they share; null where none has a spread."""
    of, over = sides
    shared = of.keys() & over.keys()
    within = [_within_blocks({block: side[block] for block in shared}) for side in sides]
    error2 = sum(error2 for error2, _ in within)
    df = _welch_df(within) if all(df for _, df in within) else 0
    counts = tuple(sum(len(side[block]) for block in shared) for side in sides)
    differences = [fmean(of[block]) - fmean(over[block]) for block in sorted(shared)]
    return _estimate_of_means(differences, error2, df, assumed, counts)


def _within_blocks(blocks: Mapping[int, Sequence[float]]) -> tuple[float, float]:
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


def _estimate_of_means(
    means: Sequence[float], within: float, within_df: float, assumed: float, counts: tuple[int, ...]
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
        return Estimate(fmean(means), between, blocks - 1, (blocks,), blocks)
    if within_df == 0:
        return Estimate(fmean(means), max(between, expected), blocks - 1, counts, blocks)
    df = within_df * (expected / within) ** 2 if within else math.inf if assumed else within_df
    return Estimate(fmean(means), max(between, expected), df, counts, blocks)


def joined_estimate(sides: Sequence[Estimate | None]) -> Estimate | None:
    """Return one side as it is, or the first less the second of two; null where one has no spread."""
    known = [side for side in sides if side is not None]
    if len(known) < len(sides):
        return None
    if len(known) == 1:
        return known[0]
    of, over = known
    df = _welch_df([(side.error2, side.df) for side in known])
    counts, blocks = (*of.n, *over.n), min(of.blocks, over.blocks)
    return Estimate(of.mean - over.mean, of.error2 + over.error2, df, counts, blocks)


def _welch_df(errors: Sequence[tuple[float, float]]) -> float:
    """(Σ u)² ÷ Σ u²/df, u the squared standard errors, each with its degrees of freedom."""
    below = sum(error2**2 / df for error2, df in errors)
    return sum(error2 for error2, _ in errors) ** 2 / below if below > 0 else sum(df for _, df in errors)


def critical_t(level: float, df: float) -> float:
    """The quantile of Student's t that a two-sided interval of that level reaches to."""
    return float(special.stdtrit(df, (1 + level) / 2))
