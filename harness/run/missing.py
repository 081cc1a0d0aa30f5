"""What a session still lacks: trials without a result, and the next batch sizes of a sweep.

Planned batch sizes double. Where one does not fit, the gap below it is halved down to steps of 8, or of 1
below 16, each try a fresh process of full length. What then fits is tried in every further repeat.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.record import LeftOut, Record, Session, TrialSpec
from harness.summary.statistics import MOST_MEMORY_SHARE, reserved_share

FEWEST_BATCH_SIZES = 3
"""The fewest batch sizes that make equal trials a sweep: a fixed batch that does not fit is no search."""

COARSE = 8
FINE_BELOW = 16


def grow_sweeps(session: Session, records: Iterable[Record]) -> Session:
    """Return the session with the batch sizes that its sweeps need next, or itself."""
    last_of = last_attempts(records)
    ids = {trial.id for trial in session.trials}
    new = [
        trial
        for sweep in _sweeps(session.trials).values()
        for trial in _next_tries(sweep, last_of)
        if trial.id not in ids
    ]
    return session.model_copy(update={"trials": (*session.trials, *new)}) if new else session


def is_between_batches(trial: TrialSpec, planned: Iterable[TrialSpec]) -> bool:
    """Return whether a search may have put a trial between the batch sizes of a planned sweep."""
    sizes = [_batch_size(member) for member in _sweeps(planned).get(sweep_key(trial), [])]
    return bool(sizes) and min(sizes) < _batch_size(trial) < max(sizes)


def _batch_size(trial: TrialSpec) -> int:
    return trial.asked.variant.batch_size


def _sweeps(trials: Iterable[TrialSpec]) -> dict[str, list[TrialSpec]]:
    groups: dict[str, list[TrialSpec]] = {}
    for trial in trials:
        groups.setdefault(sweep_key(trial), []).append(trial)
    return {
        key: group for key, group in groups.items() if len(set(map(_batch_size, group))) >= FEWEST_BATCH_SIZES
    }


def _next_tries(sweep: Sequence[TrialSpec], last_of: Mapping[str, Record]) -> list[TrialSpec]:
    """Return the first repeat's next try; once none is left, the largest that fits in the other repeats.

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
    """Return the batch size to try next; null where nothing is left between."""
    fine = range(fits + 1, min(too_large, FINE_BELOW))
    coarse = range(max(fits + 1, FINE_BELOW), too_large)
    left = [*fine, *(size for size in coarse if size % COARSE == 0)]
    return left[len(left) // 2] if left else None


def _fits_memory(record: Record | None) -> bool | None:
    """Return whether a trial left its device some memory; null where it did not get so far."""
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


ATTEMPTS = 3
"""How often one line of `run` tries a trial that the machinery failed."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial to run, its place in the session's order, and the number of its next attempt."""

    trial: TrialSpec
    order: int
    attempt: int


def missing_trials(
    session: Session,
    records: Iterable[Record],
    *,
    retry: bool = False,
    again: Container[str] = frozenset(),
) -> tuple[Missing, ...]:
    """Return what a session still lacks: trials that never ended, or that failed by the machinery's fault.

    A trial's own failure is a result; with `retry`, or where `again` has its id, it is missing too. A batch
    above one that did not fit is not tried.
    """
    last_of = last_attempts(records)
    spared = {trial.id for trial, _ in _untried_trials(session, last_of)}
    lacking = []
    for place, trial in enumerate(session.trials):
        last = last_of.get(trial.id)
        wanted = retry or trial.id in again
        failed = last and last.failure and (wanted or last.failure.kind == "machinery")
        if trial.id in spared or (last is not None and not failed):
            continue
        lacking.append(Missing(trial, place, last.attempt + 1 if last else 1))
    return tuple(lacking)


def list_untried(session: Session, records: Iterable[Record]) -> Session:
    """Return the session with a line in its list for the batches not tried, above one that did not fit."""
    spared = ((trial.asked.variant, size) for trial, size in _untried_trials(session, last_attempts(records)))
    counts = Counter(
        (f"{variant.model} {variant.precision} above batch {size}", f"batch {size} did not fit")
        for variant, size in spared
    )
    other_lines = [line for line in session.left_out if (line.what, line.reason) not in counts]
    untried = [LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in counts.items()]
    return session.model_copy(update={"left_out": (*other_lines, *untried)})


def last_attempts(records: Iterable[Record]) -> dict[str, Record]:
    """Return the last attempt's record of each trial, by the trial's id."""
    ordered = sorted(records, key=lambda record: record.attempt)
    return {record.trial.id: record for record in ordered}


def _untried_trials(session: Session, last_of: Mapping[str, Record]) -> Iterator[tuple[TrialSpec, int]]:
    """Yield trials never run whose sweep has a smaller batch that did not fit, each with that batch."""
    limits: dict[str, int] = {}
    for record in last_of.values():
        if ran_out_of_memory(record):
            key, batch_size = sweep_key(record.trial), record.trial.asked.variant.batch_size
            limits[key] = min(batch_size, limits.get(key, batch_size))
    for trial in session.trials if limits else ():
        limit = limits.get(sweep_key(trial))
        if limit is not None and trial.id not in last_of and trial.asked.variant.batch_size > limit:
            yield trial, limit


def ran_out_of_memory(record: Record | None) -> bool:
    """Return whether a trial's batch did not fit."""
    return bool(record and record.failure and record.failure.reason == "out-of-memory")


def sweep_key(trial: TrialSpec) -> str:
    """Return all that is asked of a trial but its batch size: equal within one batch-size sweep."""
    variant = trial.asked.variant.model_copy(update={"batch_size": 1})
    return trial.asked.model_copy(update={"variant": variant}).canonical()
