"""No answer yet: nothing of one's own on record, or all of it failed."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.analysis import Analysis
from report.charts.rows import KeyEntry, Mark, RowGroup, ScaleRow, ScaleRows
from report.page.filters import setting_words
from report.page.one.answering import FIRST
from report.page.parts.published import published_studies
from report.page.pictures import rows_picture
from report.page.values import AnswerPage, Chip, Picture, Sentence, Systems
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

MOST_CAUSES = 8
CHANGE_THE_PLAN = ("out-of-memory", "timeout")
"""Reasons to fail for which the plan has to change before it runs again."""
REACHED = ("start", "setup", "data", "train", "valid")
"""The stages of a trial that the picture shows; what comes after the last counts as it."""


def nothing_page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the published studies, where nothing of this machine is on record."""
    drawn, rows = published_studies(analysis, systems)
    return AnswerPage(
        headline=Sentence("nothing", {"rows": rows, "sessions": analysis.of_others}),
        picture=drawn.picture if drawn else None,
        template="nothing",
        table=rows,
        notes=(Sentence("published-sure"), Sentence("what-can-be-judged"), Sentence("other-records")),
        following=Sentence("next-first", {"commands": (FIRST,)}),
        chips=(Chip("stop", "no-records"), Chip("care", "published-once", "published")),
        unanswered=True,
    )


def failed_page(analysis: Analysis) -> AnswerPage:
    """Return how far each trial got, and why it ended, where none gave a figure."""
    own = analysis.leading_trials
    failures = [trial for trial in own if trial.failure is not None]
    alike = grouped_by(failures, lambda trial: trial.failure and (trial.failure.reason, trial.failure.stage))
    causes = sorted(map(tuple, alike.values()), key=len, reverse=True)[:MOST_CAUSES]
    reason = causes[0][0].failure.reason if causes and causes[0][0].failure else ""
    plan, changes = own[0].record.plan, reason in CHANGE_THE_PLAN
    look = () if changes else (f"invoke doctor --plan {plan}",)
    commands = (*look, f"invoke build --plan {plan} run report")
    invalid = sum(trial.verdict == "invalid" and not trial.failure for trial in own)
    return AnswerPage(
        headline=Sentence(
            "failed", {"count": len(failures), "of": len(own), "causes": causes, "invalid": invalid}
        ),
        picture=_picture(failures) if failures else None,
        template="failed",
        table=(causes, len(own)),
        notes=(Sentence("at-fault"), Sentence("what-is-lost"), Sentence("fails-again")),
        following=Sentence("next-failed", {"reason": reason, "changes": changes, "commands": commands}),
        chips=(Chip("stop", "nothing-measured", "ran"),),
        unanswered=True,
    )


def _picture(failures: Sequence[TrialResult]) -> Picture:
    works = grouped_by(
        failures,
        lambda trial: (trial.key.model, trial.key.precision, setting_words(trial.key, trial.stack.device)),
    )
    rows = []
    for (model, precision, under), trials in works.items():
        stages = [trial.failure.stage for trial in trials if trial.failure]
        reached = max(REACHED.index(stage) if stage in REACHED else len(REACHED) - 1 for stage in stages)
        reasons = dict.fromkeys(trial.failure.reason.replace("-", " ") for trial in trials if trial.failure)
        mark = Mark(reached + 1.0, look="failed")
        count = f"{len(trials)} of {len(trials)}"
        rows.append(
            ScaleRow(text.model_name(model), (mark,), f"{precision}{under}", ", ".join(reasons), count)
        )
    ticks = tuple((float(n), name) for n, name in enumerate(REACHED, 1))
    key = (KeyEntry("this machine, stopped there", "failed"),)
    chart = ScaleRows((RowGroup("", tuple(rows)),), "reached", key, reference=None, ticks=ticks)
    return rows_picture(chart, "stages", "stages")
