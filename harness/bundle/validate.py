"""What is wrong with records and sessions: their place, their size, names in them, and their summaries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath

from harness.errors import RecordError, UserError
from harness.files import text_sha256
from harness.image.lock import lock_differences, lock_packages
from harness.image.second_lock import known_locks, locked_packages
from harness.record import Record, Session, store
from harness.record.store import Results
from harness.redact import leaks
from harness.summary import contradictions
from harness.summary.statistics import judge_trial, of_this_version, other_summary

RECORD_BYTES = 300_000


def record_problems(root: Path, results: Results) -> Iterator[str]:
    """A sentence for each record that is unreadable, too large, or says whose machine it is from."""
    yield from results.problems
    for stored in results.records:
        yield from _file_problems(root / stored.path, stored.path)


def _file_problems(path: Path, where: str) -> Iterator[str]:
    """What is wrong with a file by itself: its size, whom it names, or its form."""
    try:
        if (size := path.stat().st_size) > RECORD_BYTES:
            yield f"{where}: {size} bytes, where a file has at most {RECORD_BYTES}"
            return
        for leak in leaks(path.read_text(encoding="utf-8")):
            yield f"{where}: {leak}"
    except OSError as error:
        yield f"{where}: cannot be read ({error.strerror})"
    except (ValueError, RecursionError) as error:
        yield f"{where}: is not JSON ({error})"


def folder_problems(root: Path, clone: Path, results: Results | None = None) -> Iterator[str]:
    """What is wrong with the records and sessions below results/ of a folder, read unless they are given.

    Its environments are held against the locks of both folders.
    """
    results, locks = results or store.read_results(root), KnownLocks(root, clone)
    yield from locks.problems
    yield from record_problems(root, results)
    yield from session_problems(root)
    yield from simulated(results)
    sessions = {session.id: session for session in results.sessions}
    for stored in results.records:
        session = sessions.get(stored.record.session)
        if session is None:
            yield f"{stored.path}: its session '{stored.record.session}' has no session.json"
            continue
        why = _record_problem(stored.path, stored.record, session)
        if why:
            yield f"{stored.path}: {why}"
        found = (
            *contradictions.within(stored.record),
            *contradictions.of_another_place(stored.record),
            *locks.unlike(stored.record),
        )
        yield from (f"{stored.path}: {sentence}" for sentence in found)


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
        """What a record that says it is pinned has installed otherwise than its lock has it."""
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
        yield from _file_problems(path, where)
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


def simulated(results: Results) -> Iterator[str]:
    """The records of devices that were not there, which go nowhere."""
    for stored in results.records:
        if stored.record.simulated:
            yield f"{stored.path}: its device is simulated, so nothing in it was measured"


def _record_problem(path: str, record: Record, session: Session) -> str:
    """Return what is wrong with a record: its folder, its name, or a summary not given by its raw samples."""
    folder = store.session_folder(Path(), session).as_posix()
    right_path = f"{folder}/{store.record_name(record.trial.id, record.attempt)}"
    if path != right_path:
        return f"its content belongs into '{PurePosixPath(right_path)}'"
    if record.machine.id != session.machine:
        return "its machine is not its session's"
    if record.trial not in session.trials or record.plan != session.plan:
        return "its session did not plan this trial"
    wrong = other_summary(record, judge_trial(record)) if of_this_version(record) else ""
    return f"its raw samples do not give its summary's '{wrong}'" if wrong else ""
