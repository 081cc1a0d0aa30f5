"""What a contribution of records brings, read as data out of git's objects: never checked out, never run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from commands.terminal import account_lines
from harness.bundle import validate
from harness.bundle.validate import folder_problems
from harness.errors import GateError, MachineError, UserError
from harness.files import last_line
from harness.record import store
from harness.record.store import Results
from harness.summary.contradictions import changes_over_pauses
from report import text
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in

MOST_FILES = 2000
_PLACE = re.compile(
    r"results/\d{4}-\d{2}-\d{2}/[a-z0-9][a-z0-9.-]{0,63}-\d{8}-[0-9a-f]{6}/[A-Za-z0-9_][A-Za-z0-9_.-]{0,120}\.json"
)
_PLAIN_FILE = "100644"
BASES = ("origin/main", "main", "HEAD")
"""What a clone's own results are judged against: the first of these that it knows."""


@dataclass(frozen=True, slots=True)
class Change:
    """One path that differs: git's letter (A for added), the new file's mode and object."""

    letter: str
    mode: str
    blob: str
    path: str


def lay_out_contribution(root: Path, base: str, head: str, folder: Path) -> tuple[str, ...]:
    """Write what `head` adds below `folder`, and say what is wrong with it.

    Each is `path: what is wrong`. Nothing is written where one path is no record's place. Raises UserError
    where one of the two is no commit of this clone.
    """
    diff = read_changes(root, base, head)
    sizes = _blob_sizes(root, diff)
    refused = [f"{one.path}: {why}" for one in diff if (why := _refusal(one, sizes.get(one.path, 0)))]
    refused += _duplicate_sessions(root, base, diff)
    if len(diff) > MOST_FILES:
        refused.append(f"results: {len(diff)} files, where one contribution has at most {MOST_FILES}")
    if refused:
        return tuple(refused)
    if not any(PurePosixPath(change.path).name != "session.json" for change in diff):
        return ("results: no record is added",)
    for change in diff:
        path = folder / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(run_git(root, "cat-file", "blob", change.blob))
    return tuple(folder_problems(folder, root))


def read_changes(root: Path, base: str, head: str) -> tuple[Change, ...]:
    """Return what differs between the commit that both have in common and `head`."""
    fork = run_git(root, "merge-base", _find_commit(root, base), _find_commit(root, head)).decode().strip()
    raw = run_git(root, "diff", "--raw", "--no-renames", "--no-abbrev", "-z", fork, _find_commit(root, head))
    fields = raw.decode("utf-8", errors="replace").split("\0")
    diff = []
    for about, path in zip(fields[:-1:2], fields[1::2], strict=True):
        _, mode, _, blob, letter = about.split(" ")
        diff.append(Change(letter, mode, blob, path))
    return tuple(diff)


def _refusal(change: Change, size: int) -> str:
    if not _PLACE.fullmatch(change.path):
        return "is no record's place; a contribution of records changes nothing else"
    if change.letter != "A":
        return "is there already; a record is never changed or removed"
    if change.mode != _PLAIN_FILE:
        return "is not a plain file"
    most_bytes = validate.RECORD_BYTES
    return f"{size} bytes, where a file has at most {most_bytes}" if size > most_bytes else ""


def _blob_sizes(root: Path, diff: Sequence[Change]) -> dict[str, int]:
    """Return the bytes of each plain file that is added, by git's own count."""
    added = [change for change in diff if change.letter == "A" and change.mode == _PLAIN_FILE]
    blobs = "".join(f"{change.blob}\n" for change in added).encode()
    sizes = run_git(root, "cat-file", "--batch-check=%(objectsize)", given=blobs).decode().splitlines()
    for change, size in zip(added, sizes, strict=True):
        if not size.isdigit():
            raise UserError(
                f"'{change.path}' has no content in this clone",
                remedy="commit the file, or fetch the whole commit",
            )
    return {change.path: int(size) for change, size in zip(added, sizes, strict=True)}


