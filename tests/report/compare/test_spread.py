"""How far other units of a model may lie: by one rule, and as often as it says."""

from __future__ import annotations

import math

import numpy as np
import pytest

from report.compare.card_units import UnitSpread, unit_reach, unit_spread, with_other_units
from report.stats.intervals import Runs, blocks_interval


def test_three_units_replace_the_assumed_cv():
    few = unit_spread([100, 104])
    assert (few.measured, few.cv, few.units) == (False, 0.03, 2)
    measured = unit_spread([100, 104, 108, 112])
    assert (measured.units, measured.df, measured.measured) == (4, 3, True)
    assert measured.cv == pytest.approx(np.log([100, 104, 108, 112]).std(ddof=1))


def test_each_model_that_is_redrawn_adds_two_draws_of_a_unit():
    assumed = UnitSpread()
    assert unit_reach(assumed) == pytest.approx(1.96 * math.sqrt(2) * 0.03, rel=1e-4)
    assert unit_reach(assumed, assumed) == pytest.approx(1.96 * 2 * 0.03, rel=1e-4)


def test_both_sides_degrees_of_freedom_count_and_one_model_on_both_sides_counts_once():
    five, other = UnitSpread(0.02, 4, 5), UnitSpread(0.0200001, 4, 6)
    assert unit_reach(five, other) == pytest.approx(2.306 * 0.04, rel=1e-3)
    assert unit_reach(five, five) == pytest.approx(2.776 * 0.04, rel=1e-3)


def test_the_reach_of_runs_and_of_units_add_in_squares():
    low, high = with_other_units(0.9, 1.0, 1.2, unit_reach(UnitSpread(), UnitSpread()))
    assert -math.log(low) == pytest.approx(math.hypot(math.log(0.9), 0.11759), rel=1e-3)
    assert math.log(high) == pytest.approx(math.hypot(math.log(1.2), 0.11759), rel=1e-3)


@pytest.mark.parametrize(
    ("cv", "units", "run", "least"),
    [
        (0.015, 1, 0.01, 95),
        (0.02, 1, 0.01, 95),
        (0.03, 1, 0.01, 94),
        (0.04, 10, 0.0005, 94),
        (0.03, 3, 0.01, 94),
    ],
)
def test_the_range_covers_two_other_units(cv: float, units: int, run: float, least: float):
    draw, draws, held = np.random.default_rng(3), 800, 0
    for _ in range(draws):
        sides = [np.exp(draw.normal(0, cv, (units, 1)) + draw.normal(0, run, (units, 5))) for _ in "ab"]
        runs = [Runs(tuple(side[0]), (0,) * 5) for side in sides]
        interval = blocks_interval(*runs)
        assert interval
        reach = unit_reach(*(unit_spread(side.mean(axis=1).tolist()) for side in sides))
        low, high = with_other_units(interval.low, interval.estimate, interval.high, reach)
        held += low <= math.exp(draw.normal(0, cv) - draw.normal(0, cv)) <= high
    assert 100 * held / draws >= least
