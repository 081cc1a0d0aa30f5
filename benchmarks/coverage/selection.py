"""Runs that are left out of a line, and durations that are projected: neither may move what is said."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.coverage.cases import SLOW_DRAWS, Case, Draw, Generator, Target
from benchmarks.coverage.intervals import page
from benchmarks.coverage.lines import line, template
from benchmarks.coverage.samples import CV, runs
from benchmarks.coverage.series import (
    STEP_SECONDS,
    Shape,
    bursts,
    drawn,
    heavy,
    normal,
    stops,
    switching,
    until_held,
)
from harness.record import Protocol, Summary, Window
from harness.summary.statistics import summarise
from report.compare.cells import cell_ratio
from report.stats.intervals import blocks_interval, rare_runs_missed
from report.text import percent

HOLDS = Target(92)
PROTOCOL = Protocol(steps_per_epoch=10_000, epochs=10, valid_batches=0, complete=False, stopped_by="steps")


def disturbed(share: float, slow: float, n: int, *, both: bool = False) -> Case:
    """Runs that a neighbour slows do not settle; what is asked is the ratio over all runs."""

    def draw(rng: Generator) -> Draw:
        cells = []
        for side in range(2):
            hit = (rng.random(n) < share) & (both or side == 0)
            values = np.exp(rng.normal(0, CV, n) + math.log1p(slow) * hit)
            verdicts = ["unproven" if unsettled else "valid" for unsettled in hit]
            precision = ("fp32-ieee", "amp-fp16")[side]
            cells.append(line(runs(values, (n,)), verdicts=verdicts, precision=precision))
        of, over = cells
        ratio = cell_ratio(of, over, "seconds")
        truth = 1.0 if both else math.exp(share * math.log1p(slow))
        return page(ratio.interval if ratio else None, truth)

    arms = "either arm" if both else "one arm"
    return Case(
        f"{percent(share)} of {arms}'s runs slow by {percent(slow)} and unproven, n = {n}", HOLDS, draw
    )


def _summary(rng: Generator, shape: Shape, seconds: float) -> Summary:
    """Of a trial that has these steps and no more."""
    steps = drawn(rng, shape, seconds)
    window = Window(seconds=sum(steps.values()) / 1e6, steps=steps.count, samples=700 * steps.count)
    others = {"input_us": None, "device_us": None, "protocol": PROTOCOL}
    measurement = template(0).trials[0].record.measurement
    assert measurement is not None
    return summarise(measurement.model_copy(update={"step_us": steps, "window": window, **others}))


def stopped(name: str, shape: Shape, seconds: float, *, taken_for: str) -> Case:
    """A window in which something stood still, or nothing did, and what it must not be `taken_for`."""

    def draw(rng: Generator) -> Draw:
        return Draw(_summary(rng, shape, seconds).verdict == taken_for)

    return Case(f"{name}, {seconds:.0f} s: '{taken_for}'", Target(high=3), draw, SLOW_DRAWS)


def projected(name: str, shape: Shape, mean: float, n: int) -> Case:
    """A protocol's duration projected from windows of five minutes, against that of all its steps."""
    truth = STEP_SECONDS * mean * PROTOCOL.steps_per_epoch * PROTOCOL.epochs

    def seconds(rng: Generator) -> float:
        return _summary(rng, shape, 300).protocol_seconds or math.inf

    def draw(rng: Generator) -> Draw:
        return page(blocks_interval(runs(np.array([seconds(rng) for _ in range(n)]))), truth)

    return Case(f"a projected duration, {name}, n = {n}", HOLDS, draw, SLOW_DRAWS // 2)


def ended(name: str, shape: Shape, mean: float, n: int, *, rare: bool = False) -> Case:
    """Trials that end where their level has held: what is asked is the device's own mean.

    On `rare` slow times the page has a sentence.
    """
    doubt = rare and rare_runs_missed(n) is not None

    def draw(rng: Generator) -> Draw:
        windows = [until_held(rng, shape, 75, 300) for _ in range(n)]
        means = [sum(series.values()) / series.count / (1e6 * STEP_SECONDS) for series in windows]
        return page(blocks_interval(runs(np.array(means))), mean, doubt=doubt)

    return Case(f"windows that end by their level, {name}, n = {n}", HOLDS, draw, SLOW_DRAWS)


CASES = [
    ended("clocks that toggle by 3 %, 5 s each", switching(0.03, (5, 5)), 1.015, 5),
    ended("clocks that toggle by 3 %, 20 s each", switching(0.03, (20, 20)), 1.015, 5),
    ended("a neighbour, 10 s on and 100 s off, × 1.5", switching(0.5, (100, 10)), 1 + 0.5 / 11, 5, rare=True),
    *(disturbed(0.3, 0.03, n) for n in (5, 10)),
    disturbed(0.4, 0.05, 10),
    disturbed(0.3, 0.03, 10, both=True),
    projected("1 step in 200 ten times as long", bursts(0.005, 10), 1.045, 5),
    projected("1 step in 1,000 ten times as long", bursts(0.001, 10), 1.009, 5),
    projected("clocks that toggle by 3 %, 5 s each", switching(0.03, (5, 5)), 1.015, 5),
    *(stopped("one stop of 60 s", stops(1, 60), 75, taken_for=word) for word in ("valid", "warn")),
    stopped("4 stops of 2 s", stops(4, 2), 75, taken_for="valid"),
    stopped("one stop of 15 s", stops(1, 15), 300, taken_for="valid"),
    stopped("normal steps, CV 1 %", normal(), 75, taken_for="warn"),
    stopped("tails of Student's t with 3 degrees", heavy(), 75, taken_for="warn"),
    stopped("1 step in 200 ten times as long", bursts(0.005, 10), 300, taken_for="unproven"),
]
