"""Verdicts on claims: equivalence within a margin declared beforehand, order, structure and parity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy

from harness.record import Seeds
from report.stats.contrast import contrast_interval
from report.stats.intervals import LEVEL, Interval, Runs, critical_t

EQUIVALENCE_LEVEL = round(2 * LEVEL - 1, 2)
"""Two one-sided tests at LEVEL are one interval of 90 %."""

SEEDS = 5
"""Runs an arm that a verdict on parity needs."""

ACCURACY_FLOOR = 0.001
LOSS_FLOOR = 0.005

Direction = Literal["less", "greater"]
VerdictState = Literal["holds", "fails", "open"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a claim holds, and the 90 % interval that it rests on, or the bounds where no chance is in it.

    `other_unit` is the relative spread between cards of one model that keeps a difference from being a
    refutation; null where none does.
    """

    state: VerdictState
    interval: Interval | None = None
    margin: float | None = None
    bounds: tuple[float, float] | None = None
    other_unit: float | None = None

    @property
    def hour_assumed(self) -> float:
        """By how much the hours are assumed to differ for which a finding holds; 0 where nothing is."""
        return self.interval.hour_assumed if self.interval and self.state != "open" else 0.0


@dataclass(frozen=True, slots=True)
class _Published:
    """A published figure: fixed within its rounding, with the relative standard error of its source."""

    value: float
    half_digit: float
    error: float = 0.0
    df: float | None = None
    """The error's degrees of freedom; null where its runs are unknown: then our own count."""


def equivalence(
    measured: Interval | None,
    published: float,
    margin: float,
    half_digit: float = 0.0,
    *,
    spread: float | None = None,
    runs: int | None = None,
    other_unit: float = 0.0,
) -> Verdict:
    """Return whether what was measured, a figure or a ratio with its 90 % interval, is the published one.

    It holds where the interval of measured ÷ published is inside ±ln(1 + margin), fails where it is wholly
    outside, and else is open. `spread` is the published standard deviation of `runs`
    runs, in the figure's unit, with `runs` − 1 degrees of freedom. `other_unit` is the relative spread
    between cards of one model: a difference that it may explain is no refutation.
    """
    count = runs or 1
    error = spread / published / math.sqrt(count) if spread else 0.0
    source = _Published(published, half_digit, error, count - 1 or None)
    return _verdict_against(measured, source, margin, other_unit)


def seeds_hold(
    sides: Sequence[Runs],
    seeds: Seeds,
    published: float,
    margin: float,
    half_digit: float = 0.0,
    *,
    runs: int | None = None,
) -> Verdict:
    """Return whether a quality, or the ratio of two sides, is the published one, by the spread of its seeds.

    The published figure is of as many sides, of `runs` runs each, and scatters as these do. The margin is at
    least the one that a true equality meets in 19 of 20 cases with one run a side, however many there are:
    ln(1 + δ) = (t + t′) · √v · spread with v the sum of 1 ÷ runs of all sides, and t and t′ the quantiles of
    the published pairs at 90 and 95 %.
    """
    count, of_each = len(sides), runs or 1
    quantiles = critical_t(EQUIVALENCE_LEVEL, seeds.pairs) + critical_t(LEVEL, seeds.pairs)
    least = math.expm1(quantiles * math.sqrt(count * (1 + 1 / of_each)) * seeds.spread)
    source = _Published(published, half_digit, math.sqrt(count / of_each) * seeds.spread, seeds.pairs)
    (own, df), share = _deviation(sides)
    freedom = df if own > seeds.spread and df > 1 else seeds.pairs
    interval = _seed_interval(_ratio(sides), share * max(own, seeds.spread), freedom)
    return _verdict_against(interval, source, max(margin, least), 0.0)


def _ratio(sides: Sequence[Runs]) -> float:
    """Return the mean of one side, or of the first over the second."""
    means = [side.mean or math.nan for side in sides]
    return means[0] / means[1] if len(means) > 1 else means[0]


def _deviation(sides: Sequence[Runs]) -> tuple[tuple[float, int], float]:
    """The own spread of one run with its degrees of freedom; and a mean's part of a spread."""
    logs = [[math.log(value) for value in side.values] for side in sides]
    df = sum(len(side) - 1 for side in logs)
    squares = sum(float(numpy.var(side)) * len(side) for side in logs)
    return (math.sqrt(squares / df) if df else 0.0, df), math.sqrt(sum(1 / len(side) for side in logs))


def _seed_interval(estimate: float, deviation: float, df: float) -> Interval:
    """Around an estimate, by a spread of logarithms that was published, or that is larger here."""
    reach, middle = critical_t(EQUIVALENCE_LEVEL, df) * deviation, math.log(estimate)
    return Interval(math.exp(middle - reach), estimate, math.exp(middle + reach), float(df))


def range_holds(low: float, high: float, published: float, margin: float, half_digit: float = 0.0) -> Verdict:
    """Return whether a value between two certain bounds is the published figure within ±ln(1 + margin)."""
    least, most = low / (published + half_digit), high / (published - half_digit)
    inside = least >= 1 / (1 + margin) and most <= 1 + margin
    outside = most < 1 / (1 + margin) or least > 1 + margin
    state: VerdictState = "holds" if inside else "fails" if outside else "open"
    return Verdict(state, margin=margin, bounds=(low, high))


