"""One plan on one machine from one clone: which session is open, and what is missing in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from harness import store
from harness.errors import RecordError
from harness.plan import Plan
from harness.record import LeftOut, Machine, Record, Session, Trial, session_id

BLOCK_PAUSE = timedelta(hours=1)
ATTEMPTS = 3
"""How often one line of `run` tries a trial that the machinery failed."""


def _pointer(root: Path, plan: str) -> Path:
    return store.state_folder(root) / "open" / f"{plan}.txt"


def find_open(root: Path, plan: str) -> Session | None:
    """This clone's open session of a plan, if there is one and it can be read."""
    pointer = _pointer(root, plan)
    if not pointer.is_file():
        return None
    path = store.results_folder(root) / pointer.read_text().strip() / "session.json"
    if not path.is_file():
        return None
    try:
        return Session.parse(path.read_bytes(), path.relative_to(root).as_posix())
    except RecordError:
        return None


def begin(
    root: Path,
    plan: Plan,
    machine: Machine,
    trials: Iterable[Trial],
    *,
    now: datetime,
    order_seed: int,
    budget_seconds: float | None = None,
    left_out: Iterable[LeftOut] = (),
    notes: Iterable[str] = (),
) -> Session:
    """Opens a new session and writes its session.json."""
    session = Session(
        session=1,
        id=session_id(now, secrets.token_hex(3)),
        plan=plan.name,
        plan_sha256=plan.sha256,
        machine=machine.id,
        label=machine.label,
        started_at=now,
        order_seed=order_seed,
        budget_seconds=budget_seconds,
        trials=tuple(trials),
        left_out=tuple(left_out),
        notes=tuple(notes),
    )
    path = store.write_session(root, session)
    folder = path.parent.relative_to(store.results_folder(root)).as_posix()
    store.write_whole(_pointer(root, plan.name), folder + "\n", replace=True)
    return session


def close(root: Path, session: Session) -> None:
    """The plan is complete: the next run begins a new session."""
    _pointer(root, session.plan).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial to run, its place in the session's order, and the number of its next attempt."""

    trial: Trial
    order: int
    attempt: int


def missing(session: Session, records: Iterable[Record], *, retry: bool = False) -> tuple[Missing, ...]:
    """What a session still lacks: trials never ended, and those that the machinery failed.

    A trial's own failure is a result; with `retry` it is missing too.
    """
    by_trial: dict[str, list[Record]] = {}
    for record in records:
        by_trial.setdefault(record.trial.id, []).append(record)
    found = []
    for place, trial in enumerate(session.trials):
        attempts = sorted(by_trial.get(trial.id, []), key=lambda record: record.attempt)
        last = attempts[-1] if attempts else None
        if last is not None and not _again(last, retry):
            continue
        found.append(Missing(trial, place, last.attempt + 1 if last else 1))
    return tuple(found)


def _again(last: Record, retry: bool) -> bool:
    return last.failure is not None and (retry or last.failure.kind == "machinery")


def block(records: Iterable[Record], now: datetime) -> int:
    """The number of the block that a trial beginning now belongs to: a pause of an hour opens the next."""
    ended = [(record.started_at + timedelta(seconds=record.wall_seconds), record.block) for record in records]
    if not ended:
        return 1
    last_end, number = max(ended)
    return number + 1 if now - last_end >= BLOCK_PAUSE else number
