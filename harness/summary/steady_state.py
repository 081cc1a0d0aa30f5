"""The steady part of a trial's step times, by change points and slope instead of a fixed warm-up count.

After Barrett et al., "Virtual machine warmup blows hot and cold" (OOPSLA 2017): outliers are set aside, then
the changes of mean and variance are found that PELT (Killick et al., 2012) would find. What is cut lies
before a change that lasted: levels that come back belong to the steady part, and their mean is its figure.
Such a search misses slow ramps, so the drift of the steady part is judged by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Literal

import numpy
from numpy.polynomial import legendre
from numpy.typing import NDArray
from scipy import ndimage

from harness.record import Series, Steady

Floats = NDArray[numpy.float64]
Flags = NDArray[numpy.bool_]
SteadyKind = Literal["flat", "recurrent", "warm-up", "slowdown", "none", "unproven"]

GRID = 500
"""Change points are sought at this many places at most, so that a long series stays cheap."""

BAND = 40
"""Places whose costs are reckoned together: few calls, and few of pairs that cannot be a segment."""

CELL = 12
"""Neighbouring places that are weighed together where no change is likely."""

BLOCKS, LEAST_BLOCKS, BLOCK_VALUES = 40, 12, 4
"""The most and the fewest blocks that a slow movement is read from, and the fewest values of a block."""
CORRELATION_AT_MOST = 0.9

# All levels and spreads are relative to the median step time.
OUTLIER_WINDOW = 200
OUTLIER_REACH = 3.0
"""Outliers are further from the rolling median than this times the rolling p90 − p10."""
PENALTY = 15.0
"""What one change point costs, times ln(n)."""
LEAST_VALUES = 10
"""A segment is no shorter."""
NOISE_FLOOR = 0.001
"""No segment counts as quieter than this, so that a silent device is not cut to pieces."""
TOLERANCE = 0.01
"""Levels closer than this, or than the last segment's variance where that is more, are equivalent."""
TOLERANCE_AT_MOST = 0.05
"""No scatter, however wide, makes levels equivalent that are further apart."""
COUNTED_STEPS = 20
"""A faster start shorter than this is the host running ahead of its device, not a slowdown."""
LASTING = 6.5
"""Standard errors by which the two sides of a lasting change differ at least."""
SLOPE_LIMIT = 0.005
"""A smaller change over the whole steady part is no slowdown."""
SLOPE_ERRORS = 4.0
"""Standard errors that a slope must reach to be one."""
FLAT_LIMIT = 0.01
"""What a flat series does not drift by, its slope's error added FLAT_ERRORS times."""
FLAT_ERRORS = 2.0
TREND_LIMIT = 7.0
"""F of line and parabola; above it, levels are not said to come back."""
MEAN_ERROR = 0.015
"""The largest standard error of a mean that is still proven."""
LEAST_STEPS = 200
LEAST_SECONDS = 60.0
"""A last segment shorter than either proves nothing."""
LEAST_SHARE = 0.5
"""A last level that fills less of a window's time does not take its place."""


@dataclass(frozen=True, slots=True)
class SlowMovement:
    """How far step times drift, and how well their mean is known; all relative to the mean."""

    change: float
    """What a line through them changes, from the first value to the last."""
    change_error: float
    """Its standard error."""
    mean_error: float
    """The standard error of the mean of all values."""
    trend: float
    """F of line and parabola against the rest: about 1 where nothing drifts."""


@dataclass(frozen=True, slots=True)
class _Segment:
    start: int
    stop: int
    mean: float
    variance: float


@dataclass(frozen=True, slots=True)
class _StepTimes:
    """A trial's step times relative to their median, and the segments of the times without outliers."""

    relative: Floats
    median_seconds: float
    steps_per_value: int
    values: Floats
    """Without outliers."""
    segments: list[_Segment]

    @property
    def reach(self) -> float:
        """Return how close levels are one level: what the last segment's scatter hides, within bounds."""
        last = self.segments[-1]
        # Of lines that were read all at once the steps between them took no time.
        hidden = min(last.variance / last.mean**2, TOLERANCE_AT_MOST) if last.mean else 0.0
        return max(TOLERANCE, hidden) * last.mean

    def held(self, part: Floats) -> bool:
        """Return whether these relative values last as long as a level must hold."""
        steps, seconds = part.size * self.steps_per_value, float(part.sum()) * self.median_seconds
        return steps >= LEAST_STEPS and seconds >= LEAST_SECONDS


