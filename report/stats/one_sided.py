"""One-sided verdicts at 5 %: orders, bounds, trends and differences, by the end of a 90 % interval."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from harness.record import ClaimKind, Seeds
from report.stats.equivalence import (
    HERE,
    LEVEL,
    Verdict,
    Words,
    of_seeds,
    ratio_holds,
    words_for,
)
from report.stats.intervals import Interval, Runs, blocks_interval


def order_holds(
    a: Runs,
    b: Runs,
    relation: Literal["equal", "less", "greater"],
    margin: float = 0.05,
    *,
    paired: bool = False,
) -> Verdict:
    """Whether a is less or greater than b, one-sided at 5 %; or equal within ±ln(1 + margin)."""
    if relation == "equal":
        return replace(ratio_holds(a, b, 1.0, margin, paired=paired), s_star=None)
    return bound_holds(a, b, relation, 1.0, paired=paired)


def bound_holds(
    of: Runs, over: Runs, relation: Literal["less", "greater"], bound: float, *, paired: bool = False
) -> Verdict:
    """Whether the ratio of two arms is less or greater than `bound`, one-sided at 5 %."""
    interval = blocks_interval(of, over, level=LEVEL, paired=paired)
    return _bounded(interval, relation, bound)


def difference_holds(
    a: Runs, b: Runs, relation: Literal["less", "greater"], *, paired: bool = False
) -> Verdict:
    """Whether a is less or greater than b by their difference, one-sided at 5 %: for what may be 0."""
    interval = blocks_interval(a, b, level=LEVEL, paired=paired, logs=False)
    return _bounded(interval, relation, 0.0)


def figure_bound_holds(
    measured: Runs,
    relation: Literal["less", "greater"],
    bound: float,
    *,
    other_unit: float = 0.0,
    kind: ClaimKind = "quality",
) -> Verdict:
    """Whether a figure's geometric mean is less or greater than `bound`, one-sided at 5 %.

    `other_unit` is the relative spread between cards of one model: what it may explain is no refutation.
    """
    interval = blocks_interval(measured, level=LEVEL)
    words = words_for(kind)
    verdict = _bounded(interval, relation, bound, words)
    if interval is None or verdict.word != words.no or not other_unit:
        return verdict
    explained = interval.low < bound * (1 + other_unit) and interval.high > bound / (1 + other_unit)
    return Verdict("inconclusive", interval, other_unit=other_unit) if explained else verdict


def trend_holds(slopes: Runs, relation: Literal["less", "greater"]) -> Verdict:
    """Whether a figure falls or grows, by a factor for each repeat: one-sided at 5 %.

    The factors are of one machine in one session, so what an hour does to it is in each of them alike.
    """
    interval = blocks_interval(slopes, level=LEVEL, paired=True)
    return _bounded(interval, relation, 1.0)


def _bounded(
    interval: Interval | None,
    relation: Literal["less", "greater"],
    bound: float,
    words: Words = HERE,
) -> Verdict:
    if interval is None or interval.includes(bound):
        return Verdict("inconclusive", interval)
    below = interval.high < bound
    return Verdict(words.yes if below == (relation == "less") else words.no, interval)


def few_runs_bounded(
    measured: float, share: float, seeds: Seeds, relation: Literal["less", "greater"], bound: float
) -> Verdict:
    """Whether a quality of too few runs is less or greater than `bound`, by the spread of its seeds.

    `share` is the variance in units of that of one run: 1 for one run, 2 for the ratio of two. What falls or
    grows along a trend, by a factor, is less or greater than 1.
    """
    interval = of_seeds(math.log(measured), math.sqrt(share) * seeds.spread, seeds)
    return _bounded(interval, relation, bound)
