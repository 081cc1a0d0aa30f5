"""What a contribution of records brings, read as data out of git's objects: never checked out, never run."""

from __future__ import annotations

import math
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any

from harness import checking, store
from harness.clean import Names, leaks
from harness.errors import RecordError, UserError
from harness.record import Record, Session
from harness.summary import METHOD, judge_trial

MOST_FILES = 2000
CLOSE = 1e-6
"""Relative: two builds of one library may add up in another order."""

_PLACE = re.compile(
    r"results/\d{4}-\d{2}-\d{2}/[a-z0-9][a-z0-9.-]{0,63}-\d{8}-[0-9a-f]{6}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}\.json"
)
_PLAIN_FILE = "100644"


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: git's letter (A for added), the new file's mode and object."""

    letter: str
    mode: str
    blob: str
    path: str


def problems(root: Path, base: str, head: str) -> tuple[str, ...]:
    """Each as `path: what is wrong`; empty where `head` adds nothing to `base` but good records.

    Raises UserError where one of the two is no commit of this clone.
    """
    with TemporaryDirectory() as folder:
        return laid_out(root, base, head, Path(folder))


def laid_out(root: Path, base: str, head: str, folder: Path) -> tuple[str, ...]:
    """Writes what `head` adds below `folder`, and says what is wrong with it.

    Nothing is written where one path is no record's place. Raises UserError as `problems` does.
    """
    found = changes(root, base, head)
    refused = [f"{change.path}: {why}" for change in found if (why := _refusal(change))]
    refused += _taken(found, _sessions_at(root, base))
    refused += _too_large(root, found)
    if len(found) > MOST_FILES:
        refused.append(f"results: {len(found)} files, where one contribution has at most {MOST_FILES}")
    if refused or not found:
        return tuple(refused) or ("results: no record is added",)
    for change in found:
        path = folder / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_git(root, "cat-file", "blob", change.blob))
    return tuple(folder_problems(folder))


def changes(root: Path, base: str, head: str) -> tuple[Change, ...]:
    """What differs between the commit that both have in common and `head`."""
    fork = _git(root, "merge-base", _commit(root, base), _commit(root, head)).decode().strip()
    raw = _git(root, "diff", "--raw", "--no-renames", "--no-abbrev", "-z", fork, _commit(root, head))
    fields = raw.decode("utf-8", errors="replace").split("\0")
    found = []
    for about, path in zip(fields[:-1:2], fields[1::2], strict=True):
        _, mode, _, blob, letter = about.split(" ")
        found.append(Change(letter, mode, blob, path))
    return tuple(found)


def _refusal(change: Change) -> str:
    if not _PLACE.fullmatch(change.path):
        return "is no record's place; a contribution of records changes nothing else"
    if change.letter != "A":
        return "is there already; a record is never changed or removed"
    return "" if change.mode == _PLAIN_FILE else "is not a plain file"


def _too_large(root: Path, found: Sequence[Change]) -> Iterator[str]:
    """Judged by git's own count, before anything of it is read."""
    blobs = [change for change in found if change.letter == "A" and change.mode == _PLAIN_FILE]
    asked = "".join(f"{change.blob}\n" for change in blobs).encode()
    sizes = _git(root, "cat-file", "--batch-check=%(objectsize)", given=asked).split()
    for change, size in zip(blobs, map(int, sizes), strict=True):
        if size > checking.RECORD_BYTES:
            yield f"{change.path}: {size} bytes, where a file has at most {checking.RECORD_BYTES}"


def _sessions_at(root: Path, commit: str) -> dict[str, str]:
    """The sessions of a commit by their id, each with its folder."""
    names = _git(root, "ls-tree", "-r", "-z", "--name-only", _commit(root, commit), "--", "results")
    paths = [PurePosixPath(name) for name in names.decode("utf-8", errors="replace").split("\0")]
    return {_id_of(path): path.parent.as_posix() for path in paths if path.name == "session.json"}


