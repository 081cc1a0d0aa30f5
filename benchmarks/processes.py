"""Comparisons whose replicate is a fresh process, as overhead.py and programs.py make them.

Each process builds all sides and runs them in turn for a number of rounds fixed beforehand
(`interleaved.py`). It gives one ratio: of the first side's seconds to the second's, the mean of the middle
logarithms over its rounds, since a neighbour's burst makes one round many times as long. Every second process
builds and runs the sides in the opposite order. The interval is Student's over the processes' logarithms. The
control is the second side against an equal one of the same processes.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import stats

from report.stats.intervals import Interval, Runs, blocks_interval

ROOT = Path(__file__).resolve().parents[1]
LEAST = 5
"""Processes that an interval needs."""
PROCESSES = 6
"""Even, so that either order of the sides comes as often."""
CUT = 0.2
"""Of a process's rounds, from each end."""

KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""Of glibc, for all sides: else equal models have 763 or 2,245 page faults a step, as their arrays lie."""

FIRST, SECOND, CONTROL = "first", "second", "control"
Word = Literal["pass", "fail", "not shown"]


@dataclass(frozen=True, slots=True)
class Measured:
    """What one process gave: seconds of each side in each round."""

    what: str
    steps: int
    seconds: Mapping[str, Sequence[float]]

    def ratio(self, of: str, over: str) -> float:
        """The sides' ratio over this process's rounds."""
        logs = np.log(np.asarray(self.seconds[of]) / np.asarray(self.seconds[over]))
        return math.exp(float(stats.trim_mean(logs, CUT)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """One line: its processes, and the bounds inside which the ratio passes."""

    name: str
    processes: tuple[Measured, ...]
    bounds: tuple[float, float]
    seconds: float
    """That all of it took."""

    def interval(self, of: str = FIRST) -> Interval | None:
        """Of `of` over the second side, between processes; null of fewer than five."""
        if len(self.processes) < LEAST:
            return None
        return blocks_interval(Runs(tuple(measured.ratio(of, SECOND) for measured in self.processes)))

    @property
    def word(self) -> Word:
        """pass where the whole interval lies inside the bounds, fail where it lies outside."""
        interval = self.interval()
        if interval is None:
            return "not shown"
        low, high = self.bounds
        if low <= interval.low and interval.high <= high:
            return "pass"
        return "fail" if interval.high < low or interval.low > high else "not shown"

    @property
    def step_seconds(self) -> float:
        """Of the first side, the median of all rounds."""
        return float(np.median([np.asarray(one.seconds[FIRST]) / one.steps for one in self.processes]))

    def line(self) -> str:
        """The ratio in a sentence, its control, the verdict last."""
        interval, control = self.interval(), self.interval(CONTROL)
        count = f"{len(self.processes)} processes in {self.seconds:.0f} s"
        if interval is None or control is None:
            return f"{self.name}: too few, {count}: {self.word}"
        what = f"{self.processes[0].what}, {1000 * self.step_seconds:.0f} ms a step"
        return f"{self.name}, {what}: {shown(interval)}; control {shown(control)} ({count}): {self.word}"


def shown(interval: Interval) -> str:
    """'1.003 (0.996 to 1.010)'."""
    return f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"


def processes(
    name: str,
    child: Callable[[int, float], Measured | None],
    count: int,
    seconds: float,
    bounds: tuple[float, float],
) -> Comparison:
    """Starts `count` processes one after the other; none once the seconds are over.

    `child` takes the process's number and the seconds that it may take, and gives null where it took longer.
    """
    began = time.monotonic()
    measured = []
    for number in range(count):
        left = seconds - (time.monotonic() - began)
        process = child(number, left) if left > 0 else None
        if process is None:
            break
        measured.append(process)
    return Comparison(name, tuple(measured), bounds, time.monotonic() - began)


def run_module(
    python: Path, module: str, arguments: Sequence[str], seconds: float, variables: Mapping[str, str]
) -> Measured | None:
    """A module of the benchmarks in a process of its own; null where it took longer than the seconds."""
    paths = os.pathsep.join((str(ROOT), str(ROOT / "workloads")))
    try:
        done = subprocess.run(
            [python.absolute(), "-B", "-m", module, *arguments],
            cwd=ROOT,
            env={**os.environ, **variables, "PYTHONPATH": paths},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"{module} {' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return Measured(**json.loads(done.stdout.splitlines()[-1]))
