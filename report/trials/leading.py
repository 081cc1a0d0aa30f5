"""Which session a page leads with, and which earlier ones of its machine stand beside it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from report.trials.key import LOADER_ALONE, grouped_by
from report.trials.trial import PROVEN, TrialResult, most_proven

SELFCHECK = "selfcheck"
"""The plan that measures no work of a user's: it leads no page where there are others, and joins none."""


def leading_session(every: Sequence[TrialResult], own: Collection[str], *, named: bool) -> str | None:
    """The session to lead with: a self-check only where nothing else is.

    It is the newest of this machine's `own`: of the id that it bore last. Where these have no trial and the
    machine is `named`, it is one that trains and is mostly proven, else any; nothing is the newest of several
    machines: that with the most trials leads.
    """
    trials = [trial for trial in every if not trial.is_ceiling or trial.is_card_check]
    measured = [trial for trial in trials if trial.record.plan != SELFCHECK] or trials
    candidates = [trial for trial in measured if trial.session in own]
    if candidates:
        machine = max(candidates, key=lambda trial: trial.record.started_at).machine
        return _newest_session(trial for trial in candidates if trial.machine == machine)
    candidates = _of_proven_sessions(measured) if named else []
    candidates = candidates or measured
    if not candidates:
        return None
    of_machines = grouped_by(candidates, lambda trial: trial.machine)
    return _newest_session(
        of_machines[max(sorted(of_machines), key=lambda machine: len(of_machines[machine]))]
    )


def _newest_session(of_machine: Iterable[TrialResult]) -> str:
    return max(of_machine, key=lambda trial: trial.turn).session


def _of_proven_sessions(trials: Sequence[TrialResult]) -> list[TrialResult]:
    """The trials of those sessions that train, and in which most are proven."""
    found: list[TrialResult] = []
    for members in grouped_by(trials, lambda trial: trial.session).values():
        proven = sum(member.verdict in PROVEN for member in members)
        trains = any(member.key.protocol != LOADER_ALONE for member in members)
        found += members if trains and most_proven(proven, len(members) - proven) else []
    return found


def earlier_sessions(trials: Sequence[TrialResult], lead: str | None) -> frozenset[str]:
    """This machine's sessions before the leading one, on the same device: all its plans are one dossier."""
    leading = [trial for trial in trials if trial.session == lead]
    if any(trial.record.plan == SELFCHECK for trial in leading):
        return frozenset()
    places = {trial.place for trial in leading}
    until = max((trial.turn for trial in leading), default=0)
    return frozenset(
        trial.session
        for trial in trials
        if trial.turn <= until
        and trial.record.plan != SELFCHECK
        and trial.session != lead
        and trial.place in places
    )
