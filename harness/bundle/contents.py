"""What a bundle holds, gathered from a clone; and a bundle opened, with every byte of it checked."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from harness.bundle import archive, signature
from harness.bundle.signature import Signed
from harness.bundle.validate import folder_problems
from harness.errors import RecordError, UserError
from harness.files import sha256_of, text_sha256, whole
from harness.image.second_lock import known_locks
from harness.plan import plan_file
from harness.record import Harness, Model, Record, Session, store
from harness.record.published.claim_set import FOLDER as CLAIMS
from harness.record.result import SessionId
from harness.record.store import Stored
from harness.record.strict_model import Moment

SUMS = "SHA256SUMS"
SIGNATURE = f"{SUMS}.sig"
MANIFEST = "bundle.json"
PAGE = "page"
FIGURES = "analysis.json"
"""The figures that the page was made from, as plain data."""
LAYOUT = 4
"""The number of the layout: which files a bundle has, and what they hold."""
CLONE = ("results/cards.toml", "results/LICENSE", "purchase.toml", "docker/images.toml")
"""Files of a clone that the page reads or that say what was run, where they exist."""


class Manifest(Model):
    """bundle.json: what the page in it was made with, so that it can be made again."""

    bundle: Literal[4]
    """The layout."""
    gpudyno: Harness
    as_of: Moment
    """The end of the newest trial, or the day of the newest offer: the page is dated by it."""
    session: SessionId | None
    """The session that the page leads with."""
    baseline: str | None = None
    margin: Annotated[float, Field(gt=0, lt=1)]
    """How far below a figure of the leading session a delivered machine may be."""
    sessions: tuple[SessionId, ...]
    locks: dict[str, str] = {}
    """From the SHA-256 of each lock that a record names to the file that holds it."""
    notes: tuple[str, ...] = ()
    """What belongs here and this clone did not have."""


_OURS = re.compile(
    rf"{SUMS}(\.sig)?|bundle\.json|analysis\.json|purchase\.toml|page/.+|docker/.+"
    r"|plans/[^/]+\.toml|results/(cards\.toml|LICENSE|claims/[^/]+\.toml|[^/]+/[^/]+/[^/]+\.json)"
)
"""The files that a bundle may hold. `page/` is compared with the page that is made again from the records."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A bundle unpacked into `folder`, and everything that is wrong with it, each as `what: why`."""

    folder: Path
    manifest: Manifest | None
    names: tuple[str, ...]
    problems: tuple[str, ...]
    signed: Signed | None


