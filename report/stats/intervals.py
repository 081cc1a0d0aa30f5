"""Intervals of means and ratios; what makes them doubtful: few runs or blocks, outliers, unequal spread."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import numpy
from numpy.typing import NDArray
from scipy import special

FLOOR_RUNS = 5
HEADLINE_RUNS = 10
BLOCKS_NEEDED = 3
"""Two block means leave one degree of freedom: no usable interval."""

ASSUMED_BLOCK_SPREAD = 0.01
"""Relative standard deviation between a machine's blocks of time, where too few of them show it."""

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
    """One value per run, and the block of time that each run belongs to.

    No blocks at all are for what an hour does to no machine, such as an accuracy: each run is a replicate.
    """

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.blocks and len(self.values) != len(self.blocks):
            raise ValueError(f"{len(self.values)} values, but {len(self.blocks)} blocks")

    @property
    def block_count(self) -> int:
        """How many blocks of time the runs stand in; 0 where blocks play no part."""
        return len(set(self.blocks))


@dataclass(frozen=True, slots=True)
class _Estimate:
    """A mean of block means, or of their differences, with its squared standard error."""

    mean: float
    error2: float
    df: float
    n: tuple[int, ...]
    blocks: int

    @property
    def by_blocks(self) -> bool:
        return self.blocks >= BLOCKS_NEEDED


def blocks_interval(
    of: Runs,
    over: Runs | None = None,
    *,
    level: float = 0.95,
    paired: bool = False,
    comparisons: int = 1,
    logs: bool = True,
) -> Interval | None:
    """The interval of the mean of runs in blocks of time, or of one side over another.

    With `logs` it is of the geometric mean, or of the ratio of two; without, of the mean, or of the
    difference `of` − `over`. With three blocks the block means are the replicates. With fewer the runs are,
    and `ASSUMED_BLOCK_SPREAD` joins their error. `paired` says that nothing beyond these blocks is spoken
    of: two sides ran side by side on one machine, so the replicates are their differences in the blocks
    that they share; one side stands for itself. Then no spread is assumed. Two estimates are joined with
    Welch's degrees of freedom. The level holds for all `comparisons` together (Bonferroni).

    Null where a side has too few runs to show a spread, and where a logarithm is asked of what is not
    positive.
    """
    sides = (of,) if over is None else (of, over)
    if logs and any(value <= 0 for side in sides for value in side.values):
        return None
    in_blocks = [_in_blocks(side, logs) for side in sides]
    estimate = _paired(in_blocks) if paired and over is not None else None
    assumed = 0.0
    if estimate is None:
        assumed = 0.0 if paired and over is None else ASSUMED_BLOCK_SPREAD
        scales = [_scale(side, logs) if side.blocks else 0.0 for side in sides]
        each = [_one_side(blocks, assumed * scale) for blocks, scale in zip(in_blocks, scales, strict=True)]
        estimate = _joined([side for side in each if side is not None]) if all(each) else None
    if estimate is None:
        return None
    critical = critical_t(1 - (1 - level) / max(comparisons, 1), estimate.df)
    reach = critical * math.sqrt(estimate.error2)
    ends = (estimate.mean - reach, estimate.mean, estimate.mean + reach)
    low, middle, high = map(math.exp, ends) if logs else ends
    notes = [
        "identical values: no spread was seen" if estimate.error2 == 0 else "",
        *(_doubts(of, over) if over is not None and logs else ()),
        _few_blocks(sides, estimate, assumed),
    ]
    method = _method(estimate, two=over is not None, logs=logs)
    return Interval(
        low,
        middle,
        high,
        estimate.n,
        estimate.df,
        level,
        method,
        max(comparisons, 1),
        tuple(note for note in notes if note),
    )


def _in_blocks(side: Runs, logs: bool) -> dict[int, list[float]]:
    values = map(math.log, side.values) if logs else side.values
    grouped: dict[int, list[float]] = {}
    for value, block in zip(values, side.blocks or (0,) * len(side.values), strict=True):
        grouped.setdefault(block, []).append(value)
    return grouped


def _scale(side: Runs, logs: bool) -> float:
    """What a relative spread is multiplied by: a logarithm's is its own."""
    return 1.0 if logs else abs(fmean(side.values)) if side.values else 0.0


def _one_side(blocks: Mapping[int, Sequence[float]], assumed: float) -> _Estimate | None:
    """The mean of one side; `assumed` is the standard deviation of a block where too few show it."""
    means = [fmean(values) for values in blocks.values()]
    error2, df = _within(blocks)
    return _estimate(means, error2, df, assumed, (sum(map(len, blocks.values())),))