@lru_cache(maxsize=256)
def steady_state(step_us: Series) -> Steady:
    """Return the class of a trial's step times, and from which step on they are steady.

    flat: nothing was cut. recurrent: levels change and come back; all of them are kept. warm-up: a slower
    start was cut. slowdown: it was faster before, or becomes slower; that is a result, and no fault.
    none: still becoming faster. unproven: the window, or a new level at its end, is too short to know. Step
    numbers count single steps also where the series holds sums over several.
    """
    if not any(step_us.values()):
        return Steady(kind="unproven", first_step=0)
    steps_per_value = step_us.steps_per_value
    relative, middle, beyond = _split_outliers(step_us)
    inliers = beyond == 0
    places = numpy.flatnonzero(inliers)
    segments = _segments(relative[places])
    window = _StepTimes(relative, middle / 1e6, steps_per_value, relative[places], segments)
    chosen = _start_of_steady(window)
    first = int(places[segments[chosen].start]) if chosen else _leading_outliers(relative, inliers)
    held = not any(_is_lasting_change(window, chosen, change) for change in range(chosen + 1, len(segments)))
    movement = slow_movement(relative[first:][inliers[first:]]) if held else None
    return Steady(
        kind=_classify(window, chosen, first, movement),
        first_step=first * steps_per_value,
        changes=tuple(int(places[segment.start]) * steps_per_value for segment in segments[1:]),
        slope=movement and movement.change,
        slope_error=movement and movement.change_error,
        mean_error=movement and movement.mean_error,
    )


def stalled_seconds(step_us: Series) -> Floats:
    """Return how many seconds longer each value took than those around it; 0 where it is no slow outlier."""
    _, median_us, beyond = _split_outliers(step_us)
    return numpy.maximum(beyond, 0.0) * median_us / 1e6


@lru_cache(maxsize=16)
def _split_outliers(step_us: Series) -> tuple[Floats, float, Floats]:
    """Return step times over their median, the median, and how far each outlier is from those around it.

    The mean takes the median's place where half of them are 0.
    """
    raw = microseconds(step_us)
    middle = percentiles(raw, 50)[0] or float(raw.mean())
    relative = raw / middle
    return relative, middle, _outliers(relative)


@lru_cache(maxsize=16)
def microseconds(series: Series) -> Floats:
    """Return the values of a series to reckon with, which nobody changes; below 2⁵³ their sums are exact."""
    return numpy.asarray(series.values(), dtype=numpy.float64)


def percentiles(values: Floats, *shares: int) -> list[float]:
    """Return percentiles of values by their numbers, as numpy.percentile does at ten times the cost."""
    ordered, values_below = numpy.sort(values), []
    for share in shares:
        part, below = math.modf(share / 100 * (values.size - 1))
        low, high = (float(ordered[min(place, values.size - 1)]) for place in (int(below), int(below) + 1))
        values_below.append(low + (high - low) * part if part < 0.5 else high - (high - low) * (1 - part))
    return values_below


def _outliers(values: Floats) -> Floats:
    """Return how far each value outside the rolling median ± reach · (p90 − p10) is from it; 0 of others."""
    size = min(OUTLIER_WINDOW, values.size)
    rolling = partial(ndimage.percentile_filter, values, size=size, mode="reflect")
    low, high = rolling(10), rolling(90)
    reach = OUTLIER_REACH * numpy.maximum(high - low, NOISE_FLOOR)
    # The median lies between them: what is near both is near it.
    if (numpy.maximum(values - low, high - values) <= reach).all():
        return numpy.zeros_like(values)
    beyond = values - rolling(50)
    return numpy.where(numpy.abs(beyond) > reach, beyond, 0.0)


def _leading_outliers(values: Floats, inliers: Flags) -> int:
    """Return how many slow outliers open the series if they move the mean: allocation, compilation."""
    slow = ~inliers & (values > 1.0)
    count = int(numpy.argmin(slow))
    excess = float((values[:count] - 1.0).sum()) / values.size
    return count if excess > NOISE_FLOOR else 0