def gather(root: Path, folder: Path, sessions: Iterable[str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Copies what belongs to the sessions from a clone into `folder`, under the clone's own names.

    Gives each lock's SHA-256 with its file, and what is missing. Raises UserError for an unknown session.
    """
    session_of = {session.id: session for session in store.read_sessions(root)}
    chosen = sorted(set(sessions))
    notes: list[str] = []
    locks: dict[str, str] = {}
    for name in chosen:
        if name not in session_of:
            raise UserError(f"there is no session '{name}' in results/", remedy="name one of its folders")
        own = sorted(store.session_folder(root, session_of[name]).glob("*.json"))
        if not any(path.name != "session.json" for path in own):
            raise UserError(
                f"session '{name}' has no record in the folder that its label names",
                remedy="name the folder as its session.json says",
            )
        for path in own:
            archive.copy_into(folder, path.relative_to(root).as_posix(), path)
        notes += _plan(root, folder, session_of[name])
    for stored in store.read_all(folder).records:
        notes += _lock(root, folder, stored.record, locks)
    for path in (*sorted((root / CLAIMS).glob("*.toml")), *(root / name for name in CLONE)):
        if path.is_file():
            archive.copy_into(folder, path.relative_to(root).as_posix(), path)
    return locks, tuple(dict.fromkeys(notes))


def _plan(root: Path, folder: Path, session: Session) -> list[str]:
    path = plan_file.files(root).get(session.plan)
    if path is not None and plan_file.file_sha256(path.read_bytes()) == session.plan_sha256:
        archive.copy_into(folder, f"plans/{path.name}", path)
        return []
    return [f"the plan '{session.plan}' is not here as session {session.id} ran it"]


def _lock(root: Path, folder: Path, record: Record, locks: dict[str, str]) -> list[str]:
    """Copies the lock and the image's other files into `folder`; returns what is wrong where it cannot."""
    environment = record.environment
    sha256 = environment.lock_sha256
    if sha256 is None or sha256 in locks:
        return []
    image = known_locks(root).get(sha256)
    if image is None:
        return [f"the lock {sha256[:12]} of the environment '{environment.image}' is not in this clone"]
    locks[sha256] = f"docker/{image.lock}"
    own = (
        image.lock,
        image.dockerfile,
        image.requirements,
        *(part.lock for part in (image.channel, image.sources) if part),
    )
    for name in own:
        if (root / "docker" / name).is_file():
            archive.copy_into(folder, f"docker/{name}", root / "docker" / name)
    return []


def as_of(records: Sequence[Stored], now: datetime, quoted: Iterable[date] = ()) -> datetime:
    """The end of the newest trial or the day of the newest offer, if later, in whole seconds.

    What is dated after `now` does not count.
    """
    ends = [
        stored.record.started_at + timedelta(seconds=stored.record.wall_seconds)
        for stored in records
        if stored.record.started_at <= now
    ]
    days = (datetime.combine(day, time(), UTC) for day in quoted)
    newest = max([*ends, *(day for day in days if day <= now)], default=now)
    return min(newest, now).astimezone(UTC).replace(microsecond=0)


def write(folder: Path, manifest: Manifest, out: Path, *, key: Path | None = None) -> None:
    """Writes `folder` as one archive, with the sums of its files and, with a `key`, their signature."""
    manifest_text = json.dumps(manifest.model_dump(mode="json"), indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(manifest_text, encoding="utf-8")
    names = names_in(folder)
    sums = "".join(f"{sha256_of(folder / name)}  {name}\n" for name in names)
    (folder / SUMS).write_text(sums, encoding="ascii")
    first = [SUMS]
    if key is not None:
        signature.sign(folder / SUMS, key)
        first.append(SIGNATURE)
    with whole(out) as part, part.open("wb") as file:
        archive.pack([(name, folder / name) for name in (*first, *names)], file)


def names_in(folder: Path) -> list[str]:
    """Every file below a folder by its name, sorted; the sums and their signature left out."""
    names = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(name for name in names if name not in (SUMS, SIGNATURE))


def open_bundle(path: Path, folder: Path, *, signers: Path | None = None) -> Opened:
    """Unpacks a bundle into an empty folder and checks sums, signature, records and locks.

    Raises UserError for an archive that is hostile (see `archive.unpack`); what was damaged or changed, or is
    of another layout, is a problem, by its name.
    """
    unpacked = archive.unpack(path, folder)
    problems = _sum_problems(folder, unpacked.names)
    problems += unpacked.problems
    problems += [f"{name}: is no file of a bundle" for name in unpacked.names if not _OURS.fullmatch(name)]
    signed = None
    try:
        if (folder / SIGNATURE).is_file():
            signed = signature.check(folder / SUMS, folder / SIGNATURE, signers)
        elif signers is not None:
            raise UserError("there is no signature", remedy="ask for a signed bundle")
    except UserError as error:
        problems.append(f"{SIGNATURE}: {error.problem}")
    manifest = None
    try:
        manifest, other = _manifest(folder)
        problems += other
        problems += [
            f"{name}: is not the lock {sha256[:12]} that its records name"
            for sha256, name in sorted(manifest.locks.items())
            if name not in names_in(folder) or text_sha256((folder / name).read_bytes()) != sha256
        ]
        problems += _manifest_problems(folder, manifest)
    except RecordError as error:
        problems.append(error.problem)
    problems += folder_problems(folder)
    return Opened(folder, manifest, tuple(unpacked.names), tuple(dict.fromkeys(problems)), signed)


def _manifest(folder: Path) -> tuple[Manifest, tuple[str, ...]]:
    """What bundle.json says, read as this layout whatever it says of its own; and that it is another.

    Raises RecordError for one that cannot be read so.
    """
    content, other = _read(folder / MANIFEST), tuple[str, ...]()
    with suppress(ValueError, RecursionError):
        raw: Any = json.loads(content)
        layout = raw.get("bundle") if isinstance(raw, dict) else LAYOUT
        if layout != LAYOUT:
            content = json.dumps({**raw, "bundle": LAYOUT}).encode()
            other = (f"{MANIFEST}: says layout {str(layout)[:9]}, and this gpudyno packs layout {LAYOUT}",)
    return Manifest.parse(content, MANIFEST), other


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _sum_problems(folder: Path, names: Sequence[str]) -> list[str]:
    listed = _listed(_read(folder / SUMS))
    if listed is None:
        return [f"{SUMS}: is missing or no list of checksums"]
    present = set(names) - {SUMS, SIGNATURE}
    problems = [f"{name}: was added; no checksum names it" for name in sorted(present - listed.keys())]
    problems += [f"{name}: is missing" for name in sorted(listed.keys() - present)]
    for name in sorted(present & listed.keys()):
        if sha256_of(folder / name) != listed[name]:
            problems.append(f"{name}: its content was changed")
    return problems


def _listed(text: bytes) -> Mapping[str, str] | None:
    lines = text.decode("ascii").splitlines() if text.isascii() else []
    digests = {line[66:]: line[:64] for line in lines if re.fullmatch(r".{64}  .+", line)}
    return digests if lines and len(digests) == len(lines) else None


def _manifest_problems(folder: Path, manifest: Manifest) -> Iterator[str]:
    """Yield sessions that only one of the manifest and the files has, and plans that no session ran."""
    results = store.read_all(folder)
    present, listed = {session.id for session in results.sessions}, set(manifest.sessions)
    yield from (f"{MANIFEST}: session {name} is not in it" for name in sorted(listed - present))
    yield from (f"{MANIFEST}: does not name session {name}" for name in sorted(present - listed))
    plans = plan_file.files(folder)
    for session in results.sessions:
        path = plans.get(session.plan)
        said = any(f"the plan '{session.plan}' " in note for note in manifest.notes)
        if path and not said and plan_file.file_sha256(path.read_bytes()) != session.plan_sha256:
            yield f"plans/{path.name}: is not the plan that session {session.id} ran"
