"""Findings of trials counted as the parts below show them: a short label each, and how many have it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from harness.record.finding import label
from report.trials.trial import Trial


def counted(trials: Iterable[Trial], verdicts: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """How many of the trials with one of these verdicts each cause has met, the most frequent first."""
    wanted = set(verdicts)
    named = (
        words
        for trial in trials
        if trial.verdict in wanted
        for words in dict.fromkeys(map(label, trial.causes))
    )
    return tuple(Counter(named).most_common())
