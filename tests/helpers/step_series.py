"""Step times of a trial, relative to their level, on devices that are not quiet."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy import signal

from harness.record import Series
from tests.helpers.workload_runner import module

clock = module("parts.timing.step_clock")

STEP_SECONDS = 0.1
Shape = Callable[[np.random.Generator, int], NDArray[np.float64]]
"""Draws so many steps, relative to 1."""


def drawn(rng: np.random.Generator, shape: Shape, seconds: float) -> Series:
    """Return a window of so many seconds as a workload records it, in whole microseconds."""
    return Series.from_microseconds(
        [max(1, round(1e6 * STEP_SECONDS * x)) for x in shape(rng, round(seconds / STEP_SECONDS))]
    )


def until_held(rng: np.random.Generator, shape: Shape, least: float, most: float) -> Series:
    """Return a window that ends where its level has held, looked at as the workload's clock does."""
    steps, seconds = drawn(rng, shape, most).values(), least
    while seconds < most and not clock.level_held(steps[: round(seconds / STEP_SECONDS)]):
        seconds += clock.LOOK_EVERY_SECONDS
    return Series.from_microseconds(steps[: round(min(seconds, most) / STEP_SECONDS)])


def normal(cv: float = 0.01) -> Shape:
    return lambda rng, n: 1 + rng.normal(0, cv, n)


def heavy(df: int = 3, cv: float = 0.02) -> Shape:
    """Steps whose logarithms follow Student's t."""
    return lambda rng, n: np.exp(cv * rng.standard_t(df, n))


def correlated(rho: float, cv: float) -> Shape:
    """AR(1): each step depends on the one before it."""

    def shape(rng, n):
        noise = rng.normal(0, cv * np.sqrt(1 - rho**2), n + 200)
        return 1 + signal.lfilter([1], [1, -rho], noise)[200:]

    return shape


def pink(cv: float) -> Shape:
    """1/f noise: the slower a change, the larger."""

    def shape(rng, n):
        frequencies = np.fft.rfftfreq(4 * n)
        frequencies[0] = np.inf
        parts = rng.normal(size=frequencies.size) + 1j * rng.normal(size=frequencies.size)
        values = np.fft.irfft(parts / np.sqrt(frequencies), 4 * n)
        return 1 + cv * values[:n] / values.std()

    return shape


def switching(by: float, dwells: tuple[float, float], cv: float = 0.01) -> Shape:
    """Two levels in turn, the second higher by `by`; each lasts for an exponential time, by its mean."""

    def shape(rng, n):
        levels, second = np.empty(n), bool(rng.random() < dwells[1] / sum(dwells))
        place = 0
        while place < n:
            stop = place + max(1, round(rng.exponential(dwells[second]) / STEP_SECONDS))
            levels[place:stop] = 1 + by * second
            place, second = stop, not second
        return levels * normal(cv)(rng, n)

    return shape


def ramp(by: float, cv: float = 0.01) -> Shape:
    """An exponential rise that is over after half of the window."""
    return lambda rng, n: normal(cv)(rng, n) * (1 + by * (1 - np.exp(-6 * np.arange(n) / n)))


def stepped(by: float, share: float, cv: float = 0.01) -> Shape:
    """Another level from this share of the window on."""
    return lambda rng, n: normal(cv)(rng, n) * np.where(np.arange(n) < share * n, 1, 1 + by)


def bursts(share: float, times: float, cv: float = 0.01) -> Shape:
    """A share of the steps takes several times as long."""
    return lambda rng, n: normal(cv)(rng, n) * np.where(rng.random(n) < share, times, 1)
