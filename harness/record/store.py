"""The only module that knows file names under results/: whole files or none."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from glob import glob
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from harness.errors import NoSpace, RecordError, UserError
from harness.files import write_then_rename
from harness.record import SCHEMA, Record, Session


@dataclass(frozen=True, slots=True)
class Stored:
    """A record and the file it was read from, relative to the clone."""

    path: str
    record: Record


@dataclass(frozen=True, slots=True)
class Results:
    """Everything under results/ that could be read, and a sentence for each file that could not."""

    records: tuple[Stored, ...]
    sessions: tuple[Session, ...]
    problems: tuple[str, ...]


def future_problems(results: Results, now: datetime) -> Iterator[str]:
    """Yield a sentence for each record that begins a day or more after `now`."""
    for stored in results.records:
        if stored.record.started_at > now + timedelta(days=1):
            day = f"{stored.record.started_at:%Y-%m-%d}"
            yield f"{stored.path}: it begins in the future ({day}); look at the clock of its machine"


OWN = ".own"
"""In a tree that a wheel carried: a link to the folder where what is the user's outlives the tree."""


def results_folder(root: Path) -> Path:
    """Return the folder that serves as the database."""
    return root / "results"


def clone_state_folder(root: Path) -> Path:
    """Open sessions, handles and whole logs: git-ignored, this clone's own."""
    return results_folder(root) / ".state"


def own_sessions(root: Path) -> frozenset[str]:
    """Return the sessions that this clone ran, or that its user called his own by `report --mine`."""
    with suppress(OSError):
        return frozenset(_own_list(root).read_text(encoding="utf-8").split())
    return frozenset()


def keep_as_own(root: Path, session: str) -> None:
    """Count a session as this clone's own from now on."""
    if session not in own_sessions(root):
        _own_list(root).parent.mkdir(parents=True, exist_ok=True)
        with _own_list(root).open("a", encoding="utf-8") as file:
            file.write(f"{session}\n")


def _own_list(root: Path) -> Path:
    return clone_state_folder(root) / "own-sessions.txt"


def session_folder(root: Path, session: Session) -> Path:
    """Return results/<date>/<machine>-<session>."""
    return results_folder(root) / f"{session.started_at:%Y-%m-%d}" / f"{session.label}-{session.id}"


def session_folders(paths: Iterable[str]) -> dict[str, str]:
    """Return the folder of each session whose file is one of these paths, by the session's id."""
    folders = (path.rpartition("/")[0] for path in paths if path.endswith("/session.json"))
    return {"-".join(folder.split("-")[-2:]): folder for folder in folders}


def record_name(trial_id: str, attempt: int) -> str:
    """Return <trial>.json, or <trial>.a2.json for a second attempt."""
    return f"{trial_id}.json" if attempt == 1 else f"{trial_id}.a{attempt}.json"


def work_folder(root: Path, session: str, trial_id: str, attempt: int) -> Path:
    """Return where one attempt of one trial keeps its in, out and log."""
    return clone_state_folder(root) / "work" / session / f"{trial_id}.a{attempt}"


def write_record(root: Path, session: Session, record: Record) -> None:
    """Write one record; raises UserError where the file exists and NoSpace where the disk is full."""
    path = session_folder(root, session) / record_name(record.trial.id, record.attempt)
    write_whole(path, dump_json(record), replace=False)


def write_session(root: Path, session: Session) -> Path:
    """Write session.json, in place of an older one of the same session."""
    folder = session_folder(root, session)
    if (root / OWN).is_dir() and not folder.exists():
        own = root / OWN / folder.relative_to(root)
        own.mkdir(parents=True, exist_ok=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to(own.resolve())
    path = folder / "session.json"
    write_whole(path, dump_json(session), replace=True)
    return path


def dump_json(model: Record | Session) -> str:
    """Return JSON as it is stored: one line a field at the top, so that a diff can be read."""
    fields = model.model_dump(mode="json")
    lines = ",\n".join(
        f"{json.dumps(key)}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}"
        for key, value in fields.items()
    )
    return "{\n" + lines + "\n}\n"


def write_whole(path: Path, text: str, *, replace: bool) -> None:
    """Write a file by a temporary name, fsync and rename: whole under its name, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _disk_errors(path):
        with write_then_rename(path, Path.replace if replace else _put_new) as temporary:
            temporary.write_text(text, encoding="utf-8")
        _sync_folder(path.parent)


def _put_new(temporary: Path, path: Path) -> None:
    """Give a file a name that none has; without hard links two writers at one moment are not noticed."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if path.exists():
            raise FileExistsError from None
        temporary.replace(path)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except FileExistsError:
        raise UserError(
            f"'{path.name}' is already in '{path.parent.name}' and is never overwritten",
            remedy="give the same line with --new-session",
        ) from None
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise NoSpace(
                f"the disk is full: '{path}' could not be written (nothing half-written is left)",
                remedy="free some space, as of old environments in .venvs/, then the same line goes on",
            ) from None
        error.filename = error.filename or str(path)
        raise


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        # Some file systems of a network or of FUSE flush files alone.
        if error.errno not in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF):
            raise
    finally:
        os.close(handle)


