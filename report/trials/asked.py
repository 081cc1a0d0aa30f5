"""What a page is asked: by its line, by the files and sessions that were named with it, or by its session."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import combinations

from harness.record import Factor, Question, Session
from report.trials.factors import FACTORS
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

WITHIN: tuple[Factor, ...] = ("side", "precision", "framework", "gpus", "loader", "batch", "model")
"""The order in which one session that names no question is searched for what it varied."""
AMONG: tuple[Factor, ...] = ("machine", "framework", "stack", "precision", "gpus", "loader", "batch", "model")
"""The order in which sessions that were named together are searched for what tells them apart."""


def question_of_session(
    session: Session | None, plans: Mapping[str, Question | None], trials: Sequence[TrialResult]
) -> Question:
    """Return what a session keeps, else what its second stack, its plan or its `trials` ask.

    `plans` has what each plan of the clone asks, by its name, for sessions from before they kept it.
    """
    if session is not None:
        if session.question is not None:
            return session.question
        if session.against is not None:
            return Question(kind="faster", by="stack")
        if asked := plans.get(session.plan):
            return asked
    if any(trial.is_card_check for trial in trials):
        return Question(kind="sound")
    if trials and all(trial.is_ceiling for trial in trials):
        return Question(kind="limits")
    return Question(kind="faster", by=next((factor for factor in WITHIN if _is_varied(trials, factor)), None))


def question_among(trials: Sequence[TrialResult], named: Sequence[str]) -> Question:
    """Return which of several sessions is faster, by the field that keeps them apart, else by machine."""
    sessions = grouped_by((trial for trial in trials if trial.session in named), lambda trial: trial.session)
    return Question(kind="faster", by=factor_apart([*sessions.values()]) or "machine")


def factor_apart(sides: Sequence[Sequence[TrialResult]]) -> Factor | None:
    """Return the first field of which two sides share no value; null where none keeps them apart."""

    def apart(factor: Factor) -> bool:
        values = [_factor_values(side, factor) for side in sides]
        return any(first.isdisjoint(second) for first, second in combinations(values, 2))

    return next(filter(apart, AMONG), None)


def _is_varied(trials: Sequence[TrialResult], factor: Factor) -> bool:
    """Return whether one work was run with several values; where its models are the sides, one protocol."""

    def work(trial: TrialResult) -> Hashable:
        return trial.key.workload, trial.key.protocol, factor == "model" or trial.key.model

    return any(len(_factor_values(members, factor)) > 1 for members in grouped_by(trials, work).values())


def _factor_values(trials: Sequence[TrialResult], factor: Factor) -> set[Hashable]:
    return {FACTORS[factor].values(trial) for trial in trials}
