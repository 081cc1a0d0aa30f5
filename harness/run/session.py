"""A plan's open session in a clone, its number on the machine, and the lock of one run per machine."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from harness.errors import Busy, RecordError
from harness.files import lock_file
from harness.record import Against, LeftOut, Session, short_hash, store

_COUNTED = "sessions-begun"


LOCK_VARIABLE = "GPUDYNO_TEST_LOCK"
"""Names another lock, for tests that run at once."""


@contextmanager
def run_lock() -> Iterator[None]:
    """Hold the lock of one run per machine, in memory that all its users share; raises Busy while held."""
    path = Path(os.environ.get(LOCK_VARIABLE) or "/dev/shm/gpudyno.lock")
    with _open_shared(path) as file:
        if not lock_file(file):
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


def _pointer_path(root: Path, plan: str, against: Against | None) -> Path:
    mark = f"-{short_hash(against.stack)}" if against else ""
    return store.clone_state_folder(root) / "open" / f"{plan}{mark}.txt"


def find_open_session(root: Path, plan: str, against: Against | None = None) -> Session | None:
    """Return this clone's open session of a plan and a second stack, or null where none can be read."""
    try:
        name = _pointer_path(root, plan, against).read_text(encoding="utf-8").strip()
        path = store.results_folder(root) / name / "session.json"
        return Session.parse(path.read_bytes(), path.relative_to(root).as_posix())
    except (OSError, ValueError, RecordError):
        return None


def next_session_number(kept: Path, root: Path, machine: str) -> int:
    """Return the number of a machine's next session over all clones, from 1, and write it down."""
    path = kept / _COUNTED
    last = 0
    with suppress(OSError, ValueError):
        last = int(path.read_text(encoding="ascii").strip()[:6])
    known = (session.number or 0 for session in store.read_sessions(root) if session.machine == machine)
    number = max(0, last, *known) + 1
    store.write_whole(path, f"{number}\n", replace=True)
    return number


def open_session(root: Path, session: Session) -> Session:
    """Open a new session: writes its session.json."""
    path = store.write_session(root, session)
    store.keep_as_own(root, session.id)
    folder = path.parent.relative_to(store.results_folder(root)).as_posix()
    store.write_whole(_pointer_path(root, session.plan, session.against), folder + "\n", replace=True)
    return session


def close_session(root: Path, session: Session) -> None:
    """Close a complete session: the next run begins a new one."""
    _pointer_path(root, session.plan, session.against).unlink(missing_ok=True)


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
