"""How many sound machines miss their figure by their unit alone, on numbers."""

from __future__ import annotations

import math

import numpy
import pytest

from report.compare.card_units import UnitSpread, missing_share, unit_spread

ASSUMED = UnitSpread()


def simulated(cv: float, df: float, margin: float, machines: int = 200_000) -> float:
    """By drawing the unit of the figure, the machine, and how wrong the measured spread is."""
    random = numpy.random.default_rng(7)
    true = cv * numpy.sqrt(df / random.chisquare(df, machines)) if math.isfinite(df) else cv
    ordered, delivered = random.normal(size=(2, machines))
    return float(((delivered - ordered) * true < math.log1p(-margin)).mean())


@pytest.mark.parametrize(("cv", "df", "margin"), [(0.03, math.inf, 0.05), (0.02, 2, 0.05), (0.05, 9, 0.1)])
def test_the_share_is_that_of_a_simulation(cv, df, margin):
    assert missing_share(UnitSpread(cv, df, 3), margin) == pytest.approx(simulated(cv, df, margin), abs=0.004)


def test_of_the_assumed_spread_a_ninth_misses_until_three_units_are_on_record():
    two, three = unit_spread((100.0, 102.0)), unit_spread((100.0, 101.0, 102.0))
    assert missing_share(ASSUMED, 0.05) == pytest.approx(1 / 9, abs=0.003)
    assert missing_share(two, 0.05) == missing_share(ASSUMED, 0.05) != missing_share(three, 0.05)


def test_units_that_do_not_differ_miss_nothing_and_a_wider_margin_misses_less():
    assert missing_share(UnitSpread(0.0), 0.05) == 0.0
    assert missing_share(ASSUMED, 0.1) < missing_share(ASSUMED, 0.05)
