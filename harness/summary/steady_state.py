"""The steady part of a trial's step times, by change points and slope instead of a fixed warm-up count.

After Barrett et al., "Virtual machine warmup blows hot and cold" (OOPSLA 2017): outliers are set aside, PELT
(Killick et al., 2012) finds changes of mean and variance, and the last segment is joined with the earlier
ones that are equivalent to it. PELT misses slow ramps, so a line through the last segment is tested as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy
from numpy.typing import NDArray
from scipy import ndimage, special, stats

from harness.record import Series, Steady

Floats = NDArray[numpy.float64]
Flags = NDArray[numpy.bool_]
Kind = Literal["flat", "warm-up", "slowdown", "none", "unproven"]

GRID = 500
"""Change points are sought at this many places at most, so that a long series stays cheap."""


@dataclass(frozen=True, slots=True)
class SteadyStateRule:
    """Thresholds; all levels and spreads are relative to the median step time."""

    outlier_window: int = 200
    outlier_reach: float = 3.0
    """Outliers lie further from the rolling median than this times the rolling p90 − p10."""
    penalty: float = 15.0
    """Of one change point, times ln(n)."""
    least_values: int = 10
    """Of a segment."""
    noise_floor: float = 0.001
    """No segment counts as quieter than this, so that a silent device is not cut to pieces."""
    tolerance: float = 0.01
    """Levels closer than this, or than the last segment's variance where that is more, are equivalent."""
    tolerance_at_most: float = 0.05
    """No scatter, however wide, makes levels equivalent that are further apart."""
    counted_steps: int = 20
    """A faster start shorter than this is the host running ahead of its device, not a slowdown."""
    slope_limit: float = 0.005
    """Change over the whole last segment that is still steady."""
    slope_blocks: int = 24
    slope_confidence: float = 0.999
    """One-sided, that a slope above its limit must reach against the scatter of the block means."""
    least_steps: int = 200
    least_seconds: float = 60.0
    """A last segment shorter than either proves nothing."""


DEFAULT_RULE = SteadyStateRule()


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    stop: int
    mean: float
    variance: float

    def tolerance(self, least: float, most: float) -> float:
        """The relative difference that this segment's own scatter hides, within its bounds."""
        return max(least, min(self.variance / self.mean**2, most))


@dataclass(frozen=True, slots=True)
class _Slope:
    """Relative change from the first value to the last, its standard error and degrees of freedom."""

    change: float
    error: float
    df: int


def steady_state(step_us: Series, rule: SteadyStateRule = DEFAULT_RULE) -> Steady:
    """Classifies a trial's step times and says from which step on they are steady.

    flat: nothing was cut. warm-up: a slower start was cut. slowdown: it was faster before, or a rising line
    fits the last segment; a result, not a fault of the measurement. none: still changing at the end of a long
    window, or still becoming faster. unproven: the window is too short to tell.
    Step numbers count single steps also where the series holds sums over several.
    """
    raw = numpy.asarray(step_us.values(), dtype=numpy.float64)
    if raw.size == 0 or not raw.any():
        return Steady(kind="unproven", first_step=0)
    relative = raw / (numpy.median(raw) or raw.mean())
    inliers = ~_outliers(relative, rule)
    places = numpy.flatnonzero(inliers)
    segments = _segments(relative[places], rule)
    chosen = _start_of_steady(segments, rule)
    first = int(places[segments[chosen].start]) if chosen else _leading_outliers(relative, inliers, rule)
    slope = _slope(relative[first:][inliers[first:]], rule)
    kind = _classify(raw, segments, chosen, first, slope, step_us.steps_per_value, rule)
    steps_per_value = step_us.steps_per_value
    changes = tuple(int(places[segment.start]) * steps_per_value for segment in segments[1:])
    return Steady(
        kind=kind, first_step=first * steps_per_value, changes=changes, slope=slope and slope.change
    )


def _outliers(values: Floats, rule: SteadyStateRule) -> Flags:
    """Values outside the rolling median ± reach · (p90 − p10); edges see their mirror image."""
    size = min(rule.outlier_window, values.size)
    low, middle, high = (
        ndimage.percentile_filter(values, share, size=size, mode="reflect") for share in (10, 50, 90)
    )
    reach = rule.outlier_reach * numpy.maximum(high - low, rule.noise_floor)
    return numpy.asarray(numpy.abs(values - middle) > reach)


def _leading_outliers(values: Floats, inliers: Flags, rule: SteadyStateRule) -> int:
    """How many slow outliers open the series, where they move the mean: allocation, tuning, compilation."""
    slow = ~inliers & (values > 1.0)
    count = int(numpy.argmin(slow))
    excess = float((values[:count] - 1.0).sum()) / values.size
    return count if excess > rule.noise_floor else 0


