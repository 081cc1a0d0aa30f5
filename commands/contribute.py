"""A session as it would be published: judged by the gate's own rules, with the text of its pull request."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from commands import gate
from commands.terminal import circumstances
from harness.bundle import archive
from harness.errors import GateError, UserError
from harness.machine import machine_id, state_folder
from harness.record import DEEP, Record, Session, store
from harness.record.store import Stored
from report.page import render
from report.text import clean, count

TEXT = "PULL_REQUEST.md"
BASES = ("origin/main", "main", "HEAD")
"""What a contribution is judged against: the first of these that the clone knows."""


def publish(root: Path, session: str | None) -> None:
    """Shows and judges a session, and writes what its pull request needs; pushes nothing.

    Raises GateError where the gate would refuse it.
    """
    chosen = session_of(root, session, machine_id(state_folder()))
    records = store.session_records(root, chosen)
    if not records:
        raise UserError(
            f"session {chosen.id} has no record yet", remedy=f"`invoke run --plan {chosen.plan}` goes on"
        )
    print(f"{records[0].path}, as it would be published:\n{shown(records[0].record)}")
    print("\n".join(["", "and with it:", *(f"  {stored.path}" for stored in records[1:])]))
    for line in circumstances(stored.record for stored in records):
        print(line)
    refused = problems(root, chosen)
    for problem in refused:
        print(problem, file=sys.stderr)
    if refused:
        raise GateError(count(len(refused), "problem"), remedy="correct what is listed above")
    out, files = root / "report" / "out" / f"contribution-{chosen.id}", _paths(root, chosen)
    for name in files:
        archive.copy_into(out, name, root / name)
    store.write_whole(out / TEXT, pull_request(chosen, records), replace=True)
    size = sum((root / name).stat().st_size for name in files)
    print(f"\nThe gate lets it pass. {count(len(files), 'file')}, {size / 1e6:.2f} MB, under CC0 1.0.")
    print(f"The text of the pull request: {out / TEXT}")
    print("Nothing was sent. These lines send it:")
    place = store.session_folder(Path(), chosen).as_posix()
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


def shown(record: Record) -> str:
    """A record as it would be published, whole but for its series and lists, which are counted."""
    return json.dumps(_short(record.model_dump(mode="json")), indent=2, ensure_ascii=False)


def _short(value: object) -> object:
    if isinstance(value, Mapping):
        if "microseconds" in value:
            return f"{value.get('count')} values"
        return {name: _short(inner) for name, inner in value.items()}
    if isinstance(value, list) and len(value) > 8:
        return f"{len(value)} entries"
    return f"{value[:200]}…" if isinstance(value, str) and len(value) > 300 else value


def pull_request(session: Session, records: Sequence[Stored]) -> str:
    """The text of the pull request, in Markdown: what was measured on what, and what it is licensed as."""
    first = records[0].record
    cards = Counter(card.name for card in first.machine.gpus)
    devices = ", ".join(f"{n} × {name}" for name, n in cards.items()) or first.machine.cpu.model or "a CPU"
    environment = first.environment
    pinned = "pinned" if environment.pinned else f"unpinned: {'; '.join(environment.unpinned_because)}"
    rows = Counter(_work(stored.record) for stored in records)
    ends = Counter(_end(stored.record) for stored in records)
    lines = [
        f"# Add a record of {session.label}",
        "",
        f"Session `{session.id}`, plan `{session.plan}`, {count(len(records), 'record')}.",
        "",
        f"- Devices: {_cell(devices)}",
        f"- Environment: {environment.image} by {environment.engine}, {_cell(pinned)}",
        f"- Ended as: {', '.join(f'{n} {word}' for word, n in sorted(ends.items()))}",
        "",
        "| work | records |",
        "| --- | --- |",
        *(f"| {_cell(work)} | {n} |" for work, n in sorted(rows.items())),
        "",
        *(f"- {_cell(line)}" for line in circumstances(stored.record for stored in records)),
        "",
        f"The records are published under CC0 1.0 (`results/LICENSE`). {_how_many(session, records)}",
    ]
    return "\n".join(lines) + "\n"


def _how_many(session: Session, records: Sequence[Stored]) -> str:
    recorded = {stored.record.trial.id for stored in records}
    lacking = sum(trial.id not in recorded for trial in session.trials)
    if lacking:
        return f"{count(lacking, 'trial')} of the session's plan left no record here; failures are included."
    return "Each trial of the session's plan has its record here, failures included."


def _work(record: Record) -> str:
    asked = record.trial.asked
    variant = asked.variant
    return (
        f"{asked.workload} {asked.protocol} {variant.model}, {variant.precision}, "
        f"batch {variant.batch_size}, {variant.data_mode}, {asked.data} data"
    )


def _end(record: Record) -> str:
    if record.failure is not None:
        return f"failed ({record.failure.reason})"
    return record.summary.verdict if record.summary else "measured"


def _cell(text: str) -> str:
    return render.inert_markdown(clean(text, 200))


def _is_commit(root: Path, name: str) -> bool:
    with suppress(UserError):
        return bool(gate.git(root, "rev-parse", "--verify", "-q", name))
    return False
