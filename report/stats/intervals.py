"""Intervals of means and ratios; what makes them doubtful: few runs or blocks, outliers, unequal spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy
from numpy.typing import NDArray
from scipy import special

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
    """A sentence where one run stands apart: the interval then covers less than its level.

    Apart means further from the median of the other runs than 5 % of it and than four times their range.
    """
    if len(values) < 3:
        return None
    ordered = numpy.sort(numpy.asarray(values, dtype=numpy.float64))
    for outermost, others in ((ordered[-1], ordered[:-1]), (ordered[0], ordered[1:])):
        middle, spread = float(numpy.median(others)), float(numpy.ptp(others))
        if abs(outermost - middle) > max(OUTLIER_DISTANCE * abs(middle), OUTLIER_RANGES * spread):
            return f"one run lies {outermost / middle - 1:+.0%} from the other {len(others)}"
    return None


def unequal_spread(a: Sequence[float], b: Sequence[float]) -> str | None:
    """A sentence where one side's relative spread is more than four times the other's, by an F test at 1 %.

    The skew of the wider side then no longer cancels, and the interval covers less than its level.
    """
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    (narrow, few), (wide, many) = sorted((float(numpy.log(runs).var(ddof=1)), len(runs)) for runs in (a, b))
    if narrow == 0:
        return None
    square = wide / narrow
    if square <= SPREAD_RATIO**2 or special.fdtrc(many - 1, few - 1, square) >= SPREAD_PROBABILITY:
        return None
    return f"the runs of one side scatter {math.sqrt(square):.0f} times as much as the other's"


Floats = NDArray[numpy.float64]

LOG_WELCH = "log-Welch"


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its confidence interval.

    `n` counts the replicates of each side, runs or blocks; `level` holds for all `comparisons` together.
    """

    low: float
    estimate: float
    high: float
    n: tuple[int, ...]
    df: float
    level: float
    method: str
    comparisons: int = 1
    notes: tuple[str, ...] = ()

    def includes(self, value: float) -> bool:
        """Whether the interval cannot tell its figure from `value`."""
        return self.low <= value <= self.high


@dataclass(frozen=True, slots=True)
class Runs:
    """One value per run, all positive, and the block that each run belongs to."""

    values: tuple[float, ...]
    blocks: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.values) != len(self.blocks):
            raise ValueError(f"{len(self.values)} values, but {len(self.blocks)} blocks")


@dataclass(frozen=True, slots=True)
class _Arm:
    """Mean, its squared standard error, and count."""

    mean: float
    error2: float
    n: int

    @classmethod
    def of(cls, values: Floats) -> _Arm:
        # Equal values must not leave a spread of rounding errors.
        spread = 0.0 if values.min() == values.max() else float(values.var(ddof=1))
        return cls(float(values.mean()), spread / values.size, values.size)


_NOTHING = _Arm(0.0, 0.0, 1)


def mean_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's interval of the mean: x̄ ± t(n − 1)·s/√n; null below two runs."""
    if len(values) < 2:
        return None
    arm = _Arm.of(_floats(values))
    reach = critical_t(level, arm.n - 1) * math.sqrt(arm.error2)
    notes = _identical(arm.error2)
    return Interval(
        arm.mean - reach, arm.mean, arm.mean + reach, (arm.n,), arm.n - 1, level, "Student", 1, notes
    )


def log_mean_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """Student's interval of the geometric mean; null below two runs and where a value is not positive."""
    arms = _log_arms(values, values)
    if arms is None:
        return None
    arm, df = arms[0], arms[0].n - 1
    interval = _log_interval(arm, _NOTHING, critical_t(level, df), df, level, "Student on logarithms", 1)
    return replace(interval, n=(arm.n,))


def welch_difference(a: Sequence[float], b: Sequence[float], level: float = 0.95) -> Interval | None:
    """Difference a − b of means: Δ ± t·√(s₁²/n₁ + s₂²/n₂), Welch's df; null below two runs on a side."""
    if min(len(a), len(b)) < 2:
        return None
    of, over = _Arm.of(_floats(a)), _Arm.of(_floats(b))
    df, error2 = _welch_df(of, over), of.error2 + over.error2
    middle, reach = of.mean - over.mean, critical_t(level, df) * math.sqrt(error2)
    return Interval(
        middle - reach, middle, middle + reach, (of.n, over.n), df, level, "Welch", 1, _identical(error2)
    )


def log_welch_ratio(
    a: Sequence[float], b: Sequence[float], level: float = 0.95, *, comparisons: int = 1
) -> Interval | None:
    """Ratio a/b of geometric means: exp(Δ ± t·√(s₁²/n₁ + s₂²/n₂)), Δ and s of logarithms, Welch's df.

    Over several `comparisons` the level holds for all of them together (Bonferroni). Null below two runs on a
    side, and where a value is not positive.
    """
    arms = _log_arms(a, b)
    if arms is None:
        return None
    each = 1 - (1 - level) / comparisons
    df = _welch_df(*arms)
    interval = _log_interval(*arms, critical_t(each, df), df, level, LOG_WELCH, comparisons)
    doubts = (outlying_run(a), outlying_run(b), unequal_spread(a, b))
    return replace(interval, notes=(*interval.notes, *(doubt for doubt in doubts if doubt)))


