"""Blocks of time, an hour or more apart, over which a session's repeats are spread."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from harness.plan.order import NO_BLOCK
from harness.record import Record, Session, TrialSpec

PAUSE = timedelta(hours=1)


def block_number(session: Session, trial: TrialSpec, records: Sequence[Record], now: datetime) -> int:
    """Return the number of a trial's block if it begins now: a pause of an hour opens the next.

    Full-length trials are no part of a block, so an hour that they fill is a pause between the others.
    """
    number = max((record.block for record in records), default=1)
    last = _last_end(session, records)
    if last is None or session.block_of.get(trial.id) == NO_BLOCK:
        return number
    return number + 1 if now - last >= PAUSE else number


def rest_time(session: Session, trial: TrialSpec, records: Sequence[Record], now: datetime) -> timedelta:
    """Return how long a trial still waits: an hour after the last block if the plan has it later.

    An hour is the most, also where the clock was set since.
    """
    planned = session.block_of
    last = _last_end(session, records)
    reached = max((planned.get(record.trial.id, 1) for record in records), default=1)
    if last is None or planned.get(trial.id, 1) <= reached:
        return timedelta(0)
    return min(PAUSE, max(timedelta(0), last + PAUSE - now))


def _last_end(session: Session, records: Iterable[Record]) -> datetime | None:
    planned = session.block_of
    ended = (record.ended_at for record in records if planned.get(record.trial.id) != NO_BLOCK)
    return max(ended, default=None)
