"""Lines of the page with drawn figures: one constructed trial, its values and verdicts replaced."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from benchmarks.report_scale import record_of
from harness.record.store import Stored
from report.compare.cells import Cell, cells_of
from report.compare.figures import Run, figure, left_out
from report.stats.intervals import Runs
from report.trials.trial import TrialResult, trial_of


@cache
def template(place: int) -> Cell:
    """A line of one trial on the machine of that number, each with a card of its own."""
    (cell,) = cells_of([trial_of(Stored(f"{place}.json", record_of(place, 0, 0.02)))])
    return cell


@cache
def _trial(place: int, block: int, verdict: str) -> TrialResult:
    trial = template(place).trials[0]
    record = trial.record.model_copy(update={"block": block})
    return replace(trial, record=record, verdict=verdict, findings=())


def line(seconds: Runs, *, place: int = 0, verdicts: Sequence[str] = (), **key: Any) -> Cell:
    """A line whose runs take these seconds, on the machine `place`; `key` has what its key differs in.

    Runs without verdicts are valid.
    """
    alike, count = template(place), len(seconds.values)
    judged = tuple(verdicts) or ("valid",) * count
    blocks = seconds.blocks or (1,) * count
    taken = [Run(*run) for run in zip(seconds.values, blocks, judged, strict=True)]
    rates = [run._replace(value=1 / run.value) for run in taken]
    without = left_out(judged, rates)
    return replace(
        alike,
        key=replace(alike.key, **key),
        trials=tuple(_trial(place, *each) for each in zip(blocks, judged, strict=True)),
        figures={
            **alike.figures,
            "seconds": figure(taken, without, in_blocks=True),
            "throughput": figure(rates, without, in_blocks=True),
        },
        takes_unproven="unproven" not in without and "unproven" in judged,
    )
