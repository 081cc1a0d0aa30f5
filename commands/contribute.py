"""A session of this clone, judged by the gate's rules before it is committed."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import gate
from commands.terminal import circumstances
from harness.errors import GateError, UserError
from harness.machine import machine_id, state_folder
from harness.record import DEEP, Session, store
from report.text import count

BASES = ("origin/main", "main", "HEAD")
"""What a contribution is judged against: the first of these that the clone knows."""


def publish(root: Path, session: str | None) -> None:
    """Judge a session, and print the lines that send it; pushes nothing.

    Raises GateError where the gate would refuse it.
    """
    chosen = session_of(root, session, machine_id(state_folder()))
    records = store.session_records(root, chosen)
    if not records:
        raise UserError(
            f"session {chosen.id} has no record yet", remedy=f"`invoke run --plan {chosen.plan}` goes on"
        )
    for line in circumstances(stored.record for stored in records):
        print(line)
    refused = problems(root, chosen)
    for problem in refused:
        print(problem, file=sys.stderr)
    if refused:
        raise GateError(count(len(refused), "problem"), remedy="correct what is listed above")
    files = _paths(root, chosen)
    size = sum((root / name).stat().st_size for name in files)
    place = store.session_folder(Path(), chosen).as_posix()
    print(f"The gate lets {place} pass: {count(len(files), 'file')}, {size / 1e6:.2f} MB, under CC0 1.0.")
    print("Nothing was sent. These lines send it:")
    branch = f"record-{chosen.label}-{chosen.id}"
    print(f"  git switch -c {branch} && git add {place} && git commit -m 'Add a record of {chosen.label}'")
    print(f"  git push -u origin {branch}")


def session_of(root: Path, session: str | None, machine: str) -> Session:
    """The session named, else this machine's newest that measured. Raises UserError where there is none."""
    sessions = [
        candidate
        for candidate in store.read_sessions(root)
        if (
            candidate.machine == machine and candidate.plan != DEEP
            if session is None
            else candidate.id == session
        )
    ]
    if not sessions:
        what = f"session '{session}'" if session else "session of this machine"
        raise UserError(f"there is no {what} in results/", remedy="measure one with `invoke build run`")
    return max(sessions, key=store.in_order)


def problems(root: Path, session: Session) -> tuple[str, ...]:
    """What the gate says of a commit that adds the session's folder as it lies in the clone."""
    base = next((name for name in BASES if _is_commit(root, name)), None)
    if base is None:
        raise UserError("this is no git clone with a commit", remedy="contribute from a clone")
    return gate.problems(root, base, _committed(root, base, _paths(root, session)))


def _committed(root: Path, base: str, paths: Sequence[str]) -> str:
    """A commit of `base` and these files that no branch holds; the clone's own index stays as it is."""
    with TemporaryDirectory() as folder:
        names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
        environ = {**os.environ, **{f"GIT_{name}": "gpudyno" for name in names}}
        environ["GIT_INDEX_FILE"] = str(Path(folder) / "index")
        gate.git(root, "read-tree", base, environ=environ)
        gate.git(root, "update-index", "--add", "--", *paths, environ=environ)
        tree = gate.git(root, "write-tree", environ=environ).decode().strip()
        line = ("commit-tree", tree, "-p", base, "-m", "Add records")
        return gate.git(root, *line, environ=environ).decode().strip()


def _paths(root: Path, session: Session) -> tuple[str, ...]:
    paths = store.session_folder(root, session).glob("*.json")
    return tuple(sorted(path.relative_to(root).as_posix() for path in paths))


def _is_commit(root: Path, name: str) -> bool:
    with suppress(UserError):
        return bool(gate.git(root, "rev-parse", "--verify", "-q", name))
    return False
