"""Verdicts on claims: equivalence within a margin declared beforehand, order, structure and parity.

Two one-sided tests (Schuirmann, 1987) on the logarithm of measured ÷ published. A published number carries
no spread of its own: it is taken as fixed, give or take its rounding, and s* says what spread of it would
overturn the verdict.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy

from harness.record import ClaimKind
from report.stats.intervals import Interval, critical_t, log_mean_interval, log_welch_ratio, welch_difference

LEVEL = 0.90
"""Two one-sided tests at 5 % are one 90 % interval."""

SEEDS = 5
"""Runs an arm that a verdict on parity needs."""

ACCURACY_FLOOR = 0.001
LOSS_FLOOR = 0.005

Word = Literal[
    "reproduced",
    "not reproduced",
    "holds here",
    "does not hold here",
    "parity",
    "worse",
    "inconclusive",
    "not comparable",
]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word, why, and the 90 % interval that it rests on.

    `s_star` is the largest assumed relative standard deviation of one published run for which the word would
    still stand; null where the word is no finding or needs no published number.
    """

    word: Word
    because: tuple[str, ...]
    interval: Interval | None = None
    margin: float | None = None
    s_star: float | None = None


@dataclass(frozen=True, slots=True)
class _Words:
    yes: Word
    no: Word


_ABSOLUTE = _Words("reproduced", "not reproduced")
_HERE = _Words("holds here", "does not hold here")
_PARITY = _Words("parity", "worse")


@dataclass(frozen=True, slots=True)
class _Published:
    """A published figure: fixed within its rounding, with the spread that its source gave, if any."""

    value: float
    half_digit: float
    spread: float | None
    runs: int


def words_for(kind: ClaimKind) -> tuple[Word, Word]:
    """What the two findings are called: an absolute figure is reproduced, the other kinds hold here."""
    words = _ABSOLUTE if kind == "absolute" else _HERE
    return words.yes, words.no


def equivalence(
    values: Sequence[float],
    published: float,
    margin: float,
    half_digit: float = 0.0,
    *,
    spread: float | None = None,
    runs: int | None = None,
    other_unit: float = 0.0,
    kind: ClaimKind = "absolute",
) -> Verdict:
    """Whether the runs' geometric mean is the published figure within ±ln(1 + margin).

    Reproduced where the 90 % interval of measured ÷ published lies inside, not reproduced where it lies
    wholly outside, else inconclusive. `spread` is the published standard deviation of `runs` runs, in the
    figure's unit. `other_unit` is the relative spread between cards of one model: a difference that it may
    explain is no refutation.
    """
    source = _Published(published, half_digit, spread, runs or 1)
    words = _Words(*words_for(kind))
    return _against(log_mean_interval(values, LEVEL), len(values), source, margin, other_unit, words)


def ratio_holds(
    of: Sequence[float],
    over: Sequence[float],
    published: float,
    margin: float,
    half_digit: float = 0.0,
    *,
    spread: float | None = None,
    runs: int | None = None,
) -> Verdict:
    """Whether the ratio of two arms is the published one within ±ln(1 + margin), by log-Welch."""
    source = _Published(published, half_digit, spread, runs or 1)
    fewest = min(len(of), len(over))
    return _against(log_welch_ratio(of, over, LEVEL), fewest, source, margin, 0.0, _HERE)


def order_holds(
    a: Sequence[float],
    b: Sequence[float],
    relation: Literal["equal", "less", "greater"],
    margin: float = 0.05,
) -> Verdict:
    """Whether a is less or greater than b, one-sided at 5 %; or equal within ±ln(1 + margin)."""
    if relation == "equal":
        return replace(ratio_holds(a, b, 1.0, margin), s_star=None)
    interval = log_welch_ratio(a, b, LEVEL)
    if interval is None:
        return _no_interval(min(len(a), len(b)))
    below, above = interval.high < 1, interval.low > 1
    holds, fails = (below, above) if relation == "less" else (above, below)
    if not holds and not fails:
        return Verdict("inconclusive", ("the interval includes 1: no difference is shown",), interval)
    because = f"the ratio lies {'below' if below else 'above'} 1"
    return Verdict(_HERE.yes if holds else _HERE.no, (because,), interval)


