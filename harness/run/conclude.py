"""The end of one attempt, wherever it ran: its record is made and written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from functools import cache
from pathlib import Path

from harness.engine.base import Exit
from harness.engine.local import FLOOD_BYTES, LOG, keep_end
from harness.image.catalog import load_images
from harness.image.second_lock import known_locks, locked_packages
from harness.record import Record, Session, finding, store
from harness.run import assemble
from harness.run.assemble import Started
from harness.telemetry import recorder
from harness.units import size

SayLine = Callable[[str], None]

SAID_LINES = 6
CLOCKS_APART_SECONDS = 1.0
"""What clocks that are set over a network may differ."""


def conclude(
    root: Path,
    opened: Session,
    started: Started,
    work: Path,
    exit: Exit,
    say: SayLine,
    *,
    earlier: Iterable[Record],
    wall_seconds: float,
    timed_out: bool = False,
    asked_at: datetime | None = None,
) -> Record:
    """Writes the record of an attempt that took `wall_seconds`; raises as store.write_record does.

    `earlier` are the session's records by now; `asked_at` is when its job was sent, where that is no session.
    """
    environment = started.environment
    lock = environment.lock_sha256
    locked, over_base = _locked(root, environment.image, lock) if lock else (None, False)
    made = assemble.assemble(
        started,
        exit,
        work / "out",
        wall_seconds=wall_seconds,
        locked=locked,
        over_base=over_base,
        timed_out=timed_out,
    )
    recorder.stop(work)
    watched = recorder.added(made, work)
    seconds = ((asked_at or opened.started_at) - watched.started_at).total_seconds()
    # It began before it was asked for, as on a node whose clock is behind.
    behind = [finding("clock-behind", behind_seconds=seconds)] if seconds >= CLOCKS_APART_SECONDS else []
    found = (*behind, *assemble.changed_since(earlier, watched))
    record = assemble.judged(watched.model_copy(update={"warnings": (*watched.warnings, *found)}))
    store.write_record(root, opened, record)
    if (printed := keep_end(work / LOG, 2 * FLOOD_BYTES)) > FLOOD_BYTES:
        say(f"{record.trial.id} printed {size(printed)} or more: it was measured with the time to print them")
    # The log's end goes to whoever ran the trial; no record has it, since it may name folders and people.
    last = [line.rstrip() for line in exit.log.splitlines() if line.strip()][-SAID_LINES:]
    if record.failure is not None and last:
        say("\n".join((f"the end of its log, {work / LOG}:", *(f"  {line[:200]}" for line in last))))
    return record


@cache
def _locked(root: Path, image: str, sha256: str) -> tuple[Mapping[str, str], bool]:
    """What the lock of that hash pins, or that of the image where the clone has it no more."""
    return locked_packages(root, known_locks(root).get(sha256) or load_images(root).image(image))
