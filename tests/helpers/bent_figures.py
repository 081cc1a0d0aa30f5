"""Cases of what may bend a figure: ends of windows, lost runs, neighbours, units, seeds, energy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

from harness.record import Seeds, Series, finding
from harness.summary.steady_state import steady_state
from harness.telemetry.reader import EnergyReadings, trial_energy
from report.compare.card_units import unit_spreads
from report.compare.cells import Cell, cells_of, to_target
from report.stats.equivalence import seeds_bounded, seeds_hold
from report.stats.intervals import Runs
from report.trials.trial import TrialResult
from tests.helpers.claims_builder import KIND, series
from tests.helpers.coverage_case import SLOW_DRAWS, Case, Target
from tests.helpers.drawn_runs import trial_like
from tests.helpers.step_series import normal, switching
from tests.helpers.trial_tables import trials_of

STEP = 0.1
REFUSED = ("unproven", "none")
RARELY, SELDOM, NONE = Target("≤ 1", 0, 1), Target("≤ 5", 0, 5), Target("none")

Generator, Draw = np.random.Generator, tuple[bool, bool]
"""Whether the event came, and whether the page has a caveat."""


def _off(values: np.ndarray, truth: float, most: float) -> Draw:
    """Whether the figure counts and is further than `most` from the truth."""
    steady = steady_state(Series.from_microseconds([round(1e6 * STEP * value) for value in values]))
    mean = values[steady.first_step :].mean()
    refused = steady.kind in REFUSED
    return not refused and abs(mean / truth - 1) > most, refused


def ends(slow: bool) -> Case:
    """A window of which less than half, at its end, is 1.2 to 3 times as slow or fast."""

    def draw(rng: Generator) -> Draw:
        times = rng.uniform(1.2, 3) if slow else 1 / rng.uniform(1.2, 3)
        seconds = rng.choice([75, 120, 300, 600])
        end = rng.uniform(3, 0.48 * seconds)
        before, tail = round((seconds - end) / STEP), round(end / STEP / times)
        values = normal()(rng, before + tail) * np.repeat([1, times], [before, tail])
        return _off(values, values.mean(), most=0.03)

    words = "slow" if slow else "fast"
    return Case(f"a {words} end, up to 48 % of its window: counted and 3 % off", RARELY, draw, SLOW_DRAWS)


def neighbour(seconds: int) -> Case:
    """A neighbour of × 1.2 to × 3, 20 s on and 120 s off in the mean; the truth is the mean of all time."""

    def draw(rng: Generator) -> Draw:
        times = rng.uniform(1.2, 3)
        steps = (120.0, 20 / times)
        values = switching(times - 1, steps)(rng, round(seconds / STEP))
        return _off(values, 1 + (times - 1) * steps[1] / sum(steps), most=0.05)

    return Case(f"bursts of a neighbour, {seconds} s: counted and 5 % off", NONE, draw, SLOW_DRAWS)


def short_energy(rng: Generator) -> Draw:
    """20 segments of 5 s at 300 W, 4 s apart at 60 W, read every second."""
    begins = 5 + rng.uniform(0, 1) + np.arange(20) * 9.0
    edges = np.concatenate([[0.0], *([begin, begin + 5] for begin in begins), [190.0]])
    joules = np.concatenate([[0.0], np.cumsum(np.diff(edges) * np.resize([60.0, 300.0], edges.size - 1))])
    at = np.arange(0, 190.0)
    read = EnergyReadings(list(zip(at, np.interp(at, edges, joules), strict=True)), [])
    told = trial_energy([read], [(begin, begin + 5) for begin in begins], None)
    off = told.joules is not None and abs(told.joules / 30_000 - 1) > (told.band or 0)
    return off, told.joules is None


@cache
def learners() -> tuple[Cell, tuple[TrialResult, ...]]:
    """Three runs that learn, and the same whose loss is no number at the end."""
    kind = {**KIND, "quality": "accuracy", "epochs": 12}
    records = series(kind=kind, batch_size=512, repeats=3, first_order=1)
    (cell,) = cells_of(trials_of(records))
    nan = finding("not-finite", loss=float("nan"), step=99)
    return cell, tuple(replace(trial.with_findings(nan), verdict="invalid") for trial in cell.trials)


def one_nan(rng: Generator) -> Draw:
    """Three runs that reach 0.6 after some epochs, one of which ends in NaN before or after that."""
    cell, without = learners()
    trials = []
    for at, trial in enumerate(cell.trials):
        measured = trial.record.measurement
        assert measured is not None
        qualities = np.sort(rng.uniform(0.3, 0.9, len(measured.epochs)))
        epochs = tuple(
            epoch.model_copy(update={"quality": float(quality)})
            for epoch, quality in zip(measured.epochs, qualities, strict=True)
        )
        changed = measured.model_copy(update={"epochs": epochs})
        taken = without[at] if at == 0 else trial
        trials.append(replace(taken, record=trial.record.model_copy(update={"measurement": changed})))
    found = to_target(replace(cell, trials=tuple(rng.permutation(np.array(trials, dtype=object)))), 0.6)
    return found.reached == found.runs or found.epochs.mean is not None, False


def unequal_units(rng: Generator) -> Draw:
    """Eight machines of one processor model, four of them with half the cores; units differ by 1.5 %."""
    like, trials = trial_like(0, 1, "valid"), []
    for at in range(8):
        machine = like.record.machine
        cores, rate = 1 + at % 2, float((1, 1.68)[at % 2] * np.exp(rng.normal(0, 0.015)))
        cpu = machine.cpu.model_copy(update={"cores": cores, "threads": cores, "usable": cores})
        record = like.record.model_copy(
            update={
                "machine": machine.model_copy(update={"id": f"{at:012x}", "cpu": cpu}),
                "environment": like.record.environment.model_copy(update={"device": "cpu"}),
            }
        )
        trials.append(
            replace(like, record=record, summary=like.summary.model_copy(update={"throughput": rate}))
        )
    spread = unit_spreads(trials)[trials[0].card]
    return not spread.measured or spread.cv > 0.05, False


def seeds(n: int, times: float, *, equal: bool) -> Case:
    """Our seeds scatter so many times as the published pairs: bounds decided, or equalities that hold."""

    def draw(rng: Generator) -> Draw:
        spread = 0.01 * np.sqrt(rng.chisquare(8) / 8)
        ours, other = np.exp(rng.normal(0, 0.01 * times, n)), float(np.exp(rng.normal(0, 0.01)))
        told, runs = Seeds(spread=spread, pairs=8), Runs(tuple(ours))
        if equal:
            return seeds_hold([runs], told, other, 1e-6).state == "holds", False
        return seeds_bounded([runs], told, "less", 1.0).state != "open", False

    words = "a true equality: 'holds here'" if equal else "a bound at equality is decided"
    target = Target("≥ 94", 94) if equal else Target("≤ 10", 0, 10)
    return Case(f"own spread {times:g} × the published, {n} seeds: {words}", target, draw)


CASES = [
    ends(True),
    ends(False),
    *(neighbour(seconds) for seconds in (75, 300)),
    Case("energy of 20 × 5 s with pauses: told and outside its band", SELDOM, short_energy, SLOW_DRAWS),
    Case("one NaN of three runs: a time to the target is told", RARELY, one_nan, SLOW_DRAWS),
    Case("units of one and of two cores: their spread is above 5 %", RARELY, unequal_units, SLOW_DRAWS),
    *(seeds(n, 3, equal=False) for n in (2, 3, 5)),
    *(seeds(n, 1, equal=True) for n in (1, 2, 5, 10)),
]
