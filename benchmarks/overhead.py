"""What our measuring costs: our loop, with clock and telemetry, over a bare one.

    python -m benchmarks.overhead PYTHON [--minutes 20]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`. Both loops train ResNet-18 (`loops.py`).

The replicate is both loops in a fresh process. It gives one ratio: the mean of the middle logarithms over its
rounds, since a neighbour's burst makes one round many times as long. The interval is Student's over the
replicates' logarithms. As many replicates are made as the minutes hold; nothing is stopped early because of
what it shows. Where the interval is wider than ± 1.5 %, the line says in how many minutes it would not be.

Exits 1 where the interval lies wholly outside its bounds, and 3 where it is not yet narrow enough.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy import stats

from report.stats.intervals import Interval, Runs, blocks_interval

ROOT = Path(__file__).resolve().parents[1]
LEAST = 5
"""Replicates that an interval needs."""
CUT = 0.2
"""The share of a replicate's rounds that is left out at each end of their order."""
NARROW = 0.015
KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""glibc's, for both loops: else equal models have 763 or 2,245 page faults a step, as their arrays lie."""
MOST = 1.02
"""What the ratio may be at most."""


@dataclass(frozen=True, slots=True)
class SideSeconds:
    """The seconds that each side of one replicate took in each round."""

    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> float:
        """Our seconds over theirs."""
        rounds = min(len(self.ours), len(self.theirs))
        logs = np.log(np.asarray(self.ours[:rounds]) / np.asarray(self.theirs[:rounds]))
        return math.exp(float(stats.trim_mean(logs, CUT)))


@dataclass(frozen=True, slots=True)
class OverheadComparison:
    """The ratios of the replicates, and the seconds that they took together."""

    ratios: tuple[float, ...]
    seconds: float

    @property
    def interval(self) -> Interval | None:
        """The interval of the ratio between replicates; None of fewer than five."""
        return blocks_interval(Runs(self.ratios)) if len(self.ratios) >= LEAST else None

    @property
    def exit_code(self) -> int:
        """1 where the ratio lies outside its bounds, 3 where its interval is too wide to say, else 0."""
        interval = self.interval
        if interval is None:
            return 3
        if interval.low > MOST:
            return 1
        return 3 if half_width(interval) > NARROW else 0

    def line(self) -> str:
        """The ratio in a sentence, and what more time would give where it is not narrow enough."""
        took = f"{len(self.ratios)} replicates in {self.seconds / 60:.0f} min"
        interval = self.interval
        if interval is None:
            return f"not shown by {took}; {LEAST} are needed, so give it more --minutes"
        shown = f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"
        if self.exit_code != 3:
            return f"{shown}, {took}: {'within' if not self.exit_code else 'outside'} its bounds"
        # An interval narrows as the root of the replicates' number.
        minutes = self.seconds / 60 * (half_width(interval) / NARROW) ** 2
        return f"{shown}, {took}: ± {100 * NARROW:g} % would take about {minutes:.0f} min"


def half_width(interval: Interval) -> float:
    """Return how far an interval reaches from its estimate, as a share of that."""
    return max(interval.high / interval.estimate, interval.estimate / interval.low) - 1


def compared(replicate: Callable[[float], SideSeconds | None], seconds: float) -> OverheadComparison:
    """Make replicates one after the other; none once the seconds are over.

    `replicate` is given the seconds that it may take, and gives None where it took longer.
    """
    began, ratios = time.monotonic(), []
    while (left := seconds - (time.monotonic() - began)) > 0 and (measured := replicate(left)):
        ratios.append(measured.ratio)
        print(f"… {len(ratios)}: {measured.ratio:.3f}", file=sys.stderr, flush=True)
    return OverheadComparison(tuple(ratios), time.monotonic() - began)


def loops(python: Path, left: float) -> SideSeconds | None:
    """Run our loop and the bare one in turn in a fresh process."""
    argv = [python.absolute(), "-B", "-m", "benchmarks.loops", "--host", sys.executable]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "workloads")))
    environ = {**os.environ, **KEEP_FREED_MEMORY, "PYTHONPATH": paths}
    try:
        done = subprocess.run(
            argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"benchmarks.loops failed:\n{done.stderr[-2000:]}")
    return SideSeconds(**json.loads(done.stdout.splitlines()[-1]))


def main(arguments: Sequence[str]) -> int:
    """Return the exit code."""
    parser = argparse.ArgumentParser(description="What our measuring costs, over a bare loop.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--minutes", type=float, default=20.0)
    given = parser.parse_args(arguments)
    print(f"this takes {given.minutes:g} minutes", file=sys.stderr, flush=True)
    comparison = compared(partial(loops, given.python), 60 * given.minutes)
    print(comparison.line())
    return comparison.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
