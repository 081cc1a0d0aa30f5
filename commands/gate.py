"""What a contribution of records brings, read as data out of git's objects: never checked out, never run."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from harness.bundle import validate
from harness.bundle.validate import folder_problems
from harness.errors import GateError, MachineError, UserError
from harness.files import last_line
from harness.record import store
from report import text
from report.analysis import Analysis, Question, analyse, evidence_in
from report.trials.account import MachineAccount

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


def laid_out(root: Path, base: str, head: str, folder: Path) -> tuple[str, ...]:
    """Writes what `head` adds below `folder`, and says what is wrong with it.

    Each is `path: what is wrong`. Nothing is written where one path is no record's place. Raises UserError
    where one of the two is no commit of this clone.
    """
    diff = changes(root, base, head)
    sizes, sessions = _sizes(root, diff), sessions_at(root, base)
    refused = [f"{one.path}: {why}" for one in diff if (why := _refusal(one, sizes.get(one.path, 0)))]
    refused += _taken(diff, sessions)
    if len(diff) > MOST_FILES:
        refused.append(f"results: {len(diff)} files, where one contribution has at most {MOST_FILES}")
    if refused:
        return tuple(refused)
    if not any(PurePosixPath(change.path).name != "session.json" for change in diff):
        return ("results: no record is added",)
    for change in diff:
        path = folder / change.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(git(root, "cat-file", "blob", change.blob))
    return tuple(folder_problems(folder, root))


def changes(root: Path, base: str, head: str) -> tuple[Change, ...]:
    """What differs between the commit that both have in common and `head`."""
    fork = git(root, "merge-base", _commit(root, base), _commit(root, head)).decode().strip()
    raw = git(root, "diff", "--raw", "--no-renames", "--no-abbrev", "-z", fork, _commit(root, head))
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


def _sizes(root: Path, diff: Sequence[Change]) -> dict[str, int]:
    """The bytes of each plain file that is added, by git's own count."""
    added = [change for change in diff if change.letter == "A" and change.mode == _PLAIN_FILE]
    blobs = "".join(f"{change.blob}\n" for change in added).encode()
    sizes = git(root, "cat-file", "--batch-check=%(objectsize)", given=blobs).decode().splitlines()
    for change, size in zip(added, sizes, strict=True):
        if not size.isdigit():
            raise UserError(
                f"'{change.path}' has no content in this clone",
                remedy="commit the file, or fetch the whole commit",
            )
    return {change.path: int(size) for change, size in zip(added, sizes, strict=True)}


def account_lines(accounts: Iterable[MachineAccount]) -> Iterator[str]:
    """How many trials each machine's sessions planned, and what became of them."""
    for account in accounts:
        fates = ", ".join(f"{number:,} {fate}" for fate, number in account.fates)
        yield f"{text.clean(account.label)}: {text.count(account.planned, 'trial')} planned: {fates}"
        if account.absent_sessions:
            yield f"  {text.count(account.absent_sessions, 'session')} of its numbers not here"


def committed_sessions(root: Path) -> frozenset[str]:
    """The sessions that the clone came with; none where it is no clone of git's."""
    with suppress(UserError, MachineError):
        return frozenset(sessions_at(root, "HEAD"))
    return frozenset()


def sessions_at(root: Path, commit: str) -> dict[str, str]:
    """The sessions of a commit by their id, each with its folder."""
    names = git(root, "ls-tree", "-r", "-z", "--name-only", _commit(root, commit), "--", "results")
    paths = [PurePosixPath(name) for name in names.decode("utf-8", errors="replace").split("\0")]
    return {_id_of(path): path.parent.as_posix() for path in paths if path.name == "session.json"}


def _taken(diff: Sequence[Change], folders: Mapping[str, str]) -> Iterator[str]:
    """A second session of an id that is here would add its runs to the first one's."""
    for path in (PurePosixPath(change.path) for change in diff if _PLACE.fullmatch(change.path)):
        folder = folders.get(_id_of(path), path.parent.as_posix())
        if path.name == "session.json" and folder != path.parent.as_posix():
            yield f"{path}: session '{_id_of(path)}' is in '{folder}' already"


def _id_of(path: PurePosixPath) -> str:
    """<date>-<six hex digits>, the end of a session's folder."""
    return "-".join(path.parent.name.split("-")[-2:])


def _commit(root: Path, name: str) -> str:
    return git(root, "rev-parse", "--verify", "--end-of-options", f"{name}^{{commit}}").decode().strip()


def git(root: Path, *words: str, given: bytes = b"", environ: Mapping[str, str] | None = None) -> bytes:
    """What git answers; raises UserError with its last line where it refuses."""
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


def judge(root: Path, base: str, head: str) -> None:
    """Judges the records that a commit adds; raises GateError naming how many things are wrong."""
    with TemporaryDirectory() as folder:
        refused = laid_out(root, base, head, Path(folder))
        for problem in refused:
            print(text.clean(problem, 500), file=sys.stderr)
        if refused:
            raise GateError(text.count(len(refused), "problem"), remedy="correct what is listed above")
        brought = [stored.record for stored in store.read_all(Path(folder)).records]
        accounts = _beside(root, Path(folder)).accounts
    machines = {record.machine.id for record in brought}
    for line in account_lines(account for account in accounts if account.machine in machines):
        print(line)
    print("They agree with themselves and their session; only measuring again shows that they were measured.")
    print("the records are good")


def mine(root: Path) -> None:
    """Judges what this clone's results would bring, and prints the lines that send it; pushes nothing.

    Raises GateError where the gate would refuse it.
    """
    base = next((name for name in BASES if _is_commit(root, name)), None)
    if base is None:
        raise UserError("this is no git clone with a commit", remedy="contribute from a clone")
    judge(root, base, _committed(root))
    print("Nothing was sent. These lines send it, under CC0 1.0:")
    print("  git switch -c my-card && git add results && git commit -m 'Add a record of my card'")
    print("  git push -u origin my-card")


def _committed(root: Path) -> str:
    """A commit of HEAD and the results that no branch holds; the clone's own index stays as it is."""
    with TemporaryDirectory() as folder:
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        environ = {**os.environ, **{f"GIT_{name}": "gpudyno" for name in names}}
        environ["GIT_INDEX_FILE"] = str(Path(folder) / "index")
        git(root, "read-tree", "HEAD", environ=environ)
        git(root, "add", "--", "results", environ=environ)
        tree = git(root, "write-tree", environ=environ).decode().strip()
        line = ("commit-tree", tree, "-p", "HEAD", "-m", "Add records")
        return git(root, *line, environ=environ).decode().strip()


def _is_commit(root: Path, name: str) -> bool:
    with suppress(UserError):
        return bool(git(root, "rev-parse", "--verify", "-q", name))
    return False


def _beside(root: Path, contributed: Path) -> Analysis:
    """The contribution's newest session beside this clone's records; no buyer's file."""
    lead = max(store.read_sessions(contributed), key=store.in_order).id
    ours = store.results_folder(root)
    if ours.is_dir():
        shutil.copytree(
            ours,
            store.results_folder(contributed),
            ignore=shutil.ignore_patterns(".*"),
            dirs_exist_ok=True,
        )
    question = Question(datetime.now(UTC), session=lead)
    return analyse(evidence_in(contributed, purchase=False), question)
