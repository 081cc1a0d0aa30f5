"""Energy: the counter, the trapezoids, and what each is held against."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.telemetry.reader import EnergyReadings, counter_joules, sampled_joules, trial_energy

TIMES = range(101)
STEADY = EnergyReadings([(t, 50 + 300.0 * t) for t in TIMES], [(t, 300.0) for t in TIMES])
WINDOW = ((10.0, 90.0),)


@given(st.floats(0, 49), st.floats(51, 100), st.floats(1, 1000))
def test_of_steady_power_both_ways_give_power_times_time(begin, end, watts):
    window = ((begin, end),)
    assert counter_joules([(t, watts * t) for t in TIMES], window) == pytest.approx(watts * (end - begin))
    assert sampled_joules([(t, watts) for t in TIMES], window) == pytest.approx(watts * (end - begin))


def test_a_ramp_is_integrated_by_trapezoids():
    assert sampled_joules([(t, 2.0 * t) for t in TIMES], ((10.5, 20.25),)) == pytest.approx(
        20.25**2 - 10.5**2
    )


def trained(windows: int, seconds: float, pause: float, seed: int) -> float | None:
    """How far joules are off, over their band: windows at 300 W, pauses at 60 W, read every second."""
    rng = np.random.default_rng([windows, seed])
    begins = 5 + rng.uniform(0, 1) + np.arange(windows) * (seconds + pause)
    edges = np.concatenate(
        [[0.0], *([begin, begin + seconds] for begin in begins), [begins[-1] + seconds + 9]]
    )
    joules = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.resize([60.0, 300.0], edges.size - 1))])
    at = np.arange(0, edges[-1], 1.0)
    counter = np.interp(at, edges, joules) * rng.uniform(0.95, 1.05)
    told = trial_energy(
        [EnergyReadings(list(zip(at, counter, strict=True)), [])], [(b, b + seconds) for b in begins], None
    )
    assert told.joules is None or told.band
    return None if told.joules is None else (told.joules / (300 * windows * seconds) - 1) / (told.band or 0)


@pytest.mark.parametrize(("windows", "seconds"), [(20, 5.0), (60, 3.0), (60, 2.0), (6, 15.0)])
def test_energy_of_windows_shorter_than_twenty_samples_is_withheld(windows, seconds):
    assert trained(windows, seconds, 4.0, 1) is None


@pytest.mark.parametrize(("windows", "seconds"), [(1, 75.0), (4, 22.0), (20, 25.0), (3, 60.0)])
def test_the_band_of_energy_holds_in_19_of_20_trainings_with_pauses(windows, seconds):
    off = [trained(windows, seconds, 4.0, seed) for seed in range(60)]
    assert sum(each is not None and abs(each) <= 1 for each in off) >= 57


def test_windows_add_up_and_what_lies_between_is_left_out():
    halves = ((0.0, 40.0), (60.0, 100.0))
    assert counter_joules(STEADY.counter, halves) == pytest.approx(24_000)
    found = trial_energy([STEADY], halves, 8000)
    assert (found.joules, found.joules_per_sample, found.window_seconds) == (24_000, 3.0, 80.0)


@pytest.mark.parametrize(
    ("counter", "why"),
    [
        ([(0, 0.0), (50, 15_000.0)], "ends before the window does"),
        ([(0, 9e3), (50, 0.0), (100, 1e4)], "falls, as after a driver's restart"),
        ([(0, 5.0), (100, 5.0)], "stands still"),
        ([], "is not there"),
    ],
)
def test_a_counter_is_not_believed_that(counter, why):
    assert counter_joules(counter, WINDOW) is None, why


def test_power_with_a_hole_is_not_integrated():
    holed = [(t, 300.0) for t in TIMES if not 40 < t < 50]
    assert sampled_joules(holed, WINDOW) is None


@pytest.mark.parametrize(("watts", "withheld"), [(300, False), (318, False), (282, False), (331, True)])
def test_above_ten_percent_of_disagreement_energy_is_withheld(watts, withheld):
    found = trial_energy([EnergyReadings(STEADY.counter, [(t, float(watts)) for t in TIMES])], WINDOW, 1)
    assert found.sampled_joules / found.counter_joules == pytest.approx(watts / 300)
    assert (found.joules is None) is withheld
    assert found.unknown_because == ("counter and sampled power differ by +10%" if withheld else None)


@pytest.mark.parametrize(
    ("devices", "windows", "reason"),
    [
        ([], WINDOW, "no device tells its energy or power"),
        ([STEADY], (), "the measured window's times are not known"),
        ([STEADY], ((10.0, 50.0),), "the window of 40 s is shorter than 60 s"),
        (
            [EnergyReadings(STEADY.counter[::4], STEADY.power[::4])],
            WINDOW,
            "20 samples in the window are fewer than 60",
        ),
        (
            [EnergyReadings([], [(t, 0.0) for t in TIMES])],
            WINDOW,
            "neither an energy counter nor power was reported throughout",
        ),
    ],
)
def test_energy_that_cannot_be_had_is_null_with_its_reason(devices, windows, reason):
    found = trial_energy(devices, windows, 100)
    assert (found.joules, found.joules_per_sample, found.unknown_because) == (None, None, reason)


def test_cards_are_added_and_one_without_a_counter_leaves_the_samples():
    both = trial_energy([STEADY, STEADY], WINDOW, None)
    assert (both.joules, both.method) == (48_000, "counter")
    mixed = trial_energy([STEADY, EnergyReadings([], STEADY.power)], WINDOW, None)
    assert (mixed.joules, mixed.method) == (48_000, "sampled power")
