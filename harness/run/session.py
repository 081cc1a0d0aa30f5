"""A session: one run per machine at a time, its blocks of time, and the trials that it still lacks."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import IO

from harness.errors import Busy, RecordError
from harness.files import lock_file
from harness.plan.order import NO_BLOCK
from harness.record import Against, LeftOut, Record, Session, TrialSpec, short_hash, store

_COUNTED = "sessions-begun"
HALVING = ("card",)
"""Plans that ask for one batch or what fits: they are about the card, and a batch too large is no result."""


LOCK_VARIABLE = "GPUDYNO_TEST_LOCK"
"""Names another lock, for tests that run at once."""


@contextmanager
def run_lock(path: Path | None = None) -> Iterator[None]:
    """Hold the lock of one run per machine, in memory that all its users share; raises Busy while held."""
    path = path or Path(os.environ.get(LOCK_VARIABLE) or "/dev/shm/gpudyno.lock")
    with _open_shared(path) as file:
        if not lock_file(file, "mount a file system with locks there"):
            raise Busy(
                f"another run (process {file.read().strip() or 'unknown'}) measures on this machine, and two "
                "would disturb each other",
                remedy="wait for it to end, or stop it",
            )
        if file.writable():
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
        yield


def _open_shared(path: Path) -> IO[str]:
    """Return the file opened to be locked; another user's can only be read, and is not created again."""
    for mode in ("r+", "r"):
        with suppress(OSError):
            return path.open(mode)
    return path.open("a+")


PAUSE = timedelta(hours=1)


def block_number(session: Session, trial: TrialSpec, records: Sequence[Record], now: datetime) -> int:
    """The number of the block that a trial beginning now belongs to: a pause of an hour opens the next.

    Full-length trials are no part of a block, so an hour that they fill is a pause between the others.
    """
    number = max((record.block for record in records), default=1)
    last = _last_end(session, records)
    if last is None or session.block_of.get(trial.id) == NO_BLOCK:
        return number
    return number + 1 if now - last >= PAUSE else number


def rest_time(session: Session, trial: TrialSpec, records: Sequence[Record], now: datetime) -> timedelta:
    """How long a trial still waits: an hour after the last block, where the plan has it in a later one.

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
    ended = (
        record.started_at + timedelta(seconds=record.wall_seconds)
        for record in records
        if planned.get(record.trial.id) != NO_BLOCK
    )
    return max(ended, default=None)


ATTEMPTS = 3
"""How often one line of `run` tries a trial that the machinery failed."""


def _pointer_path(root: Path, plan: str, against: Against | None) -> Path:
    mark = f"-{short_hash(against.stack)}" if against else ""
    return store.clone_state_folder(root) / "open" / f"{plan}{mark}.txt"


def find_open_session(root: Path, plan: str, against: Against | None = None) -> Session | None:
    """This clone's open session of a plan and a second stack, or null where none can be read."""
    try:
        name = _pointer_path(root, plan, against).read_text(encoding="utf-8").strip()
        path = store.results_folder(root) / name / "session.json"
        return Session.parse(path.read_bytes(), path.relative_to(root).as_posix())
    except (OSError, ValueError, RecordError):
        return None


def next_session_number(kept: Path, root: Path, machine: str) -> int:
    """The number of a machine's next session, from 1; in its folder of the user's state, for all clones."""
    path = kept / _COUNTED
    last = 0
    with suppress(OSError, ValueError):
        last = int(path.read_text(encoding="ascii").strip()[:6])
    known = (session.number or 0 for session in store.read_sessions(root) if session.machine == machine)
    number = max(0, last, *known) + 1
    store.write_whole(path, f"{number}\n", replace=True)
    return number


def open_session(root: Path, session: Session) -> Session:
    """Opens a new session: writes its session.json."""
    path = store.write_session(root, session)
    folder = path.parent.relative_to(store.results_folder(root)).as_posix()
    store.write_whole(_pointer_path(root, session.plan, session.against), folder + "\n", replace=True)
    return session


