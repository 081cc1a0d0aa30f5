"""How many machines of an order miss their figure by their unit alone, on numbers."""

from __future__ import annotations

import math

import numpy
import pytest
from scipy import special

from report.compare.spread import ORDERS, UnitSpread, shortfall, shortfalls, unit_spread

ASSUMED = UnitSpread()


def simulated(machines: int, cv: float, df: float, margin: float, orders: int = 40_000) -> numpy.ndarray:
    """By drawing the unit of the figure, the machines, and how wrong the measured spread is."""
    random = numpy.random.default_rng(7)
    true = cv * numpy.sqrt(df / random.chisquare(df, orders)) if math.isfinite(df) else numpy.full(orders, cv)
    ordered, delivered = random.normal(size=orders), random.normal(size=(orders, machines))
    return ((delivered - ordered[:, None]) * true[:, None] < math.log1p(-margin)).sum(axis=1)


def test_of_the_assumed_spread_a_ninth_misses_and_all_share_the_unit_of_the_figure():
    found = [
        (each.machines, round(each.expected, 3), each.low, each.high) for each in shortfalls(ASSUMED, 0.05)
    ]
    assert found == [(1, 0.113, 0, 1), (8, 0.907, 0, 5), (64, 7.253, 0, 39)]
    assert found[0][1] == pytest.approx(special.ndtr(math.log(0.95) / (math.sqrt(2) * 0.03)), abs=1e-3)


@pytest.mark.parametrize(("cv", "df", "margin"), [(0.03, math.inf, 0.05), (0.02, 2, 0.05), (0.05, 9, 0.1)])
@pytest.mark.parametrize("machines", ORDERS)
def test_expected_number_and_range_are_those_of_a_simulation(machines, cv, df, margin):
    drawn = simulated(machines, cv, df, margin)
    found = shortfall(machines, UnitSpread(cv, df, 3), margin)
    assert found.expected == pytest.approx(drawn.mean(), abs=0.012 * machines)
    low, high = numpy.quantile(drawn, (0.025, 0.975), method="inverted_cdf")
    assert abs(found.low - low) <= 1
    assert abs(found.high - high) <= 1


def test_three_units_on_record_replace_the_assumption_and_two_do_not():
    two, three = unit_spread((100.0, 102.0)), unit_spread((100.0, 101.0, 102.0))
    assert (two.measured, three.measured) == (False, True)
    assert shortfalls(two, 0.05) == shortfalls(ASSUMED, 0.05)
    assert shortfall(64, three, 0.05).expected == pytest.approx(
        64 * special.stdtr(2, math.log(0.95) / (math.sqrt(2) * three.cv))
    )


def test_units_that_do_not_differ_miss_nothing_and_a_wider_margin_misses_less():
    alike = shortfall(64, UnitSpread(0.0, given=True), 0.05)
    assert (alike.expected, alike.low, alike.high) == (0.0, 0, 0)
    assert shortfall(64, ASSUMED, 0.1).expected < shortfall(64, ASSUMED, 0.05).expected
