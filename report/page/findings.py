"""Causes as the parts below show them: a name to count by, and a short label for a cell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.summary.checks import cause_name
from report import text
from report.trials.trial import Trial


def name_of(cause: str) -> str:
    """The name that equal causes share."""
    return cause_name(cause)


def label_of(cause: str) -> str:
    """At most five words."""
    return text.clean(cause_name(cause).replace("-", " "), 60)


def sentence_of(cause: str) -> str:
    """The whole clause."""
    return text.clean(cause, 160)


def counted(trials: Iterable[Trial], verdicts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How many of the trials with one of these verdicts each cause has met, the most frequent first."""
    wanted = set(verdicts)
    named = (
        label
        for trial in trials
        if trial.verdict in wanted
        for label in dict.fromkeys(map(label_of, trial.causes))
    )
    return tuple(Counter(named).most_common())


def caveat_of(caveat: str) -> str:
    """What is to be said with a cost."""
    return text.clean(caveat, 300)