def _segments(values: Floats, rule: SteadyStateRule) -> list[_Segment]:
    edges = [0, *_change_points(values, rule), values.size]
    return [
        _Segment(start, stop, float(values[start:stop].mean()), float(values[start:stop].var()))
        for start, stop in pairwise(edges)
    ]


def _change_points(values: Floats, rule: SteadyStateRule) -> list[int]:
    """PELT: the cuts that minimise Σ n·ln(variance) + penalty·ln(n) a cut, segments being normal."""
    spacing = max(1, -(-values.size // GRID))
    grid = numpy.unique(numpy.append(numpy.arange(0, values.size, spacing), values.size))
    centred = values - values.mean()
    sums, squares = (numpy.append(0.0, numpy.cumsum(centred**power))[grid] for power in (1, 2))
    penalty = rule.penalty * numpy.log(max(values.size, 2))
    best = numpy.full(grid.size, numpy.inf)
    best[0] = -penalty
    before = numpy.zeros(grid.size, dtype=numpy.int64)
    candidates = numpy.array([0])
    for stop in range(1, grid.size):
        lengths = grid[stop] - grid[candidates]
        ready = lengths >= rule.least_values
        starts, length = candidates[ready], lengths[ready]
        if starts.size:
            mean = (sums[stop] - sums[starts]) / length
            variance = (squares[stop] - squares[starts]) / length - mean**2
            total = best[starts] + length * numpy.log(numpy.maximum(variance, rule.noise_floor**2))
            lowest = int(numpy.argmin(total))
            best[stop], before[stop] = total[lowest] + penalty, starts[lowest]
            # A start that is already worse than cutting here can never win later.
            candidates = numpy.concatenate([starts[total <= best[stop]], candidates[~ready]])
        candidates = numpy.append(candidates, stop)
    cuts: list[int] = []
    place = int(before[grid.size - 1])
    while place > 0:
        cuts.append(int(grid[place]))
        place = int(before[place])
    return cuts[::-1]


def _start_of_steady(segments: list[_Segment], rule: SteadyStateRule) -> int:
    """The earliest segment equivalent to the last from which on the mean of all steps is so, too.

    A passing disturbance between equal levels is thereby kept, unless it moves the mean.
    """
    last = segments[-1]
    reach = last.tolerance(rule.tolerance, rule.tolerance_at_most) * last.mean
    total, count, chosen = 0.0, 0, len(segments) - 1
    for number in range(len(segments) - 1, -1, -1):
        segment = segments[number]
        length = segment.stop - segment.start
        total, count = total + segment.mean * length, count + length
        if abs(segment.mean - last.mean) <= reach and abs(total / count - last.mean) <= reach:
            chosen = number
    return chosen


def _slope(values: Floats, rule: SteadyStateRule) -> _Slope | None:
    """A line through block means; null where there are too few for one.

    Block means carry the correlation of neighbouring steps into the error, single steps would hide it.
    """
    blocks = min(rule.slope_blocks, values.size // rule.least_values)
    if blocks < 6:
        return None
    means = numpy.array([part.mean() for part in numpy.array_split(values, blocks)])
    fit = stats.linregress((numpy.arange(blocks) + 0.5) / blocks, means / values.mean())
    return _Slope(float(fit.slope), float(fit.stderr), blocks - 2)


def _drift(slope: _Slope | None, last: _Segment, rule: SteadyStateRule) -> int:
    """+1 where the steady part becomes slower, −1 faster, 0 where neither is shown."""
    if slope is None:
        return 0
    shown = float(special.stdtrit(slope.df, rule.slope_confidence)) * slope.error
    if abs(slope.change) <= max(last.tolerance(rule.slope_limit, rule.tolerance_at_most), shown):
        return 0
    return 1 if slope.change > 0 else -1


def _classify(
    raw: Floats,
    segments: list[_Segment],
    chosen: int,
    first: int,
    slope: _Slope | None,
    steps_per_value: int,
    rule: SteadyStateRule,
) -> Kind:
    last = segments[-1]
    reach = last.tolerance(rule.tolerance, rule.tolerance_at_most) * last.mean
    earlier = [
        part for part in segments[:chosen] if (part.stop - part.start) * steps_per_value >= rule.counted_steps
    ]
    faster = [part for part in earlier if part.mean < last.mean - reach]
    if not _long_enough(raw[first:], steps_per_value, rule, times=1):
        if not _long_enough(raw, steps_per_value, rule, times=2) or 2 * (raw.size - first) > raw.size:
            return "unproven"
        return "slowdown" if faster and len(faster) == len(earlier) else "none"
    drift = _drift(slope, last, rule)
    if faster or drift > 0:
        return "slowdown"
    if drift < 0:
        return "none"
    return "warm-up" if first else "flat"


def _long_enough(raw: Floats, steps_per_value: int, rule: SteadyStateRule, *, times: int) -> bool:
    steps, seconds = raw.size * steps_per_value, float(raw.sum()) / 1e6
    return steps >= times * rule.least_steps and seconds >= times * rule.least_seconds
