"""Units that stand out: seldom where chance alone made them differ, nearly always where one is another."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.comparisons.units.outliers import FEWEST, LEVEL, critical, outliers
from report.comparisons.units.spread import unit_spread


def fleets(units: int, draws: int, spread: float = 0.02) -> np.ndarray:
    return np.exp(np.random.default_rng(units).normal(5, spread, (draws, units)))


@pytest.mark.parametrize("units", [6, 10, 24, 25, 64])
def test_chance_alone_names_a_unit_in_one_fleet_of_twenty_whatever_its_size(units):
    draws = 1500
    named = sum(bool(outliers(fleet.tolist())) for fleet in fleets(units, draws))
    error = math.sqrt(LEVEL * (1 - LEVEL) / draws)
    assert abs(named / draws - LEVEL) < 3 * error + 0.005


@pytest.mark.parametrize("units", [10, 64])
def test_a_unit_eight_standard_deviations_away_is_named_and_no_other_than_by_chance(units):
    draws, found, others = 300, 0, 0
    for fleet in fleets(units, draws):
        fleet[3] *= math.exp(-0.16)
        named = outliers(fleet.tolist())
        found += 3 in named
        others += len(set(named) - {3})
    assert found / draws > 0.95
    assert others / draws < 0.15


def test_several_that_hide_each_other_are_all_named():
    (fleet,) = fleets(64, 1)
    for place in (0, 10, 20, 30):
        fleet[place] *= 0.85
    assert set(outliers(fleet.tolist())) == {0, 10, 20, 30}


def test_the_limit_is_that_of_grubbs_tables():
    assert critical(10) == pytest.approx(2.290, abs=5e-4)
    assert critical(25) == pytest.approx(2.822, abs=5e-4)
    assert critical(54) == pytest.approx(3.158, abs=2e-3)


@given(st.lists(st.floats(10, 1000), max_size=40), st.floats(0.1, 10))
def test_names_do_not_depend_on_the_unit_of_measure_and_most_are_never_named(values, scale):
    named = outliers(values)
    assert len(named) <= max(1, len(values) // 5)
    assert len(values) >= FEWEST or not named
    if len(set(values)) == len(values):
        assert set(outliers([1 / value for value in values])) == set(named)


def test_a_unit_that_stands_out_is_in_no_spread_and_the_words_say_so():
    (fleet,) = fleets(12, 1)
    whole = unit_spread(fleet.tolist())
    fleet[0] *= 0.7
    found = unit_spread(fleet.tolist())
    assert (found.units, found.df, found.aside) == (11, 10, 1)
    assert found.words == "measured on 11 units, without 1 that stands out"
    assert found.cv < 2 * whole.cv
