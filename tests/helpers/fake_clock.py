"""Runs the telemetry over what a stand-in tells, on a clock that only its own waiting moves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.gpu import nvidia
from harness.telemetry import sampler
from tests.helpers.card_traces import ENERGY, OWN, SECONDS, STEADY, CardTrace
from tests.helpers.fake_nvml import CARD, FakeNvml


class Clock:
    """Stands in for the module time; `moved` is called with the whole seconds that have passed."""

    def __init__(self, moved: Any) -> None:
        self._now = 1000.0
        self._moved = moved

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        self._now += seconds
        self._moved(int(self._now - 1000.0 + 1e-6))


class TraceClock(Clock):
    """Moves a stand-in driver along."""

    def __init__(self, driver: Any) -> None:
        def moved(seconds: int) -> None:
            driver.at = seconds

        super().__init__(moved)
        driver.at = 0


class Family:
    """Which process ids are the trial's."""

    unknown_because = None

    def __init__(self, *pids: int) -> None:
        self._pids = set(pids)

    def among(self, pids: set[int]) -> set[int]:
        return pids & self._pids


def driver(trace: CardTrace) -> FakeNvml:
    """The stand-in driver of a trace; an energy counter that it has rises by 300 J a second."""
    now = {**CARD, **STEADY, **trace.card}
    first, ticks = dict(now), []
    for second in range(SECONDS + 2):
        now |= trace.changes.get(second, {})
        ticks.append([dict(now)])
        if isinstance(now[ENERGY], int):
            now[ENERGY] += 300_000
    return FakeNvml([first], ticks)


class AfterSeconds(sampler.Ending):
    """Ends when a number of seconds has passed, and by no signal: those are for the process of all tests."""

    def __init__(self, seconds: int) -> None:
        self.why, self._seconds = None, seconds

    def look(self, seconds: float) -> str | None:
        self.why = "stopped" if seconds >= self._seconds else None
        return self.why


def watch(cards: Any, path: Path, clock: Clock, *own: int, seconds: int = SECONDS) -> None:
    """Writes to `path` what cards tell on a clock, beside a trial of the processes `own`."""
    ending = AfterSeconds(seconds)
    with path.open("w") as out:
        sampler.sample_until_end(out, sampler.Sampler(cards, Family(*own)), 1.0, ending, clock)


def replay(trace: CardTrace, path: Path) -> None:
    """Writes the telemetry of a trace to `path`, beside a trial of process 100."""
    nvml = driver(trace)
    watch(nvidia.NvidiaCards(nvml, []), path, TraceClock(nvml), OWN["pid"])