def bounds_hold(low: float, high: float, relation: Direction, bound: float) -> Verdict:
    """Return whether a value between two certain bounds is less or greater than `bound`."""
    return Verdict(_state_of_side(low, high, relation, bound), margin=0.0, bounds=(low, high))


def structure_holds(measured: float, published: float, half_digit: float = 0.0) -> Verdict:
    """Whether a count that has no spread, such as parameters, is the published one within its rounding."""
    # A printed decimal and its half digit are not exact in binary.
    reach = half_digit * (1 + 1e-9) + abs(published) * 1e-12
    return Verdict("holds" if abs(measured - published) <= reach else "fails")


def non_inferior(
    fp32: Sequence[float],
    mixed: Sequence[float],
    *,
    greater_is_better: bool = True,
    comparisons: int = 1,
) -> Verdict:
    """Return whether mixed precision ends as well as fp32, over seeds that were listed in advance.

    It holds where the one-sided 95 % Welch bound of the loss of quality is inside the margin, and fails where
    all of its interval is beyond. The margin is one standard deviation between the fp32 seeds, and at
    least 0.1 points of an accuracy between 0 and 1, or 0.5 % of a loss. Of several `comparisons` with one
    reference the level holds for all together.
    """
    if min(len(fp32), len(mixed)) < SEEDS:
        return Verdict("open")
    least = ACCURACY_FLOOR if greater_is_better else LOSS_FLOOR * float(numpy.mean(fp32))
    margin = max(float(numpy.std(fp32, ddof=1)), least)
    better, worse = (mixed, fp32) if greater_is_better else (fp32, mixed)
    arms = Runs(tuple(better)), Runs(tuple(worse))
    gain = contrast_interval(
        *arms, paired=False, level=EQUIVALENCE_LEVEL, comparisons=comparisons, logs=False
    )
    if gain is None:
        return Verdict("open")
    state: VerdictState = "holds" if gain.low > -margin else "fails" if gain.high < -margin else "open"
    return Verdict(state, gain, margin)


def _verdict_against(
    measured: Interval | None, source: _Published, margin: float, other_unit: float
) -> Verdict:
    """The verdict on measured ÷ published, in logarithms throughout."""
    if measured is None or source.value - source.half_digit <= 0:
        return Verdict("open")
    own_t, given_t = (critical_t(EQUIVALENCE_LEVEL, df) for df in (measured.df, source.df or measured.df))
    own = math.log(measured.high / measured.low) / 2 / own_t
    reach = _joint_reach(own, own_t, source.error, given_t)
    # Rounding hides the published figure within ± half a digit: the verdict must hold at both ends.
    least = math.log(measured.estimate / (source.value + source.half_digit))
    most = math.log(measured.estimate / (source.value - source.half_digit))
    inside = math.log1p(margin) - max(most, -least)
    outside = max(least, -most) - math.log1p(margin) - math.log1p(other_unit)
    interval = replace(
        measured,
        low=math.exp(least - reach),
        estimate=measured.estimate / source.value,
        high=math.exp(most + reach),
    )
    if inside >= reach:
        return Verdict("holds", interval, margin)
    if outside > reach:
        return Verdict("fails", interval, margin)
    beyond = interval.high < 1 / (1 + margin) or interval.low > 1 + margin
    return Verdict("open", interval, margin, other_unit=other_unit if beyond else None)


def _joint_reach(own: float, own_t: float, given: float, given_t: float) -> float:
    """Return the reach of both errors, whose quantiles are weighted by their squares (Cochran and Cox, 1950).

    A single t with Welch's degrees of freedom is wrong in 8 % of cases where one spread is of two runs.
    """
    error = math.hypot(own, given)
    return (own**2 * own_t + given**2 * given_t) / error if error else 0.0


def bound_holds(
    measured: Interval | None,
    relation: Direction,
    bound: float = 1.0,
    *,
    other_unit: float = 0.0,
) -> Verdict:
    """Return whether what has this 90 % interval is less or greater than `bound`, at 5 %.

    `other_unit` is the relative spread between cards of one model: what it may explain is no refutation.
    """
    if measured is None:
        return Verdict("open")
    state = _state_of_side(measured.low, measured.high, relation, bound)
    if state != "fails" or not other_unit:
        return Verdict(state, measured)
    explained = measured.low < bound * (1 + other_unit) and measured.high > bound / (1 + other_unit)
    return Verdict("open", measured, other_unit=other_unit) if explained else Verdict(state, measured)


def _state_of_side(low: float, high: float, relation: Direction, bound: float) -> VerdictState:
    """Return the state of a range that is wholly on one side of a bound, or on neither."""
    if low <= bound <= high:
        return "open"
    return "holds" if (high < bound) == (relation == "less") else "fails"


def seeds_bounded(sides: Sequence[Runs], seeds: Seeds, relation: Direction, bound: float) -> Verdict:
    """Whether a quality, or the ratio of two, is less or greater than `bound`, by the spread of its seeds."""
    own, share = _deviation(sides)
    # The one with the widest reach by its degrees of freedom: two runs may be close by luck.
    both = [(seeds.spread, seeds.pairs), own] if own[1] else [(seeds.spread, seeds.pairs)]
    deviation, df = max(both, key=lambda one: one[0] * critical_t(LEVEL, one[1]))
    return bound_holds(_seed_interval(_ratio(sides), share * deviation, df), relation, bound)