def _segments(values: Floats) -> list[_Segment]:
    edges = [0, *_change_points(values), values.size]
    return [
        _Segment(start, stop, float(values[start:stop].mean()), float(values[start:stop].var()))
        for start, stop in pairwise(edges)
    ]


def _change_points(values: Floats) -> list[int]:
    """Return the cuts that minimise Σ n·ln(variance) + penalty·ln(n) a cut, segments being normal.

    What PELT finds without its pruning, which saves nothing on so few places.
    """
    if values.size < 2 * LEAST_VALUES:
        return []
    spacing = max(1, -(-values.size // GRID))
    grid = numpy.append(numpy.arange(0, values.size, spacing), values.size).astype(numpy.float64)
    centred = values - values.mean()
    moments = (numpy.append(0.0, numpy.cumsum(each)) for each in (centred, centred * centred))
    sums, squares = (every[grid.astype(numpy.int64)] for every in moments)
    penalty = float(PENALTY * numpy.log(values.size))
    if _one_level(grid, sums, squares, penalty):
        return []
    best = numpy.full(grid.size, numpy.inf)
    best[0] = -penalty
    before = numpy.zeros(grid.size, dtype=numpy.int64)
    # No segment begins and ends within a stride, so its places are found at one stroke.
    stride = -(-LEAST_VALUES // spacing)
    for band in range(1, grid.size, BAND):
        stops = numpy.arange(band, min(band + BAND, grid.size))
        costs = _costs(grid, sums, squares, stops)
        for first in range(0, stops.size, stride):
            rows = slice(stops[first], stops[first] + stride)
            totals = costs[first : first + stride, : rows.start] + best[: rows.start]
            before[rows] = chosen = totals.argmin(axis=1)
            best[rows] = totals[numpy.arange(chosen.size), chosen] + penalty
    cuts: list[int] = []
    place = int(before[-1])
    while place > 0:
        cuts.append(int(grid[place]))
        place = int(before[place])
    return cuts[::-1]


def _one_level(grid: Floats, sums: Floats, squares: Floats, penalty: float) -> bool:
    """Return whether surely no cut pays for itself, without weighing all segments; False may be either.

    How much likelier a part is by its own mean and variance than by those of all never falls when the part is
    cut. So k cuts gain at most what k + 1 runs of whole cells do, and two pieces of a cell for each cut.
    """
    spread = squares[-1] / grid[-1]
    if spread <= NOISE_FLOOR**2:
        return True
    starts, stops, runs = _level_parts(grid.size)
    length, square = grid[stops] - grid[starts], squares[stops] - squares[starts]
    variance = (square - (sums[stops] - sums[starts]) ** 2 / length) / length
    own = numpy.maximum(variance, NOISE_FLOOR**2)
    gains = length * (numpy.log(spread / own) - variance / own) + square / spread
    return bool(2 * (gains[:runs].max() + gains[runs:].max()) < penalty)


@lru_cache(maxsize=GRID)
def _level_parts(places: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], int]:
    """Return starts and stops of all runs of whole cells, then of a cell's pieces, and the number of runs."""
    cells = numpy.append(numpy.arange(0, places - 1, CELL), places - 1)
    starts, stops = cells[numpy.stack(numpy.triu_indices(cells.size, 1))]
    first, last = (cells[:-1, numpy.newaxis] + ends for ends in numpy.triu_indices(CELL + 1, 1))
    inside = last < places
    return numpy.append(starts, first[inside]), numpy.append(stops, last[inside]), starts.size


def _costs(grid: Floats, sums: Floats, squares: Floats, stops: NDArray[numpy.int64]) -> Floats:
    """Return n·ln(variance) of each segment that ends at one of the places, infinite where it is too short.

    A row for each of `stops`, a column for each place before the last of them where a segment may begin.
    """
    starts = slice(0, stops[-1])
    length = grid[stops, numpy.newaxis] - grid[starts]
    near = slice(max(0, stops[0] - LEAST_VALUES), None)
    short = length[:, near] < LEAST_VALUES
    length[:, near][short] = 1.0
    costs = sums[stops, numpy.newaxis] - sums[starts]
    costs *= costs / length
    costs = (squares[stops, numpy.newaxis] - squares[starts] - costs) / length
    numpy.log(numpy.maximum(costs, NOISE_FLOOR**2, out=costs), out=costs)
    costs *= length
    costs[:, near][short] = numpy.inf
    return costs


def slow_movement(values: Floats) -> SlowMovement | None:
    """Return the drift by a least-squares parabola with autocorrelated residuals; null for too few values.

    A parabola through block means holds the drift. What it leaves moves up and down; the correlation of
    neighbouring blocks says how many count as independent, and so how large every error is. It is corrected
    for its bias in short series (Kendall, 1954), never taken as negative, and at most CORRELATION_AT_MOST. It
    widens the variance by (1 + r) ÷ (1 − r).
    """
    blocks = min(BLOCKS, values.size // BLOCK_VALUES)
    if blocks < LEAST_BLOCKS:
        return None
    starts, sizes, basis = _parabolas(values.size, blocks)
    means = numpy.add.reduceat(values, starts) / sizes
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


@lru_cache(maxsize=GRID)
def _parabolas(values: int, blocks: int) -> tuple[NDArray[numpy.int64], NDArray[numpy.int64], Floats]:
    """Return the blocks' starts and sizes, and an orthonormal basis, (blocks, 3): level, line and bend."""
    edges = numpy.linspace(0, values, blocks + 1).astype(numpy.int64)
    return (
        edges[:-1],
        numpy.diff(edges),
        numpy.linalg.qr(legendre.legvander(numpy.linspace(-1, 1, blocks), 2))[0],
    )


def _start_of_steady(window: _StepTimes) -> int:
    """Return the earliest segment after which nothing changed for good.

    A change is for good only where what follows it fills `LEAST_SHARE` of the window's time: a shorter level
    at the end, however long it held, replaces no figure.
    """
    last = len(window.segments) - 1
    after = [float(window.values[segment.start :].sum()) for segment in window.segments]
    lasting = [change for change in range(1, last + 1) if after[change] >= LEAST_SHARE * after[0]]
    for start in range(last):
        if not any(_is_lasting_change(window, start, change) for change in lasting if change > start):
            return start
    return last


def _is_lasting_change(window: _StepTimes, start: int, change: int) -> bool:
    """Return whether the levels from segment `start` to before `change` do not return, and the means differ.

    The slow movement of the longer side says by how much means differ unchanged. A side that is too short for
    a level to hold may be a mixture of levels, so it is enough that the other side's are around it.
    """
    before, after = window.segments[start:change], window.segments[change:]
    if any(abs(a.mean - b.mean) <= window.reach for a in before for b in after):
        return False
    parts = (
        window.values[before[0].start : before[-1].stop],
        window.values[after[0].start : after[-1].stop],
    )
    for part, short, other in zip(parts, (before, after), (after, before), strict=True):
        levels = [segment.mean for segment in other]
        if not window.held(part) and all(min(levels) <= s.mean <= max(levels) for s in short):
            return False
    difference = abs(float(parts[0].mean() - parts[1].mean()))
    if difference <= window.reach:
        return False
    longer = max(parts, key=len)
    movement = slow_movement(longer)
    if movement is None:
        return True
    variance = (movement.mean_error * float(longer.mean())) ** 2 * longer.size
    error = float(variance * sum(1 / part.size for part in parts)) ** 0.5
    return bool(difference > LASTING * error)


def _classify(window: _StepTimes, chosen: int, first: int, movement: SlowMovement | None) -> SteadyKind:
    segments = window.segments
    kept = window.relative[first:]
    level = float(window.values[segments[chosen].start :].mean())
    earlier = [
        segment
        for segment in segments[:chosen]
        if (segment.stop - segment.start) * window.steps_per_value >= COUNTED_STEPS
    ]
    faster = [segment for segment in earlier if segment.mean < level - window.reach]
    if movement is None or not window.held(kept):
        return "unproven"
    changed = any(abs(segment.mean - segments[-1].mean) > window.reach for segment in segments[chosen:])
    drifts = abs(movement.change) > max(SLOPE_LIMIT, SLOPE_ERRORS * movement.change_error)
    if faster or (drifts and movement.change > 0):
        return "slowdown"
    if drifts:
        return "unproven" if changed else "none"
    if not changed and abs(movement.change) + FLAT_ERRORS * movement.change_error <= FLAT_LIMIT:
        return "warm-up" if first else "flat"
    if movement.trend <= TREND_LIMIT and movement.mean_error <= MEAN_ERROR:
        return "recurrent"
    return "unproven"
