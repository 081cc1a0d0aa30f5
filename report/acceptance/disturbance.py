"""Which invalid runs speak against the machine, and which only against where and when it was measured."""

from __future__ import annotations

import math

from harness.summary.checks import cause_name
from report.trials.trial import Trial

DISTURBANCES = frozenset(
    {"no-steady-state", "foreign-process", "clock", "mig-changed", "power-limit", "locked-clocks"}
)
"""Causes that a good card in other surroundings would not have."""

FAULTS = frozenset(
    {
        *("memory-error", "device-fault", "thermal-throttling", "power-brake", "hardware-slowdown"),
        *("precision", "not-finite", "collapsed"),
    }
)
"""Causes of the machine's own, whatever disturbed it besides."""

LEAST_LEFT = 0.75
"""Of the runs that are asked for: with fewer left undisturbed they are measured again."""


def fault(trial: Trial) -> str | None:
    """What makes an invalid run the machine's own failure; null where it was disturbed, or is not invalid."""
    if trial.verdict != "invalid":
        return None
    names = [cause_name(cause) for cause in trial.causes]
    own = [cause for cause, name in zip(trial.causes, names, strict=True) if name in FAULTS]
    if own or not DISTURBANCES.intersection(names):
        return next(iter(own or trial.causes), "no cause is on record")
    return None


def disturbed(trial: Trial) -> bool:
    """Whether a run is invalid by its surroundings alone: it is set aside, and fails no card."""
    return trial.verdict == "invalid" and fault(trial) is None


def enough(runs: int) -> int:
    """How many of the `runs` that are asked for have to be left undisturbed."""
    return math.ceil(LEAST_LEFT * runs)
