"""Which invalid runs speak against the machine, and which only against where and when it was measured."""

from __future__ import annotations

import math

from harness.record import Finding, finding
from harness.record.finding import fault as fault_of
from report.trials.trial import TrialResult

LEAST_LEFT = 0.75
"""Of the runs that are asked for: with fewer left undisturbed they are measured again."""


def fault(trial: TrialResult) -> Finding | None:
    """What makes an invalid run the machine's own failure; null where it is disturbed, or not invalid.

    A run that gives no reason is the machine's.
    """
    if trial.verdict != "invalid":
        return None
    grave = [found for found in trial.findings if found.severity == "invalid"]
    own = (found for found in grave if fault_of(found) == "machine")
    return next(own, None if grave else finding("unnamed"))


def disturbed(trial: TrialResult) -> bool:
    """Whether a run is invalid by its surroundings alone: it is set aside, and fails no card."""
    return trial.verdict == "invalid" and fault(trial) is None


def enough(runs: int) -> int:
    """How many of the `runs` that are asked for have to be left undisturbed."""
    return math.ceil(LEAST_LEFT * runs)