def _taken(found: Sequence[Change], known: Mapping[str, str]) -> Iterator[str]:
    """A second session of an id that is here would add its runs to the first one's."""
    for path in (PurePosixPath(change.path) for change in found if _PLACE.fullmatch(change.path)):
        there = known.get(_id_of(path), path.parent.as_posix())
        if path.name == "session.json" and there != path.parent.as_posix():
            yield f"{path}: session '{_id_of(path)}' is in '{there}' already"


def _id_of(path: PurePosixPath) -> str:
    """<date>-<six hex digits>, the end of a session's folder."""
    return "-".join(path.parent.name.split("-")[-2:])


def folder_problems(root: Path) -> Iterator[str]:
    """What is wrong with the records and sessions below results/ of a folder."""
    yield from checking.records(root)
    yield from _other_files(root)
    yield from session_problems(root)
    shelf = store.read_all(root)
    sessions = {session.id: session for session in shelf.sessions}
    for stored in shelf.records:
        session = sessions.get(stored.record.session)
        if session is None:
            yield f"{stored.path}: its session '{stored.record.session}' has no session.json"
            continue
        why = _misplaced(stored.path, stored.record, session) or _summary_problem(stored.record)
        if why:
            yield f"{stored.path}: {why}"


def _other_files(root: Path) -> Iterator[str]:
    """Sessions, and measurements that were rejected: they name nobody either."""
    for path in sorted(store.results_folder(root).glob("*/*/*.json")):
        if path.name != "session.json" and not path.name.endswith(store.REJECTED):
            continue
        where = path.relative_to(root).as_posix()
        if path.stat().st_size > checking.RECORD_BYTES:
            yield f"{where}: {path.stat().st_size} bytes, where a file has at most {checking.RECORD_BYTES}"
            continue
        try:
            for leak in leaks(path.read_text(encoding="utf-8"), Names()):
                yield f"{where}: {leak}"
        except (ValueError, RecursionError):
            yield f"{where}: is not JSON"


def session_problems(root: Path) -> Iterator[str]:
    """Sessions that lie where their content does not belong, and those that are there twice."""
    seen: dict[str, str] = {}
    for path in sorted(store.results_folder(root).glob("*/*/session.json")):
        where = path.relative_to(root).as_posix()
        try:
            session = Session.parse(path.read_bytes(), where)
        except RecordError:
            continue
        wanted = (store.session_folder(Path(), session) / path.name).as_posix()
        if where != wanted:
            yield f"{where}: its content belongs into '{wanted}'"
        if session.id in seen:
            yield f"{where}: session '{session.id}' is in '{seen[session.id]}' already"
        seen.setdefault(session.id, where)


def _misplaced(path: str, record: Record, session: Session) -> str:
    folder = store.session_folder(Path(), session).as_posix()
    wanted = f"{folder}/{store.record_name(record.trial.id, record.attempt)}"
    if path != wanted:
        return f"its content belongs into '{PurePosixPath(wanted)}'"
    if record.machine.id != session.machine:
        return "its machine is not its session's"
    if record.trial.id not in {trial.id for trial in session.trials}:
        return "its session did not plan this trial"
    return ""


def _summary_problem(record: Record) -> str:
    """A summary that its own raw samples do not give."""
    judged = judge_trial(record)
    if judged is None or record.summary is None or record.summary.method != METHOD:
        return ""
    anew = judged.model_dump(mode="json")
    stored = record.summary.model_dump(mode="json")
    wrong = [name for name in anew if not _alike(anew[name], stored[name])]
    return f"its raw samples do not give its summary's '{wrong[0]}'" if wrong else ""


def _alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=CLOSE)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    return bool(one == other)


def _commit(root: Path, name: str) -> str:
    return _git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def _git(root: Path, *words: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", "-C", str(root), *words], input=given, capture_output=True, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
        raise UserError(
            f"git {words[0]} says: {' '.join(said)}", remedy="name two commits that this clone holds"
        )
    return done.stdout
