"""Attempts that an earlier run started, and whose record was never written."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from harness.engine.interface import Engine, Handle, Running
from harness.errors import RecordError
from harness.record import Model, store
from harness.run.assemble import Started
from harness.telemetry import recorder

FILE = "started.json"
"""In the work folder of an attempt, as long as its record is not written."""


class InFlight(Model):
    """started.json: an attempt on this machine, and how it is found again."""

    started: Started
    monotonic_seconds: float
    """When it began on a clock that nobody sets, and that begins again when the machine does."""
    handle: Handle | None = None
    """Null until its engine has started it."""


def read_attempts(root: Path, session_id: str) -> Iterator[tuple[InFlight, Path]]:
    """Yield each attempt of a session (`*`: of all) with its work folder; what cannot be read is removed."""
    folder = store.clone_state_folder(root) / "work"
    for path in sorted(folder.glob(f"{session_id}/*/{FILE}")):
        try:
            yield InFlight.parse(path.read_bytes(), path.name), path.parent
        except RecordError:
            path.unlink()


def stop_orphans(root: Path, session_id: str, engine: Engine, say: Callable[[str], None]) -> None:
    """Stop trials of other sessions that go on after their run died, since two would disturb each other.

    They stay written down as started: their own session makes a record of each when it goes on. A trial of
    another engine than this run's is not looked for.
    """
    for begun, work in read_attempts(root, "*"):
        started = begun.started
        if started.session == session_id:
            continue
        handle = begun.handle or engine.find(started.name, work)
        if (
            handle is None
            or handle.engine != engine.name
            or not isinstance(engine.poll(handle, work), Running)
        ):
            continue
        say(f"stopping {started.trial.id} of session {started.session}, whose run died without it")
        engine.stop(handle, work)
        recorder.stop_sampling(work)


def elapsed_seconds(begun: InFlight, work: Path, *, running: bool) -> float:
    """Return how long an attempt has taken, or had when it ended: no more than its limit.

    It ended when it last wrote. A clock that was set meanwhile cannot make it longer than it was.
    """
    now, began = time.monotonic(), begun.monotonic_seconds
    if began <= now:
        elapsed = now - began
    else:
        # The machine was started again since.
        elapsed = max(0.0, (datetime.now(UTC) - begun.started.started_at).total_seconds())
    if not running:
        written = max((path.stat().st_mtime for path in (work / "out").rglob("*")), default=time.time())
        since = time.time() - written
        elapsed -= since if 0 <= since <= elapsed else 0.0
    return min(elapsed, begun.started.trial.timeout_seconds)