def _duplicate_sessions(root: Path, base: str, diff: Sequence[Change]) -> Iterator[str]:
    """Yield each session whose id is here: its runs would be added to the first one's."""
    listed = run_git(root, "ls-tree", "-r", "-z", "--name-only", _find_commit(root, base), "--", "results")
    there = store.session_folders(listed.decode("utf-8", errors="replace").split("\0"))
    brought = (change.path for change in diff if _PLACE.fullmatch(change.path))
    for session, folder in store.session_folders(brought).items():
        if there.get(session, folder) != folder:
            yield f"{folder}/session.json: session '{session}' is in '{there[session]}' already"


def _find_commit(root: Path, name: str) -> str:
    return run_git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def run_git(root: Path, *words: str, given: bytes = b"", environ: Mapping[str, str] | None = None) -> bytes:
    """Return what git answers; raises UserError with its last line where it refuses."""
    try:
        done = subprocess.run(
            ["git", "-C", str(root), *words],
            input=given,
            env={**(os.environ if environ is None else environ), "LC_ALL": "C"},
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        raise MachineError("git is not on the PATH", remedy="install git") from None
    if b"dubious ownership" in done.stderr:
        raise UserError(
            "git reads nothing of this clone, which another user owns",
            remedy='git config --global --add safe.directory "$PWD"',
        )
    if done.returncode:
        raise UserError(
            f"git {words[0]} says: {last_line(done.stderr)}", remedy="name two commits that this clone holds"
        )
    return done.stdout


def judge_commit(root: Path, base: str, head: str) -> None:
    """Judge the records that a commit adds; raises GateError naming how many things are wrong."""
    with TemporaryDirectory() as folder:
        refused = lay_out_contribution(root, base, head, Path(folder))
        for problem in refused:
            print(text.clean(problem, 500), file=sys.stderr)
        if refused:
            raise GateError(text.count(len(refused), "problem"), remedy="correct what is listed above")
        brought = store.read_results(Path(folder))
    for change in changes_over_pauses(brought):
        print(f"note: {text.clean(change, 500)}")
    machines = {session.machine for session in brought.sessions}
    accounts = _analyse_beside(root, brought).accounts
    for line in account_lines(account for account in accounts if account.machine in machines):
        print(line)
    print("They agree with themselves and their session; only measuring again shows that they were measured.")
    print("the records are good")


def judge_mine(root: Path) -> None:
    """Judge what this clone's results would bring, and print the lines that send it; pushes nothing.

    Raises GateError where the gate would refuse it.
    """
    base = next((name for name in BASES if _is_commit(root, name)), None)
    if base is None:
        raise UserError("this is no git clone with a commit", remedy="contribute from a clone")
    judge_commit(root, base, _commit_results(root))
    print("Nothing was sent. These lines send it, under CC0 1.0:")
    print("  git switch -c my-card && git add results && git commit -m 'Add a record of my card'")
    print("  git push -u origin my-card")


def _commit_results(root: Path) -> str:
    """Return a commit of HEAD and the results that no branch holds; the clone's own index stays as it is."""
    with TemporaryDirectory() as folder:
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        environ = {**os.environ, **{f"GIT_{name}": "gpudyno" for name in names}}
        environ["GIT_INDEX_FILE"] = str(Path(folder) / "index")
        run_git(root, "read-tree", "HEAD", environ=environ)
        run_git(root, "add", "--", "results", environ=environ)
        tree = run_git(root, "write-tree", environ=environ).decode().strip()
        line = ("commit-tree", tree, "-p", "HEAD", "-m", "Add records")
        return run_git(root, *line, environ=environ).decode().strip()


def _is_commit(root: Path, name: str) -> bool:
    with suppress(UserError):
        return bool(run_git(root, "rev-parse", "--verify", "-q", name))
    return False


def _analyse_beside(root: Path, brought: Results) -> Analysis:
    """Return the contribution's newest session beside this clone's records; no buyer's file."""
    evidence = evidence_in(root, purchase=False)
    both = (evidence.results, brought)
    records = {stored.path: stored for results in both for stored in results.records}
    sessions = {session.id: session for results in both for session in results.sessions}
    results = Results(tuple(records.values()), tuple(sessions.values()), ())
    lead = max(brought.sessions, key=lambda session: (session.number or 0, session.started_at)).id
    return analyse(replace(evidence, results=results), AnalysisRequest(datetime.now(UTC), session=lead))
