"""A ladder's rungs between the largest batch that fits and the smallest that does not, found by halving.

Planned rungs double; where one does not fit, the gap below it is halved down to steps of 8, or of 1 below 16,
each try a fresh process of full length. What then fits is tried in every further repeat.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.record import Record, Session, Trial
from harness.run.session import row
from harness.summary.statistics import ROOM, room_taken

FEWEST_RUNGS = 3
"""Batches of one work from which on they are a ladder: a fixed batch that does not fit is no search."""

COARSE = 8
FINE_BELOW = 16


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a ladder ends: the largest batch that fits, and the smallest that does not."""

    fits: int
    wall: int

    def middle(self) -> int | None:
        """The batch to try next; null where nothing is left between."""
        fine = range(self.fits + 1, min(self.wall, FINE_BELOW))
        coarse = range(max(self.fits + 1, FINE_BELOW), self.wall)
        left = [*fine, *(size for size in coarse if size % COARSE == 0)]
        return left[len(left) // 2] if left else None


def grown(session: Session, records: Iterable[Record]) -> Session:
    """The session with the rungs that its records ask for next, or itself; a pure function of both."""
    last = {record.trial.id: record for record in sorted(records, key=lambda one: one.attempt)}
    known = {trial.id for trial in session.trials}
    new = [
        trial
        for rungs in _ladders(session.trials).values()
        for trial in _next(rungs, last)
        if trial.id not in known
    ]
    return session.model_copy(update={"trials": (*session.trials, *new)}) if new else session


def stands_between(trial: Trial, planned: Iterable[Trial]) -> bool:
    """Whether a trial is a rung that a search may have put between those of a planned ladder."""
    rungs = _ladders(planned).get(row(trial), [])
    sizes = [rung.asked.variant.batch_size for rung in rungs]
    return bool(sizes) and min(sizes) < trial.asked.variant.batch_size < max(sizes)


def _ladders(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    groups: dict[str, list[Trial]] = {}
    for trial in trials:
        groups.setdefault(row(trial), []).append(trial)
    sizes = {name: {rung.asked.variant.batch_size for rung in rungs} for name, rungs in groups.items()}
    return {name: rungs for name, rungs in groups.items() if len(sizes[name]) >= FEWEST_RUNGS}


def _next(rungs: Sequence[Trial], last: dict[str, Record]) -> list[Trial]:
    """The next try of the first repeat; once nothing is left to try, the batch found in the other repeats."""
    gap = _gap(rungs, last)
    if gap is None:
        return []
    size = gap.middle()
    firsts = {rung.repeat: rung for rung in rungs}
    repeats = sorted(firsts)
    asked = [repeats[0]] if size is not None else repeats[1:]
    return [_with_batch(firsts[repeat], gap.fits if size is None else size) for repeat in asked]


def _gap(rungs: Iterable[Trial], last: dict[str, Record]) -> Gap | None:
    """Null while no rung failed to fit, or none fits, or one below the wall was tried in no repeat."""
    fits: set[int] = set()
    walls: set[int] = set()
    sizes = set()
    for rung in rungs:
        size = rung.asked.variant.batch_size
        sizes.add(size)
        found = _fits(last.get(rung.id))
        if found is not None:
            (fits if found else walls).add(size)
    wall = min(walls, default=None)
    below = {size for size in sizes if wall is not None and size < wall}
    if wall is None or not below or not below <= fits:
        return None
    return Gap(max(below), wall)


def _fits(record: Record | None) -> bool | None:
    """Whether a rung left its device some room; null where that was not found out."""
    if record is None:
        return None
    if record.measurement is not None:
        return (room_taken(record.measurement) or 0.0) <= ROOM
    assert record.failure is not None
    return False if record.failure.reason == "out-of-memory" else None


def _with_batch(rung: Trial, size: int) -> Trial:
    variant = rung.asked.variant.model_copy(update={"batch_size": size})
    asked = rung.asked.model_copy(update={"variant": variant})
    return Trial.of(asked, rung.repeat, seed=rung.seed, timeout_seconds=rung.timeout_seconds)
