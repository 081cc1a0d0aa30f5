"""Blocks of time: an hour or more apart, so that what hours and days do shows in an interval."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from harness.plan import NO_BLOCK
from harness.record import Record, Session, Trial

PAUSE = timedelta(hours=1)


def block(session: Session, trial: Trial, records: Iterable[Record], now: datetime) -> int:
    """The number of the block that a trial beginning now belongs to: a pause of an hour opens the next.

    Full-length trials are no part of a block, so an hour that they fill is a pause between the others.
    """
    kept = list(records)
    number = max((record.block for record in kept), default=1)
    last = _last_end(session, kept)
    if last is None or _planned(session).get(trial.id) == NO_BLOCK:
        return number
    return number + 1 if now - last >= PAUSE else number


def rest(session: Session, trial: Trial, records: Iterable[Record], now: datetime) -> timedelta:
    """How long a trial still waits: an hour after the last block, where the plan has it in a later one."""
    kept, planned = list(records), _planned(session)
    last = _last_end(session, kept)
    reached = max((planned.get(record.trial.id, 1) for record in kept), default=1)
    if last is None or planned.get(trial.id, 1) <= reached:
        return timedelta(0)
    return max(timedelta(0), last + PAUSE - now)


def _planned(session: Session) -> dict[str, int]:
    """The block that the plan has each trial in, by the trial's id; empty for a session of one block."""
    return dict(zip((trial.id for trial in session.trials), session.blocks, strict=False))


def _last_end(session: Session, records: Iterable[Record]) -> datetime | None:
    planned = _planned(session)
    ended = (
        record.started_at + timedelta(seconds=record.wall_seconds)
        for record in records
        if planned.get(record.trial.id) != NO_BLOCK
    )
    return max(ended, default=None)
