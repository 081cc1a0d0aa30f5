"""Runs the telemetry over a replayed trace, on a clock that only its own waiting moves."""

from __future__ import annotations

import json
from argparse import Namespace
from pathlib import Path
from typing import Any

from harness.gpu import nvidia
from harness.telemetry import sampler
from tests.helpers import TESTS
from tests.helpers.fake_nvml import CARD, FakeNvml

TRACES = TESTS / "traces"


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


class OnlyCpu:
    """A processor that tells nothing."""

    missing: dict[str, str] = {}

    def sample(self) -> dict[str, Any]:
        return {"utilization_percent": None}


class Family:
    """Which process ids are the trial's."""

    unknown_because = None

    def __init__(self, *pids: int) -> None:
        self._pids = set(pids)

    def among(self, pids: set[int]) -> set[int]:
        return pids & self._pids


def trace(name: str) -> dict[str, Any]:
    """A trace file; each says of itself where it is from."""
    return json.loads((TRACES / f"{name}.json").read_text())


def driver(told: dict[str, Any]) -> FakeNvml:
    """The stand-in driver of a trace: its cards' values, what rises each second, and what changes when."""
    cards = [CARD | card for card in told["cards"]]
    for card in cards:
        for name in [name for name, value in card.items() if value == "not supported"]:
            del card[name]
    ticks, now = [], [dict(card) for card in cards]
    rates: list[dict[str, Any]] = [dict(rate) for rate in told.get("rates", [{} for _ in cards])]
    for second in range(told["seconds"] + 2):
        for change in (change for change in told.get("changes", []) if change["at"] == second):
            now[change["card"]] |= change.get("set", {})
            rates[change["card"]] |= change.get("rates", {})
        ticks.append([dict(card) for card in now])
        for card, rate in zip(now, rates, strict=True):
            _rise(card, rate)
    return FakeNvml(cards, ticks)


def _rise(card: dict[str, Any], rate: dict[str, Any]) -> None:
    for name, by in rate.items():
        if isinstance(by, dict):
            card[name] = {key: card[name][key] + by.get(key, 0) for key in card[name]}
        elif not isinstance(card.get(name), dict):
            card[name] = card.get(name, 0) + by


def replay(name: str, path: Path, *own: int, seconds: float | None = None) -> dict[str, Any]:
    """Writes the telemetry of a trace to `path`; gives the trace."""
    told = trace(name)
    nvml = driver(told)
    cards = nvidia.Cards(nvml, [])
    ending = sampler.Ending(Namespace(parent=None, stop_file=None, max_seconds=seconds or told["seconds"]))
    with path.open("w") as out:
        watching = sampler.Sampler(cards, OnlyCpu(), Family(*own))
        sampler.run(out, watching, 1.0, ending, TraceClock(nvml))
    return told