def _paired(sides: Sequence[Mapping[int, Sequence[float]]]) -> _Estimate | None:
    """The mean difference of two sides over the blocks that they share."""
    of, over = sides
    shared = of.keys() & over.keys()
    within = [_within({block: side[block] for block in shared}) for side in sides]
    error2 = sum(error2 for error2, _ in within)
    df = _welch_df(within) if all(df for _, df in within) else 0
    counts = tuple(sum(len(side[block]) for block in shared) for side in sides)
    differences = [fmean(of[block]) - fmean(over[block]) for block in sorted(shared)]
    return _estimate(differences, error2, df, 0.0, counts)


def _within(blocks: Mapping[int, Sequence[float]]) -> tuple[float, float]:
    """The squared error of the mean of block means from the spread within blocks, and its freedom."""
    df = sum(len(values) - 1 for values in blocks.values())
    if df == 0:
        return 0.0, 0
    squares = sum(_squares(values) for values in blocks.values())
    return squares / df * sum(1 / len(values) for values in blocks.values()) / len(blocks) ** 2, df


def _squares(values: Sequence[float]) -> float:
    # Equal values must not leave a spread of rounding errors.
    if min(values) == max(values):
        return 0.0
    middle = fmean(values)
    return math.fsum((value - middle) ** 2 for value in values)


def _estimate(
    means: Sequence[float], within: float, within_df: float, assumed: float, counts: tuple[int, ...]
) -> _Estimate | None:
    """From the spread of three means on; below, from that within blocks and the assumed one between them.

    Two means that differ by more than both explain count as they are.
    """
    blocks = len(means)
    if blocks == 0 or (blocks == 1 and within_df == 0):
        return None
    between = _squares(means) / (blocks - 1) / blocks if blocks > 1 else 0.0
    expected = within + assumed**2 / blocks
    if blocks >= BLOCKS_NEEDED:
        return _Estimate(fmean(means), between, blocks - 1, (blocks,), blocks)
    if within_df == 0:
        return _Estimate(fmean(means), max(between, expected), blocks - 1, counts, blocks)
    df = within_df * (expected / within) ** 2 if within else math.inf if assumed else within_df
    return _Estimate(fmean(means), max(between, expected), df, counts, blocks)


def _joined(sides: Sequence[_Estimate]) -> _Estimate:
    """One side as it is; the first less the second of two."""
    if len(sides) == 1:
        return sides[0]
    of, over = sides
    df = _welch_df([(side.error2, side.df) for side in sides])
    counts, blocks = (*of.n, *over.n), min(of.blocks, over.blocks)
    return _Estimate(of.mean - over.mean, of.error2 + over.error2, df, counts, blocks)


def _welch_df(errors: Sequence[tuple[float, float]]) -> float:
    """(Σ u)² ÷ Σ u²/df, u the squared standard errors, each with its degrees of freedom."""
    below = sum(error2**2 / df for error2, df in errors)
    return sum(error2 for error2, _ in errors) ** 2 / below if below > 0 else sum(df for _, df in errors)


def _method(estimate: _Estimate, *, two: bool, logs: bool) -> str:
    if two and len(estimate.n) == 1:
        return "log differences within blocks" if logs else "differences within blocks"
    name = (LOG_WELCH if logs else "Welch") if two else "Student on logarithms" if logs else "Student"
    return f"{name} of block means" if estimate.by_blocks else name


def _doubts(of: Runs, over: Runs) -> tuple[str, ...]:
    doubts = (outlying_run(of.values), outlying_run(over.values), unequal_spread(of.values, over.values))
    return tuple(doubt for doubt in doubts if doubt)


def _few_blocks(sides: Sequence[Runs], estimate: _Estimate, assumed: float) -> str:
    """What the interval says of the spread between blocks where too few show it."""
    if estimate.by_blocks or not any(side.blocks for side in sides):
        return ""
    count = estimate.blocks
    if assumed:
        return f"{'one block' if count == 1 else f'{count} blocks'}: ±{assumed:.0%} between blocks assumed"
    return "within one block" if count == 1 else f"{count} blocks: too few to tell their spread"


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
    df, error2 = _arms_df(of, over), of.error2 + over.error2
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
    df = _arms_df(*arms)
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


def _arms_df(a: _Arm, b: _Arm) -> float:
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
