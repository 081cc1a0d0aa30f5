"""The field in which sides differ: what each side is, which one tells trials apart, and what that asks."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from types import MappingProxyType

from harness.record import PRECISION_ORDER, Factor, Question, Session
from report.trials.key import FRAMEWORK, PARALLEL, SIDE, VIRTUAL_RANKS, Pairs, grouped_by
from report.trials.trial import TrialResult

WITHIN: tuple[Factor, ...] = ("side", "precision", "framework", "gpus", "loader", "batch", "model")
"""The order in which one session that names no question is searched for what it varied."""
AMONG: tuple[Factor, ...] = ("machine", "framework", "stack", "precision", "gpus", "loader", "batch", "model")
"""The order in which sessions that were named together are searched for what tells them apart."""

_ONE_SESSION = ("session", "machine", "device_model", "stack")


@dataclass(frozen=True, slots=True)
class FactorRule:
    """How a factor makes sides of trials."""

    values: Callable[[TrialResult], Pairs]
    """A trial's side, by the values that tell it from others."""
    free: tuple[str, ...] = ()
    """Fields of the key that are the factor."""
    within: tuple[str, ...] = ()
    """Attributes of a trial that sides share besides their work."""
    order: Callable[[Pairs], tuple[object, ...]] | None = None
    """Sorts the sides as they were asked for; null where the data choose which one leads."""
    splits: bool = False
    """Whether repeats of one variant may be of several sides."""
    explains: tuple[str, ...] = ()
    """Terms besides `free` that follow from the factor."""


def _field_values(*names: str) -> Callable[[TrialResult], Pairs]:
    def values(trial: TrialResult) -> Pairs:
        options = dict(trial.key.options)
        found = ((name, getattr(trial.key, name, options.get(name))) for name in names)
        return tuple((name, value) for name, value in found if value is not None)

    return values


def _rising_order(values: Pairs) -> tuple[object, ...]:
    """Numbers by their size; a side that lacks a value goes before one that has it."""
    return tuple((name, value if isinstance(value, int | float) else 0, str(value)) for name, value in values)


def _precision_order(values: Pairs) -> tuple[object, ...]:
    return tuple(PRECISION_ORDER.index(value) for _, value in values)


def _stack_values(trial: TrialResult) -> Pairs:
    environment, lock, variables = trial.record.trial.asked.stack
    return ("environment", environment), ("lock", lock), *variables


def _framework_values(trial: TrialResult) -> Pairs:
    """A framework, with the way of its devices; how devices alone share a step is no framework."""
    values = _field_values(FRAMEWORK, PARALLEL)(trial)
    return values if FRAMEWORK in dict(values) else ()


def _side_values(trial: TrialResult) -> Pairs:
    return ((SIDE, trial.record.trial.asked.variant.options.get(SIDE)),)


FACTORS: Mapping[Factor, FactorRule] = MappingProxyType(
    {
        "machine": FactorRule(lambda trial: (("machine", trial.machine), ("card", trial.device_model))),
        "unit": FactorRule(
            lambda trial: (("unit", trial.device_unit),), within=("device_model",), splits=True
        ),
        "precision": FactorRule(_field_values("precision"), ("precision",), _ONE_SESSION, _precision_order),
        "framework": FactorRule(
            _framework_values,
            (f"options.{FRAMEWORK}", f"options.{PARALLEL}"),
            ("machine", "device_model"),
            explains=("software",),
        ),
        "stack": FactorRule(
            _stack_values,
            within=("session", "machine", "device_model"),
            order=lambda values: (),  # as they were measured
            explains=("software",),
        ),
        "gpus": FactorRule(
            _field_values("gpus", PARALLEL),
            ("gpus",),
            ("session", "device_model", "stack"),
            _rising_order,
            explains=(PARALLEL, "nodes"),
        ),
        "batch": FactorRule(
            _field_values("batch_size", VIRTUAL_RANKS),
            ("batch_size", f"options.{VIRTUAL_RANKS}"),
            _ONE_SESSION,
            _rising_order,
        ),
        "loader": FactorRule(
            _field_values("data_mode", "loader", "workers"),
            ("data_mode", "options.loader", "options.workers"),
            _ONE_SESSION,
            _rising_order,
        ),
        "model": FactorRule(_field_values("model"), ("model",), _ONE_SESSION),
        "side": FactorRule(_side_values, (), _ONE_SESSION, _rising_order, splits=True),
    }
)


def measured_loaders(trials: Iterable[TrialResult]) -> FactorRule:
    """Return the rule by which loaders are compared: one that a plan leaves to the default, and asks by name
    elsewhere, is one side.
    """
    rule = FACTORS["loader"]
    sides: dict[str, Pairs] = {}
    for trial in trials:
        if used := loader_of(trial):
            sides[used] = min(sides.get(used, rule.values(trial)), rule.values(trial), key=len)
    return replace(rule, values=lambda trial: sides.get(loader_of(trial)) or rule.values(trial))


def loader_of(trial: TrialResult) -> str:
    """Return the loader as it was measured: 'torch.utils.data, processes: 6'; empty where it is not known."""
    measured = trial.record.measurement
    return (measured.framework.loader or "") if measured and measured.framework else ""


def among_sessions(factor: Factor) -> FactorRule:
    """Return the rule by which several sessions are compared: a machine is a side in each of them."""
    rule = FACTORS[factor]
    within = tuple(name for name in rule.within if name != "session")

    def machine(trial: TrialResult) -> Pairs:
        return *rule.values(trial), ("session", trial.session)

    return replace(rule, within=within, values=machine if factor == "machine" else rule.values)


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
