"""What a sensor that looks for 25 of every 100 ms makes of a training's energy, on constructed traces.

    python -m benchmarks.sensing   prints the table that docs/measuring.md holds

An A100 or H100 senses so (Yang et al., arXiv 2312.02741). A step takes 350 W for four fifths of its time and
150 W for the rest; where the sensor looks first in a step is random. Nothing here was measured on a device.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.telemetry.energy import SENSED_EVERY, keeps_pace

SENSED = 0.025
HIGH, LOW, HIGH_SHARE = 350.0, 150.0, 0.8
DRAWS = 1_000
SEED = 20_240_229

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class TrainingLoad:
    """Steps of a mean length in seconds, and their relative scatter."""

    step: float
    scatter: float

    @property
    def name(self) -> str:
        """Beside its figures."""
        pace = ", keeps pace" if keeps_pace(self.step) else ""
        return f"{1000 * self.step:.0f} ms, CV {self.scatter:.1%}{pace}"


LOADS = (
    TrainingLoad(0.037, 0.01),
    TrainingLoad(0.098, 0.01),
    TrainingLoad(0.1, 0.01),
    TrainingLoad(0.1, 0.001),
    TrainingLoad(0.2, 0.01),
    TrainingLoad(0.23, 0.01),
)
WAYS = ((1, 10.0), (1, 60.0), (1, 300.0), (4, 15.0), (5, 60.0))
"""Windows that start anew, and the seconds of each: one trial, one in four parts, five trials."""


def error(load: TrainingLoad, seconds: float, random: np.random.Generator) -> float:
    """Sensed joules ÷ true ones − 1 over one window, whole periods of the sensor."""
    count = int(1.1 * seconds / load.step) + 20
    steps = load.step * np.maximum(1 + load.scatter * random.standard_normal(count), 0.1)
    ends = np.cumsum(steps)
    times = np.sort(np.concatenate([ends - (1 - HIGH_SHARE) * steps, ends]))
    watts = np.where(np.arange(times.size - 1) % 2 == 0, LOW, HIGH)
    joules = np.concatenate([[0.0], np.cumsum(watts * np.diff(times))])
    begin = times[0] + load.step * (1 + random.random())
    periods = begin + np.arange(round(seconds / SENSED_EVERY)) * SENSED_EVERY
    sensed = np.interp(periods + SENSED, times, joules) - np.interp(periods, times, joules)
    true = np.interp(periods + SENSED_EVERY, times, joules) - np.interp(periods, times, joules)
    return float(sensed.sum() / SENSED * SENSED_EVERY / true.sum() - 1)


def nineteen_of_twenty(
    load: TrainingLoad, windows: int, seconds: float, draws: int, random: np.random.Generator
) -> float:
    """What 95 % of the means over `windows` windows are off by at most, either way."""
    errors = np.array([error(load, seconds, random) for _ in range(draws * windows)])
    return float(np.quantile(np.abs(errors.reshape(draws, windows).mean(axis=1)), 0.95))


def table(draws: int = DRAWS) -> str:
    """The error of each load in each way, as Markdown."""
    random = np.random.default_rng(SEED)
    head = [f"{windows} × {seconds:.0f} s" for windows, seconds in WAYS]
    lines = [
        f"What 95 % of {draws:,} simulated figures are off by at most, over windows that start anew:",
        "",
        "| steps | " + " | ".join(head) + " |",
        "| --- |" + " --- |" * len(head),
    ]
    for load in LOADS:
        off = [nineteen_of_twenty(load, *way, draws, random) for way in WAYS]
        lines.append(f"| {load.name} | " + " | ".join(f"{100 * value:.1f} %" for value in off) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
