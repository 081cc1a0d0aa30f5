"""Every step time here is constructed."""

from __future__ import annotations

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.record import Series, Steady
from harness.summary.steady_state import steady_state
from tests.helpers.step_series import Shape, correlated, heavy, ramp
from tests.helpers.step_series import normal as noise

STEP_US = 300_000
REFUSED = ("unproven", "none")
normal = noise()


def series(relative: np.ndarray, step_us: int = STEP_US) -> Series:
    return Series.from_microseconds([max(1, int(value)) for value in relative * step_us])


def skewed_with_spikes(rng: np.random.Generator, n: int) -> np.ndarray:
    spikes = 0.5 * (rng.random(n) < 0.02) * rng.random(n)
    return 1 + 0.03 * rng.gamma(1, 1, n) + spikes


def toggling(rng: np.random.Generator, n: int) -> np.ndarray:
    """Clocks that fall by 3 % and rise again, each for 5 s on average."""
    changes = rng.random(n) < STEP_US / 5e6
    return normal(rng, n) * (1 + 0.03 * ((np.cumsum(changes) + rng.integers(2)) % 2))


def neighbour(rng: np.random.Generator, n: int) -> np.ndarray:
    """Half as slow again for 2 s of every 22 s."""
    seconds = np.arange(n) * STEP_US / 1e6 + rng.uniform(0, 22)
    return normal(rng, n) * (1 + 0.5 * (seconds % 22 < 2))