def _exceeds_63_bits(value: Any) -> bool:
    """Return whether there is a whole number of more than 63 bits in a value."""
    if isinstance(value, dict | list):
        return any(map(_exceeds_63_bits, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int) and value.bit_length() > 63


OTHER_GPUDYNO = "take the gpudyno that wrote the record"

RETIRED = (
    ("summary", "method"),
    ("measurement", "anchors"),
    ("measurement", "device_us"),
    ("measurement", "warm_caches"),
    ("measurement", "transport"),
    ("measurement", "ranks"),
    ("measurement", "flops", "bytes_method"),
    ("measurement", "precision", "loss_scale", "history"),
    ("measurement", "program", "rows_left_out"),
    ("measurement", "card", "parts"),
    ("measurement", "card", "lacking"),
    ("measurement", "card", "memory_pattern", "free_bytes"),
    ("measurement", "card", "memory_pattern", "write_seconds"),
    ("measurement", "card", "memory_pattern", "read_seconds"),
    ("measurement", "framework", "lines"),
    ("measurement", "framework", "retired"),
    ("measurement", "framework", "dormant_since"),
    ("measurement", "framework", "compiled"),
    ("measurement", "framework", "layout"),
    ("measurement", "framework", "differs"),
    ("failure", "log_tail"),
    ("machine", "links"),
    ("environment", "sif_sha256"),
    ("telemetry", "cpu"),
    ("telemetry", "energy", "warning"),
    ("telemetry", "phases"),
    ("telemetry", "seconds_per_value"),
    ("telemetry", "cards", "energy_joules"),
    ("telemetry", "energy", "scope"),
    ("telemetry", "energy", "samples"),
    ("telemetry", "energy", "disagreement"),
    ("machine", "cpu", "mhz_max"),
    ("machine", "gpus", "display_attached"),
    ("measurement", "own", "clock_ratio"),
    ("measurement", "own", "processes_left"),
)
"""Keys that records 2 had once, and that none has any more: nothing is worked out from them.

From `record` 2 and `session` 1 on no file is refused for its age: each number that one may begin with has a
reader here, of at most 40 lines, that is tested on a committed file of it.
"""


def _retired_tree() -> dict[str, Any]:
    """Return the retired keys as a tree, each with nothing below it."""
    tree: dict[str, Any] = {}
    for path in RETIRED:
        part = tree
        for name in path:
            part = part.setdefault(name, {})
    return tree


_RETIRED_TREE = _retired_tree()


def drop_retired(raw: Any, retired: Mapping[str, Any] = _RETIRED_TREE) -> None:
    """Take the keys that are retired away from the JSON of a record 2, or of a part or list of parts."""
    for part in raw if isinstance(raw, list) else [raw]:
        for key, within in retired.items() if isinstance(part, dict) else ():
            if not within:
                part.pop(key, None)
            elif key in part:
                drop_retired(part[key], within)


class OtherSchema(RecordError):
    """A record whose number is not that of today's, and that has no reader."""


MOST_BYTES = 16 * 2**20
"""What is larger is no record, and is not read."""


def _read_content(path: Path, where: str) -> bytes:
    """Return a file's bytes; raises RecordError for what is no plain file, too large, or not readable."""
    try:
        told = path.stat()
        if not stat.S_ISREG(told.st_mode):
            raise RecordError(f"{where}: is no file", remedy="remove it")
        if (size := told.st_size) > MOST_BYTES:
            raise RecordError(f"{where}: {size} bytes, where {MOST_BYTES} are the most", remedy="remove it")
        return path.read_bytes()
    except OSError as error:
        raise RecordError(f"{where}: cannot be read ({error.strerror})", remedy="make it readable") from None


def read_record(path: Path, where: str, known: dict[str, tuple[Any, Any]] | None = None) -> Record:
    """Read one record; raises RecordError with its path and the reason.

    `known` holds the parts of the one before, as JSON and as parsed: an equal part is the same object.
    """
    try:
        raw = from_json(content := _read_content(path, where))
        if re.search(rb"[\s,:\[]-?[0-9]{19,}[\s,\]}]", content) and _exceeds_63_bits(raw):
            raise ValueError("a whole number of more than 63 bits")
    except ValueError as error:
        raise RecordError(
            f"{where}: the file is cut short or not JSON ({error})", remedy="remove it or fetch it again"
        ) from None
    version = raw.get("record") if isinstance(raw, dict) else None
    if type(version) is not int or version != SCHEMA:
        raise OtherSchema(f"{where}: schema {version!r} is not {SCHEMA}", remedy=OTHER_GPUDYNO)
    drop_retired(raw)
    return Record.parse(raw, where) if known is None else _parse_with(known, raw, where)


_OF_SESSION = ("machine", "environment", "harness", "load")
_OF_WORK = ("framework", "device", "versions", "packages", "precision", "data", "protocol", "phases", "flops")
"""What of records, and of their measurements, is the same in many of a session."""


def _parse_with(known: dict[str, tuple[Any, Any]], raw: dict[str, Any], where: str) -> Record:
    wholes = ((raw, _OF_SESSION), (raw.get("measurement"), _OF_WORK))
    places = [
        (part, name) for part, names in wholes if isinstance(part, dict) for name in names if name in part
    ]
    given = {name: part[name] for part, name in places}
    for part, name in places:
        before, same = known.get(name, (None, None))
        part[name] = same if before == given[name] else given[name]
    record = Record.parse(raw, where)
    parsed = {name: getattr(record if part is raw else record.measurement, name) for part, name in places}
    known |= {name: (given[name], parsed[name]) for name in given}
    return record


def _result_files(root: Path, folder: Path, pattern: str) -> Iterator[tuple[Path, str]]:
    """Yield each file that runs wrote under a folder of results/, with its path from the clone."""
    prefix = folder.relative_to(root).as_posix()
    # Paths are made, compared and taken apart at ten times the cost of names.
    names = glob(pattern, root_dir=folder)  # noqa: PTH207
    for name in sorted(names, key=lambda name: name.split("/")):
        yield folder / name, f"{prefix}/{name}"


def read_results(root: Path) -> Results:
    """Return every record and session under results/ in the order of their paths, copies once."""
    known: dict[str, tuple[Any, Any]] = {}
    records: list[Stored] = []
    sessions: list[Session] = []
    problems: list[str] = []
    of_other_schemas: list[OtherSchema] = []
    for path, where in _result_files(root, results_folder(root), "*/*/*.json"):
        try:
            if path.name == "session.json":
                sessions.append(Session.parse(_read_content(path, where), where))
            else:
                records.append(Stored(where, read_record(path, where, known)))
        except OtherSchema as error:
            of_other_schemas.append(error)
        except RecordError as error:
            problems.append(str(error))
    if of_other_schemas:
        more = len(of_other_schemas) - 1
        others = f", nor is that of {more} more files" if more else ""
        problems.append(f"{of_other_schemas[0].problem}{others}; {OTHER_GPUDYNO}")
    once, copies = _drop_copies(records)
    different = {session.model_dump_json(): session for session in reversed(sessions)}
    return Results(once, tuple(reversed(different.values())), (*problems, *copies))


def _drop_copies(records: Sequence[Stored]) -> tuple[tuple[Stored, ...], list[str]]:
    """Return each record once, and a sentence for each folder that holds some again.

    The one that counts is in a folder of its session's name, where there is one. A record that only says that
    it is the same attempt is no copy.
    """
    ordered = sorted(records, key=lambda stored: not _record_folder(stored).endswith(stored.record.session))
    first: dict[tuple[str, str, int], Stored] = {}
    copies: dict[tuple[str, str], int] = {}
    others: list[Stored] = []
    for stored in ordered:
        record = stored.record
        attempt = (record.session, record.trial.id, record.attempt)
        if attempt not in first:
            first[attempt] = stored
        elif first[attempt].record == record:
            place = (_record_folder(stored), record.session)
            copies[place] = copies.get(place, 0) + 1
        else:
            others.append(stored)
    sentences = [
        f"{folder}: {count} records of session '{session}' lie elsewhere too, and count once"
        for (folder, session), count in copies.items()
    ]
    return tuple(sorted([*first.values(), *others], key=lambda stored: stored.path)), sentences


def _record_folder(stored: Stored) -> str:
    return stored.path.rpartition("/")[0]


def read_sessions(root: Path) -> tuple[Session, ...]:
    """Return every readable session under results/ in the order of their paths, without its records."""
    sessions: list[Session] = []
    for path, where in _result_files(root, results_folder(root), "*/*/session.json"):
        with suppress(RecordError):
            sessions.append(Session.parse(_read_content(path, where), where))
    return tuple(sessions)


def session_records(root: Path, session: Session) -> tuple[Stored, ...]:
    """Return the records of one session; raises RecordError for one that cannot be read."""
    return tuple(
        Stored(where, read_record(path, where))
        for path, where in _result_files(root, session_folder(root, session), "*.json")
        if path.name != "session.json"
    )