def structure_holds(measured: float, published: float, half_digit: float = 0.0) -> Verdict:
    """Whether a count that has no spread, such as parameters, is the published one within its rounding."""
    # A printed decimal and its half digit are not exact in binary.
    reach = half_digit * (1 + 1e-9) + abs(published) * 1e-12
    holds = abs(measured - published) <= reach
    return Verdict(_HERE.yes if holds else _HERE.no, (f"{measured:.12g} here, {published:.12g} published",))


def not_comparable(differences: Iterable[str]) -> Verdict:
    """The verdict where fields of the comparability key differ, each named."""
    return Verdict("not comparable", tuple(differences))


def non_inferior(
    fp32: Sequence[float],
    mixed: Sequence[float],
    margin: float | None = None,
    *,
    floor: float | None = None,
    greater_is_better: bool = True,
) -> Verdict:
    """Whether mixed precision ends as well as fp32, over seeds that were listed in advance.

    Parity where the one-sided 95 % Welch bound of the loss of quality stays inside the margin, worse where
    all of its interval lies beyond. The margin is by default one standard deviation between the fp32 seeds,
    and at least `floor`: 0.1 points of an accuracy between 0 and 1, 0.5 % of a loss.
    """
    fewest = min(len(fp32), len(mixed))
    if fewest < SEEDS:
        return Verdict("inconclusive", (f"{fewest} seeds an arm, and {SEEDS} are needed",))
    if margin is None:
        least = ACCURACY_FLOOR if greater_is_better else LOSS_FLOOR * float(numpy.mean(fp32))
        margin = max(float(numpy.std(fp32, ddof=1)), least if floor is None else floor)
    better, worse = (mixed, fp32) if greater_is_better else (fp32, mixed)
    gain = welch_difference(better, worse, LEVEL)
    if gain is None:
        return _no_interval(fewest)
    word: Word = "inconclusive"
    if gain.low > -margin:
        word = _PARITY.yes
    elif gain.high < -margin:
        word = _PARITY.no
    range_of_gain = f"{gain.estimate:.4g} ({gain.low:.4g} to {gain.high:.4g})"
    return Verdict(word, (f"mixed gains {range_of_gain} with a margin of {margin:.4g}",), gain, margin)


def _against(
    measured: Interval | None,
    fewest: int,
    source: _Published,
    margin: float,
    other_unit: float,
    words: _Words,
) -> Verdict:
    """The verdict on measured ÷ published, in logarithms throughout."""
    if measured is None:
        return _no_interval(fewest)
    if source.value - source.half_digit <= 0:
        return Verdict("inconclusive", ("the published figure is not told from 0 by its digits",))
    critical = critical_t(LEVEL, measured.df)
    own = math.log(measured.high / measured.low) / 2 / critical
    given = 0.0 if source.spread is None else source.spread / source.value / math.sqrt(source.runs)
    reach = critical * math.hypot(own, given)
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
        method=f"{measured.method} over the published figure",
    )
    if inside >= reach:
        word, slack = words.yes, inside
    elif outside > reach:
        word, slack = words.no, outside
    else:
        return Verdict("inconclusive", (_inside_or_not(interval, margin, other_unit),), interval, margin)
    survives = math.sqrt(max(0.0, (slack / critical) ** 2 - own**2) * source.runs)
    return Verdict(word, (_basis(source),), interval, margin, survives)


def _basis(source: _Published) -> str:
    if source.spread is None:
        return "the published figure is taken as fixed, give or take its rounding"
    return f"the published spread over {source.runs} runs is taken in"


def _inside_or_not(interval: Interval, margin: float, other_unit: float) -> str:
    low, high = 1 / (1 + margin), 1 + margin
    if interval.high < low or interval.low > high:
        return f"outside ±{margin:.0%}, but within what another card of the model may do (±{other_unit:.0%})"
    return f"measured ÷ published is {interval.low:.3f} to {interval.high:.3f}, across ±{margin:.0%}"


def _no_interval(runs: int) -> Verdict:
    why = "one run gives no interval" if runs == 1 else f"{runs} runs give no interval on positive figures"
    return Verdict("inconclusive", (why,))