def warm_up(rng: np.random.Generator, n: int) -> np.ndarray:
    return normal(rng, n) + 0.02 * (np.arange(n) < n // 4)


def judged(shape: Shape, n: int, draws: int) -> list[Steady]:
    rng = np.random.default_rng(7)
    return [steady_state(series(shape(rng, n))) for _ in range(draws)]


def kinds(shape: Shape, n: int, draws: int = 100) -> Counter[str]:
    return Counter(steady.kind for steady in judged(shape, n, draws))


@pytest.mark.parametrize(
    "shape", [normal, correlated(0.3, 0.02), heavy(), skewed_with_spikes, correlated(0.9, 0.02)]
)
@pytest.mark.parametrize(("n", "draws", "proven"), [(250, 100, 97), (1500, 34, 33)])
def test_common_noise_around_one_level_raises_three_false_alarms_in_a_hundred_at_most(
    shape, n, draws, proven
):
    counted = kinds(shape, n, draws)
    assert counted["flat"] + counted["recurrent"] >= proven


@pytest.mark.parametrize(("n", "draws", "proven"), [(250, 60, 55), (1000, 30, 29)])
def test_clocks_that_toggle_are_recurrent_and_never_invalid(n, draws, proven):
    judgements = judged(toggling, n, draws)
    counted = Counter(steady.kind for steady in judgements)
    assert counted["recurrent"] + counted["flat"] >= proven
    assert counted["none"] == 0
    assert {steady.first_step for steady in judgements if steady.kind == "recurrent"} == {0}


@pytest.mark.parametrize(("n", "kind"), [(250, "unproven"), (1000, "recurrent")])
def test_a_neighbour_now_and_then_is_kept_and_is_proven_where_it_came_often_enough(n, kind):
    judgements = judged(neighbour, n, 30)
    counted = Counter(steady.kind for steady in judgements)
    assert counted[kind] >= 27 and counted["none"] == 0
    assert {steady.first_step for steady in judgements} == {0}


@pytest.mark.parametrize(
    ("where", "times", "kind", "at"),
    [
        (np.arange(1000) < 150, 1.1, "recurrent", 150),
        (np.arange(1000) >= 500, 1.06, "slowdown", 500),
    ],
)
def test_a_slower_start_or_end_of_toggling_clocks_is_a_warm_up_that_is_cut_or_a_slowdown(
    where, times, kind, at
):
    steady = steady_state(series(toggling(np.random.default_rng(2), 1000) * np.where(where, times, 1)))
    assert steady.kind == kind
    assert abs(steady.first_step - at) <= 10


@pytest.mark.parametrize("decay_seconds", [12.5, 25.0, 60.0])
def test_an_exponential_ramp_of_three_percent_is_never_proven_steady_in_75_seconds(decay_seconds):
    def ramp(rng: np.random.Generator, n: int) -> np.ndarray:
        return normal(rng, n) * (1 + 0.03 * (1 - np.exp(-np.arange(n) * STEP_US / 1e6 / decay_seconds)))

    counted = kinds(ramp, 250)
    assert counted["slowdown"] + counted["unproven"] >= 95


def test_a_warm_up_of_two_percent_at_one_percent_noise_is_found_and_cut_where_it_ends():
    found = judged(warm_up, 300, 100)
    cut = [steady.first_step for steady in found if steady.kind == "warm-up"]
    assert len(cut) >= 95
    assert np.median(np.abs(np.array(cut) - 75)) <= 5


@pytest.mark.parametrize(("n", "draws"), [(600, 60), (3000, 20)])
def test_a_thermal_ramp_of_three_percent_is_a_slowdown(n, draws):
    assert kinds(ramp(0.03), n, draws)["slowdown"] == draws


@pytest.mark.parametrize(("first", "last", "kind"), [(1, 1.012, "slowdown"), (1.012, 1, "none")])
def test_a_straight_ramp_that_no_change_point_shows_is_found_by_its_slope(first, last, kind):
    ramp = normal(np.random.default_rng(3), 600) * np.linspace(first, last, 600)
    steady = steady_state(series(ramp))
    assert (steady.kind, steady.changes) == (kind, ())
    assert steady.slope == pytest.approx(last - first, abs=0.004)


def off_and_counted(values: np.ndarray, step_us: int) -> bool:
    """Whether the figure counts, and is more than 3 % off that of the whole window."""
    steady = steady_state(series(values, step_us))
    kept = values[steady.first_step :]
    return steady.kind not in REFUSED and abs(kept.mean() / values.mean() - 1) > 0.03


def ended(seconds: float, times: float, window: float, step: float = 0.3) -> np.ndarray:
    """A window that ends with so many seconds of another level, whose steps take so many times as long."""
    tail = max(1, round(seconds / step / times))
    n = round((window - seconds) / step) + tail
    return normal(np.random.default_rng([n, tail]), n) * np.where(np.arange(n) < n - tail, 1, times)


@pytest.mark.parametrize("window", [75, 120, 300, 1800])
def test_no_end_of_a_window_replaces_its_figure_and_counts(window: int):
    seconds = (3, 5, 10, 20, 30, *(share * window for share in (0.2, 0.3, 0.4, 0.49)))
    ends = list(product(seconds, (1.2, 1.5, 2, 2.5, 3), (1, -1)))
    off = [end for end in ends if off_and_counted(ended(end[0], end[1] ** end[2], window), 300_000)]
    assert off == [] and len(ends) == 90


@pytest.mark.parametrize("times", [0.9, 1.1, 2.0])
def test_a_level_at_the_end_cuts_nothing_and_proves_nothing_unless_it_fills_half_of_the_window(times: float):
    found = [steady_state(series(ended(seconds, times, 600))) for seconds in (20, 59, 135, 290)]
    assert [(steady.kind, steady.first_step) for steady in found] == [("unproven", 0)] * 4
    held = steady_state(series(ended(400, times, 600)))
    assert held.kind == ("slowdown" if times > 1 else "warm-up")
    assert abs(held.first_step - 200 / 0.3) <= 12


def test_a_warm_up_is_cut_before_a_level_that_is_most_of_a_window_too_short_to_prove_it():
    steady = steady_state(series(warm_up(np.random.default_rng(3), 150)))
    assert steady.kind == "unproven" and abs(steady.first_step - 37) <= 5


def test_a_neighbour_of_20_s_in_140_leaves_no_counted_figure_more_than_5_percent_off():
    rng, hour = np.random.default_rng(11), {times: 140 / (120 + 20 / times) for times in (1.2, 1.5, 3.0)}
    for times, window, _ in product(hour, (75, 150, 300, 900), range(5)):
        begin, n = rng.uniform(0, 140), round(window / 0.3)
        at, values = begin, []
        for one in normal(rng, n):
            values.append(one * (times if at % 140 < 20 else 1.0))
            at += 0.3 * values[-1]
        steady = steady_state(series(np.array(values)))
        mean = float(np.mean(values[steady.first_step :]))
        assert steady.kind in REFUSED or min(abs(mean - 1), abs(mean / hour[times] - 1)) <= 0.05


@pytest.mark.parametrize(
    ("steps", "step_us", "kind"),
    [
        (150, 1_000_000, "unproven"),
        (199, 310_000, "unproven"),
        (2000, 10_000, "unproven"),
        (2000, 31_000, "flat"),
    ],
)
def test_a_window_too_short_in_steps_or_in_seconds_is_unproven(steps, step_us, kind):
    assert steady_state(series(normal(np.random.default_rng(5), steps), step_us)).kind == kind


def test_slow_first_steps_are_cut_though_they_are_too_few_for_a_segment():
    rng = np.random.default_rng(6)
    values = normal(rng, 400)
    values[:2] = (40, 3)
    steady = steady_state(series(values))
    assert (steady.kind, steady.first_step) == ("warm-up", 2)


def test_a_disturbance_that_passed_once_is_kept_and_proves_nothing_where_it_moves_the_mean():
    rng = np.random.default_rng(8)
    place = np.arange(1000)
    small = steady_state(series(normal(rng, 1000) + 0.1 * ((place > 300) & (place < 350))))
    large = steady_state(series(normal(rng, 1000) + 0.5 * ((place > 300) & (place < 400))))
    assert (small.kind, small.first_step) == ("recurrent", 0)
    assert (large.kind, large.first_step) == ("unproven", 0)


def test_wide_scatter_does_not_hide_a_change_of_level_by_more_than_five_percent():
    rng = np.random.default_rng(13)
    place = np.arange(20_000)
    noisy = np.exp(rng.normal(0, 0.4, 20_000))
    assert steady_state(series(noisy)).kind == "recurrent"
    assert steady_state(series(noisy * (1 + 0.1 * (place > 10_000)))).kind == "slowdown"


def test_a_faster_start_of_a_few_steps_is_no_slowdown():
    rng = np.random.default_rng(9)
    values = normal(rng, 600)
    values[:15] *= 0.5
    longer = normal(rng, 600)
    longer[:60] *= 0.9
    assert steady_state(series(values)).kind == "warm-up"
    assert steady_state(series(longer)).kind == "slowdown"


def test_steps_are_counted_singly_where_a_series_holds_sums_over_several():
    rng = np.random.default_rng(10)
    relative = normal(rng, 45_000) + 0.05 * (np.arange(45_000) < 15_000)
    packed = series(relative, 10_000)
    steady = steady_state(packed)
    assert packed.steps_per_value == 3
    assert steady.kind == "warm-up"
    assert abs(steady.first_step - 15_000) <= 150
    assert steady.first_step % 3 == 0


@pytest.mark.parametrize("values", [[], [0, 0], [5], [1000] * 500, [9000] * 11 + [0] * 26])
def test_empty_constant_and_tiny_series_are_judged_without_a_fault(values):
    steady = steady_state(Series.from_microseconds(values))
    assert steady.kind == "unproven"
    assert steady.first_step == 0


@settings(max_examples=40)
@given(st.lists(st.integers(0, 2**33), max_size=60), st.integers(1, 5))
def test_whatever_is_written_the_cut_lies_within_the_series(values, repeat):
    steady = steady_state(Series.from_microseconds(values * repeat))
    assert 0 <= steady.first_step < max(1, len(values) * repeat)
    assert all(0 < change < len(values) * repeat for change in steady.changes)


@settings(max_examples=15)
@given(st.integers(1, 50))
def test_the_unit_of_time_changes_nothing_but_the_seconds_that_are_needed(factor):
    relative = warm_up(np.random.default_rng(12), 400)
    one, other = (steady_state(series(relative, us)) for us in (400_000, 400_000 * factor))
    assert (one.kind, one.first_step) == (other.kind, other.first_step)
