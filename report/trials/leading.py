"""Which session a page leads with, and which earlier ones of its machine stand beside it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from report.trials.key import grouped_by
from report.trials.trial import TrialResult

SELFCHECK = "selfcheck"
"""The plan that measures no work of a user's: it leads no page where there are others, and joins none."""


def leading_session(every: Sequence[TrialResult], own: Collection[str]) -> str | None:
    """The session to lead with: a self-check only where nothing else is.

    It is the newest of this machine's `own`: of the id that it bore last. Where these have no trial, it is
    that of the machine with the most trials, for nothing is the newest of several machines.
    """
    trials = [trial for trial in every if not trial.is_ceiling or trial.is_card_check]
    measured = [trial for trial in trials if trial.record.plan != SELFCHECK] or trials
    if not measured:
        return None
    mine = [trial for trial in measured if trial.session in own]
    of_machines = grouped_by(mine or measured, lambda trial: trial.machine)
    if mine:
        machine = max(mine, key=lambda trial: trial.record.started_at).machine
    else:
        machine = max(sorted(of_machines), key=lambda machine: len(of_machines[machine]))
    return max(of_machines[machine], key=lambda trial: trial.turn).session


def earlier_sessions(trials: Sequence[TrialResult], lead: str | None) -> frozenset[str]:
    """This machine's sessions before the leading one, on the same device: all its plans are one dossier."""
    leading = [trial for trial in trials if trial.session == lead]
    if any(trial.record.plan == SELFCHECK for trial in leading):
        return frozenset()
    places = {(trial.machine, trial.device_model) for trial in leading}
    until = max((trial.turn for trial in leading), default=0)
    return frozenset(
        trial.session
        for trial in trials
        if trial.turn <= until
        and trial.record.plan != SELFCHECK
        and trial.session != lead
        and (trial.machine, trial.device_model) in places
    )
