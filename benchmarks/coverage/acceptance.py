"""The clause of an order: how often a good card fails and a slow one passes, beside what the page states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.coverage.cases import SLOW_DRAWS, Case, Draw, Generator, Target
from benchmarks.coverage.lines import line
from benchmarks.coverage.samples import CV, in_blocks, lognormal, scaled
from benchmarks.coverage.samples import runs as runs_of
from benchmarks.coverage.series import STEP_SECONDS, Shape, pink, switching, until_held
from harness.record import finding
from harness.summary.steady_state import steady_state
from report.acceptance.clause import SLOW, Clause, clause
from report.acceptance.delivery import judge
from report.comparisons.cells import Cell
from report.comparisons.units.spread import UnitSpread

AS_STATED = Target(stated=True)
POOL = 400
"""Trials of one shape that are drawn once, and chosen from."""


def delivered(
    name: str,
    lengths: Sequence[int],
    *,
    slow: float = 0.0,
    unit_cv: float | None = None,
    works: int = 1,
    cv: float = CV / 2,
) -> Case:
    """One machine is measured, the delivered one measured again; of another unit where a CV is given."""

    def draw(rng: Generator) -> Draw:
        models = [f"model {work}" for work in range(works)]
        units = rng.normal(0, unit_cv or 0.0, 2)
        ordered, got = (
            [
                line(scaled(in_blocks(rng, lengths, cv=cv), math.exp(unit) / (1 - less)), model=model)
                for model in models
            ]
            for unit, less in ((units[0], 0.0), (units[1], slow))
        )
        rule = clause(ordered, None if unit_cv is None else UnitSpread(unit_cv, given=True))
        assert rule is not None
        passed = all(result.passed for result in judge(rule, got))
        stated = _stated(rule, another=unit_cv is not None, slow=bool(slow))
        return Draw(passed if slow else not passed, stated is None, stated)

    return Case(f"{name}: {'slow passes' if slow else 'good fails'}", AS_STATED, draw)


def _stated(rule: Clause, *, another: bool, slow: bool) -> float | None:
    """What the clause says in percent; null where it states no chance."""
    chances = rule.another[0][1] if another else rule.same
    return None if chances is None else 100 * (chances.slow_passes if slow else chances.good_fails)


def both(
    name: str, lengths: Sequence[int], *, unit_cv: float | None = None, works: int = 1, cv: float = CV / 2
) -> list[Case]:
    """Either error of the rule."""
    return [delivered(name, lengths, slow=slow, unit_cv=unit_cv, works=works, cv=cv) for slow in (0.0, SLOW)]


@cache
def _trial(shape: Shape, number: int) -> tuple[float, str]:
    """Mean step, relative, and verdict of one of the shape's trials of 75 s, or more until its level held."""
    series = until_held(np.random.default_rng(number), shape, 75, 300)
    verdict = {"none": "invalid", "unproven": "unproven"}.get(steady_state(series).kind, "valid")
    return sum(series.values()) / series.count / (1e6 * STEP_SECONDS), verdict


def restless(name: str, shape: Shape, runs: int) -> Case:
    """A card whose step times never rest is measured, and measured again."""

    def side(rng: Generator) -> Cell:
        chosen = [_trial(shape, number) for number in rng.integers(POOL, size=runs).tolist()]
        seconds = runs_of(np.array([mean for mean, _ in chosen]) * lognormal(CV / 5)(rng, runs), (runs,))
        verdicts = [verdict for _, verdict in chosen]
        found = [(finding("no-steady-state"),) if each == "invalid" else () for each in verdicts]
        return line(seconds, verdicts=verdicts, findings=found)

    def draw(rng: Generator) -> Draw:
        rule = clause([side(rng)])
        if rule is None:
            return Draw(False, True)
        (result,) = judge(rule, [side(rng)])
        stated = _stated(rule, another=False, slow=False)
        return Draw(result.passed is False, result.passed is None or stated is None, stated)

    return Case(f"{name}, {runs} trials: good fails", AS_STATED, draw, SLOW_DRAWS)


CASES = [
    *both("this very unit, 3 blocks of 4", (4, 4, 4)),
    *both("this very unit, 1 block of 5", (5,)),
    *both("this very unit, 3 blocks of 4, run CV 3 %", (4, 4, 4), cv=0.03),
    *both("another unit, CV 2 %, 3 blocks of 4", (4, 4, 4), unit_cv=0.02),
    *both("another unit, CV 4 %, 3 blocks of 4", (4, 4, 4), unit_cv=0.04),
    *both("another unit, CV 4 %, 1 block of 5", (5,), unit_cv=0.04),
    *both("another unit, CV 3 %, 4 works of 3 blocks of 4", (4, 4, 4), unit_cv=0.03, works=4),
    restless("clocks that toggle by 1 %", switching(0.01, (5, 5)), 20),
    restless("1/f noise, CV 2 %", pink(0.02), 20),
]
