"""One plan on one machine from one clone: which session is open, and what is missing in it."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from harness import store
from harness.errors import RecordError
from harness.plan import Plan
from harness.record import LeftOut, Machine, Record, Session, Trial, session_id

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
    blocks: Iterable[int] = (),
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
        blocks=tuple(blocks),
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

    A trial's own failure is a result; with `retry` it is missing too. A batch above one that did not fit is
    not tried.
    """
    last_of = _last_attempts(records)
    spared = {trial.id for trial, _ in _too_large(session, last_of)}
    found = []
    for place, trial in enumerate(session.trials):
        last = last_of.get(trial.id)
        if trial.id in spared or (last is not None and not _again(last, retry)):
            continue
        found.append(Missing(trial, place, last.attempt + 1 if last else 1))
    return tuple(found)


def with_spared(session: Session, records: Iterable[Record]) -> Session:
    """The session with a line in its list for the batches that were not tried, above one that did not fit."""
    counts: dict[tuple[str, str], int] = {}
    for trial, batch_size in _too_large(session, _last_attempts(records)):
        variant = trial.asked.variant
        what = f"{variant.model} {variant.precision} above batch {batch_size}"
        reason = f"batch {batch_size} did not fit"
        counts[what, reason] = counts.get((what, reason), 0) + 1
    others = [line for line in session.left_out if (line.what, line.reason) not in counts]
    lines = [LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in counts.items()]
    return session.model_copy(update={"left_out": (*others, *lines)})


def _last_attempts(records: Iterable[Record]) -> dict[str, Record]:
    ordered = sorted(records, key=lambda record: record.attempt)
    return {record.trial.id: record for record in ordered}


def _too_large(session: Session, last_of: Mapping[str, Record]) -> Iterator[tuple[Trial, int]]:
    """Trials never run whose row has a smaller batch that did not fit, each with that batch."""
    limits: dict[str, int] = {}
    for record in last_of.values():
        if record.failure is not None and record.failure.reason == "out-of-memory":
            place, batch_size = row(record.trial), record.trial.asked.variant.batch_size
            limits[place] = min(batch_size, limits.get(place, batch_size))
    for trial in session.trials if limits else ():
        limit = limits.get(row(trial))
        if limit is not None and trial.id not in last_of and trial.asked.variant.batch_size > limit:
            yield trial, limit


def row(trial: Trial) -> str:
    """All that is asked of a trial but its batch."""
    variant = trial.asked.variant.model_copy(update={"batch_size": 1})
    return trial.asked.model_copy(update={"variant": variant}).canonical()


def _again(last: Record, retry: bool) -> bool:
    return last.failure is not None and (retry or last.failure.kind == "machinery")
