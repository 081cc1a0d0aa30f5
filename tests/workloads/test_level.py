"""When a trial with a least and a most may end, held against the harness's own judgement."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from harness.record import Series
from harness.summary import steady_state as steady_states
from harness.summary.steady_state import steady_state
from tests.helpers import step_series
from tests.helpers.step_series import correlated, pink, switching, until_held
from tests.helpers.workload_runner import module

level = module("parts.timing.step_clock")

STEP_SECONDS = 0.3
LEAST, MOST = 75.0, 300.0
PLACE = np.arange(round(MOST / STEP_SECONDS))
SECONDS = PLACE * STEP_SECONDS


def noise(seed: int = 1, cv: float = 0.005) -> np.ndarray:
    return 1 + np.random.default_rng(seed).normal(0, cv, PLACE.size)


def step_us(relative: np.ndarray) -> list[int]:
    return [int(value) for value in relative * STEP_SECONDS * 1e6]


CASES = {
    "one level": (noise(), True),
    "a warm-up long ago": (noise() * (1 + 0.1 * (SECONDS < 100)), True),
    "slower since 180 s": (noise() * (1 + 0.05 * (SECONDS >= 120)), True),
    "slower since 120 s": (noise() * (1 + 0.05 * (SECONDS >= 180)), False),
    "a rare slow step": (noise() * (1 + 9 * (PLACE % 301 == 5)), True),
    "faster since 40 s": (noise() * (1 - 0.05 * (SECONDS >= 260)), False),
    "slower since 40 s": (noise() * (1 + 0.05 * (SECONDS >= 260)), False),
    "a neighbour every 22 s": (noise() * (1 + 0.5 * (SECONDS % 22 < 2)), False),
    "a ramp": (noise() * (1 + 0.08 * SECONDS / MOST), False),
    "50 s": (noise()[:166], False),
    "100 steps": (noise()[:100] * 3, False),
}


@pytest.mark.parametrize("name", CASES)
def test_the_workload_and_the_harness_agree_whether_a_last_level_has_held(name):
    relative, held = CASES[name]
    steady = steady_state(Series.from_microseconds(step_us(relative)))
    assert level.level_held(step_us(relative)) is held
    kept = SECONDS.size - steady.first_step
    long = kept >= level.HELD_STEPS and step_us(relative[steady.first_step :]) and steady.kind != "unproven"
    one_level = steady.kind in ("flat", "warm-up") or (
        steady.kind == "slowdown" and abs(steady.slope) < 0.005
    )
    assert (bool(long) and one_level) is held


@pytest.mark.parametrize(
    ("step_seconds", "stopped_by", "seconds", "looks"),
    [
        (lambda now: 0.25, "level-held", 75, [75]),
        (lambda now: 0.25 if now < 50 else 0.3, "level-held", 120, [75, 90, 105, 120]),
        (lambda now: 0.25 if now // 25 % 2 else 0.3, "seconds", 300, range(75, 300, 15)),
    ],
    ids=["one level", "a new level", "toggling"],
)
def test_a_trial_with_a_least_and_a_most_looks_at_fixed_times_and_ends_where_its_level_held_or_at_the_most(
    monkeypatch, step_seconds, stopped_by, seconds, looks
):
    now, seen, held = 0.0, [], level.level_held
    clock = SimpleNamespace(perf_counter_ns=lambda: int(now * 1e9), perf_counter=lambda: now)
    monkeypatch.setattr(level, "time", clock)
    monkeypatch.setattr(level, "level_held", lambda *steps: seen.append(round(now)) or held(*steps))
    limit = {"seconds": LEAST, "seconds_at_most": MOST}
    trial = SimpleNamespace(limit=limit, event=lambda *told, **more: None)
    timed = level.StepClock(trial, steps_per_epoch=9999, epochs=1)
    timed.start()
    while not timed.limit_reached():
        timed.ready()
        now += step_seconds(now)
        timed.step(2.0, 4)
    epoch = timed.stop()
    now += 1000
    assert (timed.protocol([epoch])["stopped_by"], round(timed.seconds)) == (stopped_by, seconds)
    assert seen == list(looks)


def test_batches_that_come_six_together_hold_their_level_as_the_sums_of_six():
    bursts = step_us(np.where(np.arange(240) % 6, 0.05, 5.75) * noise()[:240])
    assert not level.level_held(bursts) and level.level_held(bursts, 6)
    assert steady_state(Series.from_microseconds(bursts * 2, 6)).kind == "flat"


@pytest.mark.parametrize("of", ["SECONDS", "STEPS", "SHARE"])
def test_both_ask_for_the_same_seconds_steps_share_and_tolerance(of):
    assert getattr(steady_states, f"LEAST_{of}") == getattr(level, f"HELD_{of}")
    assert steady_states.TOLERANCE == level.LEVEL_TOLERANCE


@pytest.mark.parametrize(
    ("shape", "mean"),
    [
        (switching(0.03, (5.0, 5.0)), 1.015),
        (switching(0.03, (20.0, 20.0)), 1.015),
        (correlated(0.9, 0.02), 1.0),
        (correlated(0.98, 0.02), 1.0),
        (pink(0.01), 1.0),
    ],
)
def test_ending_when_the_level_has_held_moves_no_mean_by_a_fifth_of_a_percent(shape, mean):
    rng = np.random.default_rng(5)
    kept = [np.mean(until_held(rng, shape, LEAST, MOST).values()) for _ in range(200)]
    assert abs(np.mean(kept) / (1e6 * step_series.STEP_SECONDS * mean) - 1) < 0.002
