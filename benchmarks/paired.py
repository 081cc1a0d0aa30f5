"""The interval of many ratios that were taken side by side on a machine with other tenants.

Such ratios are nearly normal in the middle and have tails of many times their width: a neighbour's burst
makes one step ten times as long, whichever side has it. A mean follows the bursts; the mean of the middle
60 % does not, and loses little where there are none. Since both sides stand in one order, ABBA, neither gains
by what is cut. A cost that comes in fewer than one ratio of five would be cut with it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from report.stats.intervals import Interval

CUT = 0.2
"""Of the ratios, from each end."""

LEAST = 5
LEVEL = 0.95


def trimmed_interval(ratios: Sequence[float]) -> Interval | None:
    """Student's interval of the trimmed mean of logarithms; null below five ratios.

    Its standard error is that of the winsorised values ÷ (1 − 2 · cut), its degrees of freedom those of the
    ratios that are left (Tukey and McLaughlin, 1963).
    """
    n = len(ratios)
    if n < LEAST:
        return None
    logs = np.log(np.asarray(ratios, dtype=np.float64))
    middle = float(stats.trim_mean(logs, CUT))
    error = float(stats.mstats.trimmed_stde(logs, limits=(CUT, CUT)))
    df = n - 2 * int(CUT * n) - 1
    reach = float(stats.t.ppf((1 + LEVEL) / 2, df)) * error
    ends = (math.exp(middle + side * reach) for side in (-1, 0, 1))
    return Interval(*ends, n=(n,), df=df, level=LEVEL, method="trimmed mean of logarithms")
