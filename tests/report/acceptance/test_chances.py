"""The stated chances of an acceptance rule, against deliveries that are drawn."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import special

from report.acceptance.chances import Noise, _chances, chances
from report.acceptance.disturbance import chance_of_again
from report.stats.intervals import Runs, blocks_interval

Floats = NDArray[np.float64]
Draw = Callable[[np.random.Generator, int, int], Floats]

MARGIN, SLOW = 0.05, 0.1


def steady(spread: float) -> Draw:
    """Runs that scatter by themselves."""
    return lambda draw, many, n: draw.normal(0, spread, (many, n))


def toggling(draw: np.random.Generator, many: int, n: int) -> Floats:
    """Clocks between two levels 1 % apart, which last five runs on average."""
    switches = draw.random((many, n)) < 0.2
    switches[:, 0] = draw.random(many) < 0.5
    return 0.01 * (switches.cumsum(axis=1) % 2 - 0.5) + draw.normal(0, 0.002, (many, n))


def pink(draw: np.random.Generator, many: int, n: int) -> Floats:
    """1/f noise of 1 % over 64 runs, of which the first are taken."""
    frequencies = np.arange(1, 33)
    angles = draw.random((many, 32, 1)) * 2 * np.pi + 2 * np.pi / 64 * frequencies[:, None] * np.arange(n)
    power = draw.exponential(1.0, (many, 32, 1)) / frequencies[:, None]
    return 0.01 * (np.sqrt(2 * power) * np.cos(angles)).sum(axis=1) / math.sqrt((1 / frequencies).sum())


@pytest.mark.parametrize("noise", [steady(0.003), steady(0.01), toggling, pink])
@pytest.mark.parametrize("n", [3, 5, 20])
def test_a_stated_chance_is_the_true_one_within_two_points(noise: Draw, n: int):
    draw = np.random.default_rng(n)
    many = noise(draw, 20_000, n).mean(axis=1)
    gaps = many[::2] - many[1::2]
    for cv in (0.0, 0.01, 0.02, 0.04):
        stated = []
        for values in noise(draw, 25, n):
            runs = Runs(tuple(np.exp(values)), (0,) * n)
            figure = blocks_interval(runs)
            assert figure
            stated.append(chances([Noise.of(runs, figure)], cv, margin=MARGIN, slow=SLOW))
        unit = math.sqrt(2) * cv + 1e-12
        good = special.ndtr((math.log(1 - MARGIN) - gaps) / unit).mean()
        slow = special.ndtr((gaps - math.log((1 - MARGIN) / (1 - SLOW))) / unit).mean()
        known = [each for each in stated if each]
        assert len(known) >= 5
        assert np.mean([each.good_fails for each in known]) == pytest.approx(good, abs=0.02)
        assert np.mean([each.slow_passes for each in known]) == pytest.approx(slow, abs=0.02)


def test_over_all_orders_the_mean_of_the_estimates_is_the_true_chance():
    """Three blocks whose hours differ by 4 %: by Student's t it would be nearly twice as much."""
    draw, df, error = np.random.default_rng(5), 2, 0.0233
    drawn = error * np.sqrt(draw.chisquare(df, 3000) / df)
    found = np.mean([_chances([Noise(each, df)], 0.0, MARGIN, SLOW).good_fails for each in drawn])
    truth = (draw.normal(0, math.sqrt(2) * error, 1_000_000) < math.log(1 - MARGIN)).mean()
    assert found == pytest.approx(truth, abs=0.008)


def test_where_units_differ_by_4_percent_the_assumed_chance_says_what_happens():
    found = chances([Noise(0.0, math.inf)], 0.04, margin=MARGIN, slow=SLOW)
    assert found
    assert (found.good_fails, found.slow_passes) == (
        pytest.approx(0.182, abs=0.003),
        pytest.approx(0.17, abs=0.003),
    )


def test_several_rows_share_the_unit_and_not_their_noise():
    noises = [Noise(0.01, math.inf), Noise(0.02, math.inf)]
    found = chances(noises, 0.02, margin=MARGIN, slow=SLOW)
    draw = np.random.default_rng(2)
    level = draw.normal(0, math.sqrt(2) * 0.02, 400_000)
    worst = np.minimum(*(level + draw.normal(0, math.sqrt(2) * noise.error, 400_000) for noise in noises))
    assert found
    assert found.good_fails == pytest.approx((worst < math.log(1 - MARGIN)).mean(), abs=0.003)
    assert found.slow_passes == pytest.approx(
        (worst >= math.log((1 - MARGIN) / (1 - SLOW))).mean(), abs=0.003
    )


def test_several_works_share_what_an_hour_does_to_their_machine():
    """Five works in one block of hours that differ by 1 %, which slow all of them alike."""
    draw, works, many = np.random.default_rng(6), 5, 100_000
    rows = []
    for values in draw.normal(0, 0.003, (works, 5)):
        runs = Runs(tuple(np.exp(values)), (0,) * 5)
        figure = blocks_interval(runs)
        assert figure
        rows.append(Noise.of(runs, figure))
    found = chances(rows, 0.02, margin=MARGIN, slow=SLOW)
    level = draw.normal(0, math.sqrt(2) * math.hypot(0.02, 0.01), many)
    mean = 0.003 * math.sqrt(2 / 5)
    worst = level + draw.normal(0, mean, (works, many)).min(axis=0)
    assert found
    assert found.good_fails == pytest.approx((worst < math.log(1 - MARGIN)).mean(), abs=0.01)
    assert found.slow_passes == pytest.approx((worst >= math.log((1 - MARGIN) / (1 - SLOW))).mean(), abs=0.01)


@pytest.mark.parametrize(("spread", "n"), [(0.03, 5), (0.02, 20), (0.1, 20)])
def test_runs_that_leave_a_chance_open_state_none(spread: float, n: int):
    values = np.exp(spread * np.linspace(-1, 1, n) / np.linspace(-1, 1, n).std(ddof=1))
    runs = Runs(tuple(values), (0,) * n)
    figure = blocks_interval(runs)
    assert figure and chances([Noise.of(runs, figure)], 0.0, margin=MARGIN, slow=SLOW) is None


@given(st.floats(0.01, 0.09), st.floats(0.001, 0.02), st.floats(0, 0.06))
def test_a_wider_margin_fails_fewer_good_cards_and_passes_more_slow_ones(margin, error, cv):
    noises = [Noise(error, math.inf)]
    tight = chances(noises, cv, margin=margin, slow=SLOW)
    wide = chances(noises, cv, margin=margin + 0.01, slow=SLOW)
    assert tight and wide
    assert wide.good_fails <= tight.good_fails
    assert wide.slow_passes >= tight.slow_passes


def test_without_any_spread_the_rule_is_never_wrong():
    found = chances([Noise(0.0, math.inf)], 0.0, margin=MARGIN, slow=SLOW)
    assert found and (found.good_fails, found.slow_passes) == (0, 0)


@pytest.mark.parametrize("works", [[(20, 20)], [(5, 5)] * 4, [(3, 3), (10, 10)]])
def test_the_chance_of_measuring_again_is_that_of_too_many_disturbed_runs(works):
    """Invalid runs of 2 %: before, one of twenty failed a good card in 33 of 100 deliveries."""
    draw, many = np.random.default_rng(4), 40_000
    again = np.zeros(many, bool)
    for planned, runs in works:
        left = planned - draw.binomial(planned, 0.02, many)
        again |= left < 0.75 * runs
    assert chance_of_again(works, 0.02) == pytest.approx(again.mean(), abs=0.005)
