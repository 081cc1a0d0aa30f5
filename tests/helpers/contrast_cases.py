"""Cases of a contrast: throughputs of processes in windows that neighbours, clocks and hours disturb.

All draws of a case are drawn at once; the product judges each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from types import SimpleNamespace

import numpy as np
from numpy.typing import NDArray

from report.compare.ratio import assumptions
from report.stats.contrast import contrast_interval
from report.stats.intervals import Runs
from tests.helpers.coverage_case import Case, Flags, Target

DRAWS = 10_000
WRONG, NONE = Target("≤ 5", 0, 5), Target("none")
ON, OFF = 20.0, 120.0
"""Mean seconds of a neighbour's burst and of the pause after it."""

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Draws the logarithm of each process's throughput."""


def normal(cv: float) -> Noise:
    return lambda rng, shape: rng.normal(0, cv, shape)


def student(cv: float) -> Noise:
    return lambda rng, shape: cv / np.sqrt(3) * rng.standard_t(3, shape)


def skewed(cv: float) -> Noise:
    """A highest throughput and an exponential tail below it."""
    return lambda rng, shape: -cv * rng.exponential(1, shape)


def switching(seconds: float, dwells: tuple[float, float], times: float, cv: float = 0.005) -> Noise:
    """Means over windows in which a speed that is `times` as slow comes and goes for exponential times.

    `dwells` are the mean seconds of the first speed and of the other one.
    """
    changes = 8 + 2 * int(4 * seconds / sum(dwells))

    def logs(rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        slow_first = rng.random(shape) < dwells[1] / sum(dwells)
        slow = slow_first[..., None] ^ (np.arange(changes) % 2 == 1)
        lengths = rng.exponential(np.where(slow, dwells[1], dwells[0]))
        ends = np.minimum(np.cumsum(lengths, axis=-1), seconds)
        spent = np.diff(ends, axis=-1, prepend=0.0)
        share = (spent * slow).sum(axis=-1) / spent.sum(axis=-1)
        return np.log1p(share * (1 / times - 1)) + rng.normal(0, cv, shape)

    return logs


def cell_like(**changes):
    """What a range asks of a cell: here one of a processor that settled, in one block."""
    found = {"machine": "a", "session": "one", "device": "cpu", "blocks": 1, "settled": True, **changes}
    return SimpleNamespace(**found, stack=SimpleNamespace(device=found["device"]))


def contrast(
    name: str,
    noise: Noise,
    n: int,
    target: Target,
    *,
    hours: float,
    machines: int = 1,
    settled: bool = True,
    truth: float = 1.0,
    comparisons: int = 1,
) -> Case:
    """How often two sides of n processes in one hour are ordered; rightly where one is `truth` as fast.

    `hours` is the deviation by which an hour treats the two differently, or each of two machines.
    """
    first = cell_like(settled=settled)
    second = first if machines == 1 else cell_like(machine="b", session="two", settled=settled)
    assumed, block = assumptions(first, second, (None, None)), (1,) * n

    def ordered(of: list[float], over: list[float]) -> bool:
        found = contrast_interval(
            Runs(tuple(of), block),
            Runs(tuple(over), block),
            paired=machines == 1,
            assumed=assumed,
            comparisons=comparisons,
        )
        assert found is not None
        return found.low > 1 or (truth == 1 and found.high < 1)

    def draw_all(rng: np.random.Generator, draws: int) -> tuple[Flags, Flags]:
        logs = noise(rng, (draws, 2, n))
        hour = rng.normal(0, hours, (draws, 2, 1)) * (1 if machines > 1 else np.array([[[1], [0]]]))
        values = np.exp(logs + hour) * np.array([truth, 1.0])[:, None]
        events = np.array([ordered(*sides) for sides in values.tolist()])
        return events, np.zeros(draws, dtype=bool)

    return Case(name, target, draws=DRAWS, draw_all=draw_all)


@cache
def noises(seconds: float) -> dict[str, Noise]:
    """Six kinds of noise between processes whose windows last so long."""
    return {
        "CV 0.5 %": normal(0.005),
        "CV 3 %": normal(0.03),
        "tails of Student's t with 3 degrees, CV 2 %": student(0.02),
        "exponential skew, CV 2 %": skewed(0.02),
        "bursts of neighbours, × 1.5": switching(seconds, (OFF, ON), 1.5),
        "clocks that toggle by 3 %, 5 s each": switching(seconds, (5.0, 5.0), 1.03),
    }


def side_by_side() -> Iterator[Case]:
    for n in (3, 5):
        for seconds in (5, 20, 75):
            for words, noise in noises(seconds).items():
                name = f"equal side by side, {words}, {seconds} s, n = {n}, an hour of 0.5 %: an order"
                yield contrast(name, noise, n, WRONG, hours=0.005)
    for n in (3, 5):
        name = f"equal side by side, CV 0.5 %, n = {n}, an hour of 1 %: an order"
        yield contrast(name, normal(0.005), n, NONE, hours=0.01)
    for pairs, n, least in ((1, 3, 93), (6, 3, 0), (6, 5, 95)):
        target = Target(f"≥ {least}", least) if least else NONE
        name = f"10 % faster side by side, CV 2 %, n = {n}, {pairs} pair{'s' * (pairs > 1)}: found"
        yield contrast(name, normal(0.02), n, target, hours=0.005, truth=1.1, comparisons=pairs)


def two_machines() -> Iterator[Case]:
    for n in (3, 5):
        for words, noise in noises(75).items():
            name = f"two equal machines, {words}, 75 s, n = {n}, hours of CV 2 %: an order"
            yield contrast(name, noise, n, WRONG, hours=0.02, machines=2)
        name = f"two equal machines, CV 0.5 %, n = {n}, hours of CV 3 %: an order"
        yield contrast(name, normal(0.005), n, NONE, hours=0.03, machines=2)
    for faster in (10, 15, 20):
        for hours in (1, 2):
            for cv in (1, 3):
                target = Target("≥ 95", 95) if (faster, hours) == (20, 1) else NONE
                name = f"two machines, {faster} % faster, CV {cv} %, n = 3, hours of CV {hours} %: found"
                truth, spread = 1 + faster / 100, normal(cv / 100)
                yield contrast(name, spread, 3, target, hours=hours / 100, machines=2, truth=truth)
    for words, noise in noises(75).items():
        name = f"two processors, 20 % faster, {words}, 75 s, not settled, n = 3, hours of CV 1 %: found"
        yield contrast(name, noise, 3, NONE, hours=0.01, machines=2, settled=False, truth=1.2)


CASES = [*side_by_side(), *two_machines()]