def between_machines(a: Runs, b: Runs, level: float = 0.95, *, comparisons: int = 1) -> Interval | None:
    """Ratio a/b across machines: with three blocks a side, the blocks' log means are the replicates.

    With fewer the runs are pooled, and the interval says that it leaves the spread between blocks out.
    """
    if min(len(set(a.blocks)), len(set(b.blocks))) < BLOCKS_NEEDED:
        return _within_few_blocks(a, b, level, comparisons)
    means = [numpy.exp(list(_block_log_means(runs).values())) for runs in (a, b)]
    interval = log_welch_ratio(means[0].tolist(), means[1].tolist(), level, comparisons=comparisons)
    return interval and replace(interval, method=f"{LOG_WELCH} of block means")


def within_machine(a: Runs, b: Runs, level: float = 0.95, *, comparisons: int = 1) -> Interval | None:
    """Ratio a/b on one machine: with three shared blocks, the differences within blocks are the replicates.

    exp(d̄ ± t(m − 1)·s/√m) over the m differences d of block log means: what a block does to both sides
    cancels. With fewer shared blocks the runs are pooled, and the interval says so.
    """
    of, over = _block_log_means(a), _block_log_means(b)
    shared = sorted(of.keys() & over.keys())
    if len(shared) < BLOCKS_NEEDED:
        return _within_few_blocks(a, b, level, comparisons)
    arm = _Arm.of(numpy.array([of[block] - over[block] for block in shared]))
    each = 1 - (1 - level) / comparisons
    critical, method = critical_t(each, arm.n - 1), "log differences within blocks"
    interval = _log_interval(arm, _NOTHING, critical, arm.n - 1, level, method, comparisons)
    return replace(interval, n=(arm.n,))


def runs_needed(cv: float, half_width: float, level: float = 0.95) -> int:
    """Runs a side until a ratio's interval is ± `half_width`: t(2n − 2)·cv·√(2/n) ≤ half_width.

    `cv` is the coefficient of variation of a pilot's runs; the count is fixed before the main runs.
    """
    if cv < 0 or half_width <= 0:
        raise ValueError("a coefficient of variation is not negative, and a half-width is positive")
    n = 2
    while critical_t(level, 2 * n - 2) * cv * math.sqrt(2 / n) > half_width:
        n += 1
    return n


def _within_few_blocks(a: Runs, b: Runs, level: float, comparisons: int) -> Interval | None:
    interval = log_welch_ratio(a.values, b.values, level, comparisons=comparisons)
    if interval is None:
        return None
    count = min(len(set(a.blocks)), len(set(b.blocks)))
    note = "within one block" if count == 1 else f"{count} blocks: too few to tell their spread"
    return replace(interval, notes=(*interval.notes, note))


def _block_log_means(runs: Runs) -> dict[int, float]:
    logs, blocks = numpy.log(_floats(runs.values)), numpy.asarray(runs.blocks)
    return {int(block): float(logs[blocks == block].mean()) for block in numpy.unique(blocks)}


def _log_arms(a: Sequence[float], b: Sequence[float]) -> tuple[_Arm, _Arm] | None:
    if min(len(a), len(b)) < 2 or min(*a, *b) <= 0:
        return None
    return _Arm.of(numpy.log(_floats(a))), _Arm.of(numpy.log(_floats(b)))


def _log_interval(
    of: _Arm, over: _Arm, critical: float, df: float, level: float, method: str, comparisons: int
) -> Interval:
    error2 = of.error2 + over.error2
    middle, reach = of.mean - over.mean, critical * math.sqrt(error2)
    low, estimate, high = (math.exp(middle + sign * reach) for sign in (-1, 0, 1))
    return Interval(low, estimate, high, (of.n, over.n), df, level, method, comparisons, _identical(error2))


def _welch_df(a: _Arm, b: _Arm) -> float:
    """(u + v)² ÷ (u²/(n₁ − 1) + v²/(n₂ − 1)), u and v the squared standard errors."""
    below = a.error2**2 / (a.n - 1) + b.error2**2 / (b.n - 1)
    return (a.error2 + b.error2) ** 2 / below if below > 0 else float(a.n + b.n - 2)


def _identical(error2: float) -> tuple[str, ...]:
    return ("identical values: no spread was seen",) if error2 == 0 else ()


def critical_t(level: float, df: float) -> float:
    """The quantile of Student's t that a two-sided interval of that level reaches to."""
    return float(special.stdtrit(df, (1 + level) / 2))


def _floats(values: Sequence[float]) -> Floats:
    return numpy.asarray(values, dtype=numpy.float64)
