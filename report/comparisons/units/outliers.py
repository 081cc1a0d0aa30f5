"""Which of many alike stand out: the generalised extreme Studentised deviate test (Rosner, 1983)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy
from scipy import special

LEVEL = 0.05
"""In so many fleets of units that differ by chance alone one or more is named."""

FEWEST = 6
"""Of fewer nothing is named: one that stands out of five is as well explained by the other four."""

MANY = 25
"""From so many on more than one is looked for; of fewer the level holds for one alone (Grubbs' test)."""

MOST_SHARE = 0.2
"""Of many, what may stand out; more of them are no outliers and another kind."""


def outliers(values: Sequence[float]) -> tuple[int, ...]:
    """The places of those that stand out in logarithms, the farthest first, on either side.

    The farthest from the mean of those that are left is taken away again and again. The last of them that is
    farther than chance allows among so many is an outlier, and all that were taken before it. The quantile of
    Student's t is for one in 2 · n of the level, which corrects for the number of units on both sides.
    """
    n = len(values)
    if n < FEWEST:
        return ()
    logs = numpy.log(numpy.asarray(values, dtype=numpy.float64))
    left = list(range(n))
    taken: list[int] = []
    named = 0
    for _ in range(1 if n < MANY else math.floor(MOST_SHARE * n)):
        rest = logs[left]
        spread = float(rest.std(ddof=1))
        if spread == 0:
            break
        far = numpy.abs(rest - rest.mean())
        place = int(far.argmax())
        taken.append(left.pop(place))
        if far[place] / spread > critical(len(rest)):
            named = len(taken)
    return tuple(taken[:named])


def critical(n: int, level: float = LEVEL) -> float:
    """How many standard deviations of n the farthest of them may lie from their mean."""
    t = float(special.stdtrit(n - 2, 1 - level / (2 * n)))
    return (n - 1) * t / math.sqrt((n - 2 + t * t) * n)
