"""What is wrong with records and sessions: their place, their size, names in them, and their summaries."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

from pydantic import ValidationError

from harness.errors import RecordError, UserError
from harness.files import text_sha256
from harness.image.lock import lock_differences, lock_packages
from harness.image.second_lock import known_locks, locked_packages
from harness.record import Model, Record, Session, store
from harness.record.store import Results, Stored
from harness.record.strict_model import first_problem
from harness.redact import find_leaks
from harness.summary import contradictions
from harness.summary.statistics import differing_part, is_this_version, judge_trial

RECORD_BYTES = 300_000


def folder_problems(root: Path, clone: Path, results: Results | None = None) -> Iterator[str]:
    """Yield what is wrong with the records and sessions of a folder, which are read unless they are given.

    They are held against each other, and against the locks, data and records that the clone knows.
    """
    results, locks = results or store.read_results(root), KnownLocks(root, clone)
    known = results if clone == root else store.read_results(clone)
    yield from locks.problems
    yield from results.problems
    yield from store.future_problems(results, datetime.now(UTC))
    yield from session_problems(root)
    sessions = {session.id: session for session in results.sessions}
    for stored in results.records:
        yield from _file_problems(root / stored.path, stored.path, Record)
        found = _record_problems(stored, sessions.get(stored.record.session), locks)
        yield from (f"{stored.path}: {sentence}" for sentence in found)
    yield from contradictions.session_contradictions(results)
    yield from contradictions.number_contradictions((*known.sessions, *results.sessions))
    yield from contradictions.source_contradictions(known.records, results.records)


def _file_problems(path: Path, where: str, model: type[Model]) -> Iterator[str]:
    """Yield what is wrong with a file by itself: its size, whom it names, or its form."""
    try:
        if (size := path.stat().st_size) > RECORD_BYTES:
            yield f"{where}: {size} bytes, where a file has at most {RECORD_BYTES}"
            return
        text = path.read_text(encoding="utf-8")
        raw = json.loads(text, object_pairs_hook=_once)
        if model is Record:
            store.drop_retired(raw)
        model.model_validate_json(json.dumps(raw), strict=True)
        for leak in find_leaks(text):
            yield f"{where}: {leak}"
    except ValidationError as error:
        yield f"{where}: {first_problem(error)}"
    except OSError as error:
        yield f"{where}: cannot be read ({error.strerror})"
    except (ValueError, RecursionError) as error:
        yield f"{where}: is not JSON ({error})"


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object of JSON; raises ValueError where a key is there twice: readers differ."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError(f"a key of {', '.join(sorted(fields))[:80]} is there twice")
    return fields


class KnownLocks:
    """By their hash the locks of a folder and a clone: their packages, and whether a base adds some."""

    def __init__(self, root: Path, clone: Path) -> None:
        self._of: dict[str, tuple[Mapping[str, str], bool]] = {}
        self.problems: tuple[str, ...] = ()
        # Of an image that is unknown here, so is what its base adds.
        for path in (root / "docker").glob("**/*.txt"):
            self._of[text_sha256(path.read_bytes())] = lock_packages(path), True
        try:
            known = known_locks(clone)
            self._of |= {sha256: locked_packages(clone, image) for sha256, image in known.items()}
        except UserError as error:
            self.problems = (str(error),)

    def unlike(self, record: Record) -> Iterator[str]:
        """Yield what a record that says it is pinned has installed otherwise than its lock has it."""
        environment, measured = record.environment, record.measurement
        lock = self._of.get(environment.lock_sha256 or "")
        if lock is None or measured is None or not environment.pinned:
            return
        packages, over_base = lock
        wrong = lock_differences(packages, measured.packages, over_base=over_base)
        if wrong:
            yield f"it says 'pinned', and {wrong[0]}" + (f" (and {len(wrong) - 1} more)" if wrong[1:] else "")


def session_problems(root: Path) -> Iterator[str]:
    """Yield a sentence for each session that is in a wrong folder, or that is there twice."""
    seen: dict[str, str] = {}
    for path in sorted(store.results_folder(root).glob("*/*/session.json")):
        where = path.relative_to(root).as_posix()
        yield from _file_problems(path, where, Session)
        try:
            session = Session.parse(path.read_bytes(), where)
        except RecordError:
            continue
        right_path = (store.session_folder(Path(), session) / path.name).as_posix()
        if where != right_path:
            yield f"{where}: its content belongs into '{right_path}'"
        if session.id in seen:
            yield f"{where}: session '{session.id}' is in '{seen[session.id]}' already"
        seen.setdefault(session.id, where)


def _record_problems(stored: Stored, session: Session | None, locks: KnownLocks) -> Iterator[str]:
    """Yield what is wrong with a record: its place, its summary, its own parts, and what the clone knows."""
    record = stored.record
    if record.simulated:
        yield "its device is simulated, so nothing in it was measured"
    if session is None:
        yield f"its session '{record.session}' has no session.json"
        return
    folder = store.session_folder(Path(), session).as_posix()
    right_path = f"{folder}/{store.record_name(record.trial.id, record.attempt)}"
    if stored.path != right_path:
        yield f"its content belongs into '{PurePosixPath(right_path)}'"
    elif (record.machine.id, record.machine.label) != (session.machine, session.label):
        yield "its machine is not its session's"
    elif record.trial not in session.trials or record.plan != session.plan:
        yield "its session did not plan this trial"
    elif is_this_version(record) and (wrong := differing_part(record, judge_trial(record))):
        yield f"its raw samples do not give its summary's '{wrong}'"
    yield from contradictions.record_contradictions(record)
    yield from contradictions.place_contradictions(record)
    yield from contradictions.energy_contradictions(record)
    yield from contradictions.data_contradictions(record)
    yield from locks.unlike(record)
