"""Runs that are left out of a line, and durations that are projected: neither may move what is said."""

from __future__ import annotations

import math
import random
from functools import cache

import numpy as np

from benchmarks.coverage.cases import SLOW_DRAWS, Case, Draw, Generator, Target
from benchmarks.coverage.intervals import page
from benchmarks.coverage.lines import line
from benchmarks.coverage.samples import CV, runs
from benchmarks.coverage.series import STEP_SECONDS, Shape, bursts, drawn, normal, switching
from benchmarks.report_scale import machine, record_of, session_of
from harness.record import Measurement, Protocol, Window
from harness.summary.statistics import summarise
from report.comparisons.cells import cell_ratio
from report.text import percent

HOLDS = Target(92)
MOST_OFF = 0.01
"""Of a projected duration."""
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
        ratio = cell_ratio(*cells, "seconds")
        truth = 1.0 if both else math.exp(share * math.log1p(slow))
        return page(ratio and ratio.interval, truth)

    arms = "either arm" if both else "one arm"
    return Case(
        f"{percent(share)} of {arms}'s runs slow by {percent(slow)} and unproven, n = {n}", HOLDS, draw
    )


@cache
def _measurement() -> Measurement:
    host = machine(0)
    measurement = record_of(session_of(0, host), host, 0, random.Random(1), 0.02).measurement
    assert measurement is not None
    return measurement


def projected(name: str, shape: Shape, mean: float) -> Case:
    """A protocol's duration from a window of five minutes, against that of all its steps."""

    def draw(rng: Generator) -> Draw:
        steps = drawn(rng, shape, 300)
        template = _measurement()
        window = Window(seconds=sum(steps.values()) / 1e6, steps=steps.count, samples=700 * steps.count)
        measured = template.model_copy(
            update={
                "step_us": steps,
                "window": window,
                "input_us": None,
                "device_us": None,
                "protocol": PROTOCOL,
            }
        )
        summary = summarise(measured)
        truth = STEP_SECONDS * mean * PROTOCOL.steps_per_epoch * PROTOCOL.epochs
        off = abs((summary.protocol_seconds or math.inf) / truth - 1)
        return Draw(off <= MOST_OFF, bool(summary.causes or summary.notes))

    return Case(f"projected within {percent(MOST_OFF)}: {name}", Target(95), draw, SLOW_DRAWS)


CASES = [
    *(disturbed(0.3, 0.03, n) for n in (5, 10)),
    disturbed(0.4, 0.05, 10),
    disturbed(0.3, 0.03, 10, both=True),
    projected("normal steps", normal(), 1.0),
    projected("1 step in 200 ten times as long", bursts(0.005, 10), 1.045),
    projected("1 step in 1,000 ten times as long", bursts(0.001, 10), 1.009),
    projected("clocks that toggle by 3 %, 5 s each", switching(0.03, (5, 5)), 1.015),
]
