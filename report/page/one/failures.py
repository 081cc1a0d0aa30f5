"""Page one where no trial gave a figure: how far each got, and one row a cause with what to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

from harness.record.result import Stage
from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.page.names import setting
from report.page.values import Picture
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

MOST_CAUSES = 8
REACHED = tuple(stage for stage in get_args(Stage) if stage in ("start", "setup", "data", "train", "valid"))
"""The stages of a trial that the picture shows; what comes after the last counts as it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Trials that failed alike: the template words `reason` and `stage`, `message` is the trial's own."""

    reason: str
    stage: str
    message: str
    trials: int


@dataclass(frozen=True, slots=True)
class Failures:
    """How far the trials got, and why they ended."""

    picture: Picture
    causes: tuple[Cause, ...]
    of: int


def failures(analysis: Analysis) -> Failures:
    """Of the leading session, none of whose trials gave a figure."""
    failed = [trial for trial in analysis.own if trial.failure is not None]
    ended = (trial.failure for trial in failed if trial.failure is not None)
    by_cause = grouped_by(ended, lambda failure: (failure.reason, failure.stage)).values()
    causes = [
        Cause(alike[0].reason, alike[0].stage, text.clean(alike[0].message, 160), len(alike))
        for alike in sorted(by_cause, key=len, reverse=True)
    ]
    return Failures(_picture(failed), tuple(causes[:MOST_CAUSES]), len(analysis.own))


def _picture(failed: list[TrialResult]) -> Picture:
    works = grouped_by(failed, lambda trial: (trial.key.model, trial.key.precision, setting(trial.key)))
    rows = []
    for (model, precision, under), trials in works.items():
        stages = [trial.failure.stage for trial in trials if trial.failure]
        reached = max(REACHED.index(stage) if stage in REACHED else len(REACHED) - 1 for stage in stages)
        reasons = dict.fromkeys(trial.failure.reason.replace("-", " ") for trial in trials if trial.failure)
        rows.append(
            Bar(
                text.model_name(model),
                "failed",
                reached + 1.0,
                text=", ".join(reasons),
                small=f"{len(trials)} of {len(trials)}",
                note=f"{precision}{under}",
            )
        )
    alt = "; ".join(f"{row.label} {row.note}: {row.text}" for row in rows)
    key = (KeyEntry("this machine, stopped there", "failed"),)
    ticks = tuple((float(n), name) for n, name in enumerate(REACHED, 1))
    chart = Bars((Group("", tuple(rows)),), "reached", key, reference=None, ticks=ticks)
    return Picture("stages", chart, alt, paper=True)
