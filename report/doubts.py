"""What makes an interval doubtful: few runs or blocks, a run apart, a side far louder than the other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

FLOOR_RUNS = 5
HEADLINE_RUNS = 10
BLOCKS_NEEDED = 3
"""Two block means leave one degree of freedom: no usable interval."""

OUTLIER_DISTANCE = 0.05
OUTLIER_RANGES = 4.0
SPREAD_RATIO = 4.0
SPREAD_PROBABILITY = 0.01


def quality_label(n: int, blocks: int = 1) -> str:
    """What a figure of `n` runs a side in `blocks` blocks may be called."""
    if n < FLOOR_RUNS:
        return f"quick look (n={n})"
    return "headline" if n >= HEADLINE_RUNS and blocks >= BLOCKS_NEEDED else "floor"


def outlying_run(values: Sequence[float]) -> str | None:
    """Says where one run stands apart: the interval then covers less than its level.

    Apart means further from the median of the other runs than 5 % of it and than four times their range.
    """
    if len(values) < 3:
        return None
    ordered = np.sort(np.asarray(values, dtype=np.float64))
    for one, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        middle, spread = float(np.median(others)), float(np.ptp(others))
        if abs(one - middle) > max(OUTLIER_DISTANCE * abs(middle), OUTLIER_RANGES * spread):
            return f"one run lies {one / middle - 1:+.0%} from the other {len(others)}"
    return None


def unequal_spread(a: Sequence[float], b: Sequence[float]) -> str | None:
    """Says where one side's relative spread is more than four times the other's, by an F test at 1 %.

    The skew of the louder side then no longer cancels, and the interval covers less than its level.
    """
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    sides = [(float(np.log(side).var(ddof=1)), len(side)) for side in (np.asarray(a), np.asarray(b))]
    (quiet, few), (loud, many) = sorted(sides)
    if quiet == 0:
        return None
    square = loud / quiet
    if square <= SPREAD_RATIO**2 or stats.f.sf(square, many - 1, few - 1) >= SPREAD_PROBABILITY:
        return None
    return f"the runs of one side scatter {math.sqrt(square):.0f} times as much as the other's"
