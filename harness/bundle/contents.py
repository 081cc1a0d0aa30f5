"""What a bundle holds, gathered from a clone: records, the plans and locks that they name, a statement."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from harness.bundle import archive
from harness.bundle.statement import Envelope, is_stamp_of, json_bytes
from harness.errors import UserError
from harness.image.second_lock import known_locks
from harness.plan import plan_file
from harness.record import Summary, store
from harness.record.store import Stored
from harness.summary.statistics import judge_trial

STATEMENT = "statement.json"
STAMP = "statement.tsr"
OURS = re.compile(r"plans/[^/]+\.toml|docker/.+\.txt|results/[^/]+/[^/]+/[^/]+\.json")
"""The files that a bundle may hold beside its statement and that one's time stamp."""
SOURCES = ("results/cards.toml", "results/claims/*.toml", "results/tables/**/*.*")
"""What of a clone its report reads beside records: in no bundle, but by its digests in the statement."""


def gather(root: Path, sessions: Iterable[str]) -> tuple[dict[str, bytes], tuple[Stored, ...]]:
    """Return the files that belong to the sessions, by the clone's own names, and the records among them.

    Raises UserError for an unknown session, RecordError for a record that cannot be read.
    """
    session_of = {session.id: session for session in store.read_sessions(root)}
    plans, locks = plan_file.plan_files(root), known_locks(root)
    paths: list[Path] = []
    records: list[Stored] = []
    for name in sorted(set(sessions)):
        if name not in session_of:
            raise UserError(f"there is no session '{name}' in results/", remedy="name one of its folders")
        session = session_of[name]
        own = store.session_records(root, session)
        if not own:
            raise UserError(
                f"session '{name}' has no record in the folder that its label names",
                remedy="name the folder as its session.json says",
            )
        records += own
        paths += store.session_folder(root, session).glob("*.json")
        path = plans.get(session.plan)
        if path is not None and plan_file.file_sha256(path.read_bytes()) == session.plan_sha256:
            paths.append(path)
    named = {stored.record.environment.lock_sha256 for stored in records}
    paths += [root / "docker" / locks[sha256].lock for sha256 in named if sha256 in locks]
    return _read(root, paths), tuple(records)


def sources(root: Path) -> dict[str, bytes]:
    """Return the claims, cards and tables of a clone."""
    return _read(root, (path for pattern in SOURCES for path in root.glob(pattern)))


def _read(root: Path, paths: Iterable[Path]) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in sorted(set(paths))}


def as_of(records: Sequence[Stored], now: datetime) -> datetime:
    """Return the end of the newest trial in whole seconds; what is dated after `now` does not count."""
    ends = [stored.record.ended_at for stored in records if stored.record.started_at <= now]
    return min(max(ends, default=now), now).astimezone(UTC).replace(microsecond=0)


def figures(records: Sequence[Stored]) -> dict[str, Summary]:
    """Return by its path what the raw samples of each record with a measurement give."""
    summaries = {stored.path: judge_trial(stored.record) for stored in records}
    return {path: summary for path, summary in summaries.items() if summary is not None}


def write(envelope: Envelope, files: Mapping[str, bytes], stamp: bytes | None, path: Path) -> None:
    """Write one archive of the files, with the statement first, and behind it its time stamp.

    Raises UserError for a stamp of another statement.
    """
    first = {STATEMENT: json_bytes(envelope)}
    if stamp is not None:
        if not is_stamp_of(first[STATEMENT], stamp):
            raise UserError(
                "this is no time stamp of the bundle's statement", remedy="stamp what --statement-out writes"
            )
        first[STAMP] = stamp
    with path.open("wb") as file:
        archive.pack(first | dict(sorted(files.items())), file)
