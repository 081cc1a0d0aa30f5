"""Batch-size sweeps, refined by halving between the largest batch that fits and the smallest that does not.

Planned batch sizes double. Where one does not fit, the gap below it is halved down to steps of 8, or of 1
below 16, each try a fresh process of full length. What then fits is tried in every further repeat.

A plan that asks for one batch or what fits has it halved instead, until a trial ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from harness.record import Record, Session, TrialSpec
from harness.run.session import HALVING, last_attempts, ran_out_of_memory, sweep_key
from harness.summary.statistics import MOST_MEMORY_SHARE, reserved_share

FEWEST_BATCH_SIZES = 3
"""From so many batch sizes on, equal trials are a sweep: a fixed batch that does not fit is no search."""

COARSE = 8
FINE_BELOW = 16


def grow_sweeps(session: Session, records: Iterable[Record]) -> Session:
    """The session with the batch sizes that its sweeps need next, or itself; a pure function of both."""
    last_of = last_attempts(records)
    ids = {trial.id for trial in session.trials}
    halving = session.plan in HALVING
    groups = _group_by_sweep(session.trials) if halving else _sweeps(session.trials)
    new = [
        trial
        for group in groups.values()
        for trial in (_halve_batch if halving else _next_tries)(group, last_of)
        if trial.id not in ids
    ]
    return session.model_copy(update={"trials": (*session.trials, *new)}) if new else session


def replaced_trials(session: Session, records: Sequence[Record]) -> frozenset[str]:
    """Return the ids of trials whose batch did not fit and was replaced by a smaller one that did."""
    fitting = {sweep_key(record.trial) for record in records if record.measurement}
    return frozenset(
        record.trial.id
        for record in records
        if session.plan in HALVING and ran_out_of_memory(record) and sweep_key(record.trial) in fitting
    )


def is_between_batches(trial: TrialSpec, planned: Iterable[TrialSpec]) -> bool:
    """Whether a search may have put a trial between the batch sizes of a planned sweep."""
    sizes = [_batch_size(member) for member in _sweeps(planned).get(sweep_key(trial), [])]
    return bool(sizes) and min(sizes) < _batch_size(trial) < max(sizes)


def _batch_size(trial: TrialSpec) -> int:
    return trial.asked.variant.batch_size


def _group_by_sweep(trials: Iterable[TrialSpec]) -> dict[str, list[TrialSpec]]:
    groups: dict[str, list[TrialSpec]] = {}
    for trial in trials:
        groups.setdefault(sweep_key(trial), []).append(trial)
    return groups


def _sweeps(trials: Iterable[TrialSpec]) -> dict[str, list[TrialSpec]]:
    return {
        key: group
        for key, group in _group_by_sweep(trials).items()
        if len(set(map(_batch_size, group))) >= FEWEST_BATCH_SIZES
    }


def _halve_batch(group: Sequence[TrialSpec], last_of: Mapping[str, Record]) -> list[TrialSpec]:
    """Every repeat in half the smallest batch, where that did not fit."""
    smallest = min(map(_batch_size, group))
    tried = [trial for trial in group if _batch_size(trial) == smallest]
    if smallest == 1 or not any(ran_out_of_memory(last_of.get(trial.id)) for trial in tried):
        return []
    return [_resize_trial(trial, smallest // 2) for trial in tried]


def _next_tries(sweep: Sequence[TrialSpec], last_of: Mapping[str, Record]) -> list[TrialSpec]:
    """The next try of the first repeat; once nothing is left to try, the largest that fits in the others.

    None while every size fits, or none does, or one below the first too large was tried in no repeat.
    """
    outcomes: dict[bool | None, set[int]] = {True: set(), False: set(), None: set()}
    for trial in sweep:
        outcomes[_fits_memory(last_of.get(trial.id))].add(_batch_size(trial))
    too_large = min(outcomes[False], default=0)
    below = {size for size in set.union(*outcomes.values()) if size < too_large}
    if not below or not below <= outcomes[True]:
        return []
    size = _middle_batch(max(below), too_large)
    trial_of = {trial.repeat: trial for trial in sweep}
    repeats = sorted(trial_of)
    if size is not None:
        return [_resize_trial(trial_of[repeats[0]], size)]
    return [_resize_trial(trial_of[repeat], max(below)) for repeat in repeats[1:]]


def _middle_batch(fits: int, too_large: int) -> int | None:
    """The batch size to try next; null where nothing is left between."""
    fine = range(fits + 1, min(too_large, FINE_BELOW))
    coarse = range(max(fits + 1, FINE_BELOW), too_large)
    left = [*fine, *(size for size in coarse if size % COARSE == 0)]
    return left[len(left) // 2] if left else None


def _fits_memory(record: Record | None) -> bool | None:
    """Whether a trial left its device some memory; null where it did not get so far."""
    if record is None:
        return None
    if record.measurement is not None:
        return (reserved_share(record.measurement) or 0.0) <= MOST_MEMORY_SHARE
    return False if ran_out_of_memory(record) else None


def _resize_trial(trial: TrialSpec, size: int) -> TrialSpec:
    variant = trial.asked.variant.model_copy(update={"batch_size": size})
    request = trial.asked.model_copy(update={"variant": variant})
    return TrialSpec.from_request(
        request,
        trial.repeat,
        seed=trial.seed,
        timeout_seconds=trial.timeout_seconds,
        targets=trial.targets,
    )
