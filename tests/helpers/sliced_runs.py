"""Two programs that take turns on one device and start anew: what a look at their restarts says.

A machine drifts, heats up, has neighbours, and charges for a switch; a process is born fast or slow; a line
comes after every so many steps. All of it is drawn anew for each session.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from report.stats.own_figure import SLICED_LOOKS, SideRuns, answer_of
from tests.helpers.contrast_cases import OFF, ON
from tests.helpers.coverage_case import Case, Target
from workloads.parts.program.turns import RESTART_SECONDS, SLICE_SECONDS, WHOLE_LINES

STACK = ("image", None, ())
START_SECONDS = 12.0
SWITCH_SECONDS = 0.2
PAUSED_EVERY_SECONDS = 20.0
RARELY = Target("≤ 5", 0, 5)


class Nuisances(NamedTuple):
    """Shares of a step's time, or seconds: from what to what each is drawn, and what it was drawn as."""

    noise: tuple[float, float] = (0.005, 0.01)
    drift: tuple[float, float] = (0, 0.005)
    heat: tuple[float, float] = (0, 0)
    burst: tuple[float, float] = (0, 0)
    """By how much a neighbour slows a step."""
    pause: tuple[float, float] = (0, 0)
    """The seconds of what halts it now and then."""
    switch: tuple[float, float] = (0, 0.3)
    """By how much it is slower right after a switch."""
    hour: tuple[float, float] = (0.002, 0.002)
    """What this hour does to one side alone."""
    process: tuple[float, float] = (0.003, 0.003)


MACHINES = {
    "all nuisances": Nuisances(
        (0.005, 0.1), (0, 0.03), (0, 0.25), (0.3, 1.0), (0.05, 0.5), (0, 1), (0.002, 0.01), (0.002, 0.02)
    ),
    "bursts": Nuisances(burst=(0.3, 1.0)),
    "processes that differ by 2 to 5 %": Nuisances(process=(0.02, 0.05)),
    "quiet": Nuisances(),
}


class Hour:
    """An hour of one machine, drawn: how many times as long a step takes at a moment."""

    def __init__(self, rng: np.random.Generator, machine: Nuisances) -> None:
        self.rng = rng
        self.of = Nuisances(*(rng.uniform(*each) for each in machine))
        self.effect = rng.normal(0, self.of.hour)
        self.period, self.phase = rng.uniform(60, 900), rng.uniform(0, 2 * np.pi)
        self.warms = rng.uniform(30, 300)
        self.edges = np.cumsum(rng.exponential(np.tile([OFF, ON], 50)))

    def slowness(self, at):
        drift = 1 + self.of.drift * np.sin(2 * np.pi * at / self.period + self.phase)
        heat = 1 + self.of.heat * (1 - np.exp(-at / self.warms))
        return drift * heat * np.where(np.searchsorted(self.edges, at) % 2, 1 + self.of.burst, 1)

    def slice(self, begin: float, step: float, line: int) -> tuple[float, float, float]:
        """Return when a slice ends, and the steps and seconds of its lines after the first."""
        usual = self.slowness(np.array([begin]))[0] * step * line
        lines = 1 + max(WHOLE_LINES, int(np.ceil(SLICE_SECONDS / usual)))
        while True:
            count = line * lines
            at = begin + np.arange(count) * usual / line
            noise = self.rng.gamma(1 / self.of.noise**2, self.of.noise**2, count)
            switch = 1 + self.of.switch * np.exp((begin - at) / SWITCH_SECONDS)
            seconds = step * noise * switch * self.slowness(at)
            seconds += self.of.pause * (self.rng.random(count) < seconds / PAUSED_EVERY_SECONDS)
            ends = np.cumsum(seconds)[line - 1 :: line]
            enough = np.flatnonzero(ends >= SLICE_SECONDS)
            last = max(WHOLE_LINES, int(enough[0])) if enough.size else lines
            if last < lines:
                return begin + ends[last], line * last, ends[last] - ends[0]
            lines *= 2


def last_state(rng: np.random.Generator, machine: Nuisances, times: float, line: int) -> str:
    """Return the answer's state at the end of a session in which the second side takes `times` as long.

    Steps are as long as four slices fit between two restarts.
    """
    hour = Hour(rng, machine)
    most = min(0.5, RESTART_SECONDS / (4 * (WHOLE_LINES + 1) * line))
    step = np.exp(rng.uniform(np.log(min(0.02, most / 10)), np.log(most)))
    now, rates = 0.0, ([], [])
    for restart in range(1, SLICED_LOOKS[-1] + 1):
        now += START_SECONDS
        paces = step * np.exp(rng.normal(0, hour.of.process, 2)) * (1, times * np.exp(hour.effect))
        done, taken, began = np.zeros(2), np.zeros(2), now
        first = rng.integers(2)
        while now - began < RESTART_SECONDS:
            for side in (first, 1 - first, 1 - first, first):
                now, steps, seconds = hour.slice(now, paces[side], line)
                done[side] += steps
                taken[side] += seconds
            first = 1 - first
        for side in range(2):
            rates[side].append(float(done[side] / taken[side]))
        repeats = tuple(range(1, restart + 1))
        sides = [SideRuns("own", STACK, repeats, tuple(each), "step") for each in rates]
        found = answer_of(sides, 0.05, looks=SLICED_LOOKS)
        if found.is_enough:
            break
    return found.state


def cases():
    for name, machine in MACHINES.items():
        for line in (1, 10, 100):
            where = f"slices with restarts, {name}, a line each {line} steps"

            def wrong(rng, machine=machine, line=line):
                return last_state(rng, machine, 1.0, line) in ("faster", "slower"), False

            def found(rng, machine=machine, line=line):
                return last_state(rng, machine, 1.1, line) == "faster", False

            yield Case(f"{where}, equal: an order", RARELY, wrong, 2000)
            least = 60 if name == "all nuisances" else 90
            yield Case(f"{where}, 10 % faster: found", Target(f"≥ {least}", least), found, 2000)


CASES = [*cases()]