def close_session(root: Path, session: Session) -> None:
    """The plan is complete: the next run begins a new session."""
    _pointer_path(root, session.plan, session.against).unlink(missing_ok=True)


@dataclass(frozen=True, slots=True)
class Missing:
    """A trial to run, its place in the session's order, and the number of its next attempt."""

    trial: TrialSpec
    order: int
    attempt: int


def missing_trials(
    session: Session, records: Iterable[Record], *, retry: bool = False
) -> tuple[Missing, ...]:
    """Return what a session still lacks: trials that never ended, or that failed by the machinery's fault.

    A trial's own failure is a result; with `retry` it is missing too. A batch above one that did not fit is
    not tried, nor that batch again where it is halved.
    """
    last_of = last_attempts(records)
    spared = {trial.id for trial, _ in _untried_trials(session, last_of)}
    lacking = []
    for place, trial in enumerate(session.trials):
        last = last_of.get(trial.id)
        failed = last is not None and last.failure is not None and (retry or last.failure.kind == "machinery")
        if trial.id in spared or (last is not None and not failed):
            continue
        lacking.append(Missing(trial, place, last.attempt + 1 if last else 1))
    return tuple(lacking)


def list_untried(session: Session, records: Iterable[Record]) -> Session:
    """Return the session with a line in its list for the batches not tried, above one that did not fit.

    A batch that was halved has no line: a smaller one replaces it.
    """
    if session.plan in HALVING:
        return session
    spared = ((trial.asked.variant, size) for trial, size in _untried_trials(session, last_attempts(records)))
    counts = Counter(
        (f"{variant.model} {variant.precision} above batch {size}", f"batch {size} did not fit")
        for variant, size in spared
    )
    other_lines = [line for line in session.left_out if (line.what, line.reason) not in counts]
    untried = [LeftOut(what=what, trials=count, reason=reason) for (what, reason), count in counts.items()]
    return session.model_copy(update={"left_out": (*other_lines, *untried)})


def without_trials(session: Session, ids: Collection[str], reason: str) -> Session:
    """Return a session without trials that were not started, and with the reason."""
    taken = [at for at, trial in enumerate(session.trials) if trial.id not in ids]
    left = LeftOut(what="trials not started", trials=len(ids), reason=reason)
    return session.model_copy(
        update={
            "trials": tuple(session.trials[at] for at in taken),
            "blocks": tuple(session.blocks[at] for at in taken),
            "left_out": (*session.left_out, left),
        }
    )


def last_attempts(records: Iterable[Record]) -> dict[str, Record]:
    """The last attempt's record of each trial, by the trial's id."""
    ordered = sorted(records, key=lambda record: record.attempt)
    return {record.trial.id: record for record in ordered}


def _untried_trials(session: Session, last_of: Mapping[str, Record]) -> Iterator[tuple[TrialSpec, int]]:
    """Trials never run whose sweep has a smaller batch that did not fit, each with that batch."""
    limits: dict[str, int] = {}
    again = session.plan in HALVING
    for record in last_of.values():
        if ran_out_of_memory(record):
            key, batch_size = sweep_key(record.trial), record.trial.asked.variant.batch_size
            limits[key] = min(batch_size, limits.get(key, batch_size))
    for trial in session.trials if limits else ():
        limit = limits.get(sweep_key(trial))
        if limit is not None and trial.id not in last_of and trial.asked.variant.batch_size + again > limit:
            yield trial, limit


def ran_out_of_memory(record: Record | None) -> bool:
    """Whether a trial's batch did not fit."""
    return bool(record and record.failure and record.failure.reason == "out-of-memory")


def sweep_key(trial: TrialSpec) -> str:
    """All that a trial is asked for but its batch size: equal in the trials of one batch-size sweep."""
    variant = trial.asked.variant.model_copy(update={"batch_size": 1})
    return trial.asked.model_copy(update={"variant": variant}).canonical()
