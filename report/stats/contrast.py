"""How many times as fast one side is as another: the range, and what is assumed in it.

A contrast needs no settled window, since what an unsettled start does to both sides alike cancels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from report.stats.intervals import (
    BETWEEN_SESSIONS,
    BLOCKS_NEEDED,
    LEVEL,
    Doubt,
    Estimate,
    Interval,
    Runs,
    critical_t,
    error_within_blocks,
    estimate_of_means,
    outlying_run,
    side_estimate,
    unequal_spread,
    values_in_blocks,
)

Order = Literal["faster", "slower", "equal", "not-shown", "counts-only"]
"""What may be said of the first side: `counts-only` where it has no range, or fewer than three processes."""

LEAST_PROCESSES = 3
"""So many of each side are needed before an order is said."""
EQUAL = 1.05
"""Two sides are equal where their whole range lies between this and its inverse."""

HOUR_SIDE_BY_SIDE = 0.005
"""By which an hour treats two sides differently that ran in it side by side."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What the runs cannot show: a relative standard deviation of one side, or of both together.

    `df` is finite where it was estimated, from another work's blocks or from units on record.
    """

    name: Literal["hour", "session", "machine", "window", "unit", "software"]
    """software: what another release of it is worth (`report.expected.software_effect`)."""
    size: float
    df: float = math.inf


def assumed_hours(of: Runs, over: Runs, *, paired: bool) -> tuple[Assumption, ...]:
    """Return what is assumed of hours beside a publication or an order: of `paired` sides once, else of each.

    Nothing is of a side with enough blocks, or without any, which is what no hour changes.
    """
    few = [side for side in (of, over) if side.blocks and len(set(side.blocks)) < BLOCKS_NEEDED]
    if paired:
        return (Assumption("hour", HOUR_SIDE_BY_SIDE),) if few else ()
    return tuple(Assumption("session", BETWEEN_SESSIONS) for _ in few)


def contrast_interval(
    of: Runs,
    over: Runs,
    *,
    paired: bool,
    assumed: Sequence[Assumption] = (),
    level: float = LEVEL,
    comparisons: int = 1,
    logs: bool = True,
) -> Interval | None:
    """Return the ratio of two geometric means with its range; null unless both have a spread.

    On logarithms reach² = (t · se)² + Σ (z · a)², where se and t's degrees of freedom are the runs' own: of
    the block means with three blocks or more, else of the processes within their blocks; of the differences
    in shared blocks where the sides are `paired`, else by Welch. Each `assumed` size a adds by the normal
    quantile z, or by its own t, so that what is assumed never makes a range narrower. The level holds for
    all `comparisons` together (Bonferroni). Without `logs` it is the difference of two means that may be 0.
    """
    if logs and any(value <= 0 for side in (of, over) for value in side.values):
        return None
    found = _own_estimate([values_in_blocks(side, logs) for side in (of, over)], paired=paired)
    if found is None:
        return None
    comparisons = max(comparisons, 1)
    joint = _joint_level(level, comparisons)
    reach = math.hypot(critical_t(joint, found.df) * math.sqrt(found.error2), assumed_reach(assumed, joint))
    ends = (found.mean - reach, found.mean, found.mean + reach)
    low, middle, high = map(math.exp, ends) if logs else ends
    doubts = _spread_doubts(of.values, over.values, found.error2) if logs else ()
    hour = max((each.size for each in assumed if each.name in ("session", "machine")), default=0.0)
    return Interval(low, middle, high, float(found.df), comparisons, doubts, hour)


def _spread_doubts(of: Sequence[float], over: Sequence[float], error2: float) -> tuple[Doubt, ...]:
    """Return what makes the spread of two sides doubtful."""
    steady = error2 == 0 or (min(of) == max(of) and min(over) == max(over))
    found = (Doubt("no-spread") if steady else None, *map(outlying_run, (of, over)), unequal_spread(of, over))
    return tuple(doubt for doubt in found if doubt)


def order_shown(ends: Interval | None, processes: int) -> Order:
    """Return what a range shows of sides with so many processes at least."""
    if ends is None:
        return "counts-only"
    if ends.includes(1.0):
        return "equal" if ends.low >= 1 / EQUAL and ends.high <= EQUAL else "not-shown"
    if processes < LEAST_PROCESSES:
        return "counts-only"
    return "faster" if ends.low > 1 else "slower"


def turning_size(found: Interval, assumed: Sequence[Assumption] = ()) -> float | None:
    """Return how large all that is `assumed` in a range would have to be together for it to reach 1.

    Null where it reaches 1 by the runs alone.
    """
    level = _joint_level(LEVEL, found.comparisons)
    own2 = math.log(found.high / found.estimate) ** 2 - assumed_reach(assumed, level) ** 2
    left2 = math.log(found.estimate) ** 2 - max(own2, 0.0)
    return math.sqrt(left2) / critical_t(level, math.inf) if left2 > 0 else None


def _joint_level(level: float, comparisons: int) -> float:
    return 1 - (1 - level) / comparisons


def assumed_reach(assumed: Sequence[Assumption], level: float = LEVEL) -> float:
    """Return how far a range reaches by what is assumed alone, as a logarithm."""
    return math.hypot(*(critical_t(level, each.df) * each.size for each in assumed))


def _own_estimate(sides: Sequence[Mapping[int, Sequence[float]]], *, paired: bool) -> Estimate | None:
    if paired:
        return _paired_estimate(*sides)
    of, over = map(side_estimate, sides)
    if of is None or over is None:
        return None
    df = _welch_df([(side.error2, side.df) for side in (of, over)])
    return Estimate(of.mean - over.mean, of.error2 + over.error2, df)


def _paired_estimate(
    of: Mapping[int, Sequence[float]], over: Mapping[int, Sequence[float]]
) -> Estimate | None:
    """Return the mean difference of two sides in the blocks that they share; null where none has a spread."""
    shared = sorted(of.keys() & over.keys())
    within = [error_within_blocks({block: side[block] for block in shared}) for side in (of, over)]
    df = _welch_df(within) if all(df for _, df in within) else 0
    differences = [fmean(of[block]) - fmean(over[block]) for block in shared]
    return estimate_of_means(differences, sum(error2 for error2, _ in within), df)


def _welch_df(errors: Sequence[tuple[float, float]]) -> float:
    """(Σ u)² ÷ Σ u²/df, u the squared standard errors, each with its degrees of freedom."""
    below = sum(error2**2 / df for error2, df in errors)
    return sum(error2 for error2, _ in errors) ** 2 / below if below > 0 else sum(df for _, df in errors)
