"""One judgement of a bundle for all who receive it: its bytes, records, figures, and who answers for it."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from harness.bundle import archive, contents
from harness.bundle.statement import (
    LAYOUT,
    Envelope,
    Predicate,
    Signed,
    Statement,
    json_bytes,
    resources,
    signed_keys,
    stamped_at,
)
from harness.bundle.validate import folder_problems
from harness.errors import GateError, RecordError, UserError
from harness.files import hash_file, read_object, text_sha256
from harness.plan.plan_file import file_sha256
from harness.record import Harness, store
from harness.record.store import Results, Stored
from harness.summary.statistics import differing_part, judge_trial

Level = Literal["not-recomputed", "recomputed", "signed", "known-signer"]
LEVELS: Mapping[Level, str] = {
    "not-recomputed": "not recomputed",
    "recomputed": "recomputed",
    "signed": "recomputed, signed",
    "known-signer": "recomputed, signed by a key you know",
}
"""What may be said of a bundle, the least first: whether its samples give its figures, and who says so."""

OLDER, OLDER_MANIFEST = 4, "bundle.json"
"""The layout before there were statements, whose records a report still reads, and its file."""


@dataclass(frozen=True, slots=True)
class Demand:
    """What a recipient asks of a bundle."""

    at_least: Level = "recomputed"
    signers: Path | None = None
    """OpenSSH's file of allowed signers, one of whom has to have signed it."""
    sha256: tuple[str, ...] = ()
    """Its file is one of these."""
    order: str | None = None
    stamp_ca: Path | None = None
    """The certificate of the service that its time stamp has to be from."""

    @property
    def compares(self) -> bool:
        """Return whether the bundle is held against something that the recipient has from elsewhere."""
        return bool(self.signers or self.sha256 or self.order)


@dataclass(frozen=True, slots=True)
class Answering:
    """Who signed a bundle's statement, and when it existed."""

    signed: tuple[Signed, ...] = ()
    stamped: bool = False
    moment: str = ""
    """By its time stamp, in OpenSSL's words; empty where that was not checked."""


@dataclass(frozen=True, slots=True)
class Judgement:
    """A bundle that was read whole, and all that is wrong with it, each as `what: why`."""

    name: str
    sha256: str
    files: int
    stated: Predicate
    answering: Answering
    results: Results
    """Its records with the summaries that their raw samples give here, pinned where their lock is in it."""
    plans: Mapping[str, str]
    """By its SHA-256 each plan in it."""
    problems: tuple[str, ...]
    other_figures: tuple[str, ...]
    """What its raw samples give otherwise here than where it was packed."""
    missing: tuple[str, ...]
    """The plans and locks that its sessions and records name, and that are not in it."""
    other_sources: tuple[str, ...]
    """The claims, cards and tables that are others in this clone than in the one that packed it."""

    @property
    def level(self) -> Level:
        """Return the most that can be said of it."""
        if self.other_figures:
            return "not-recomputed"
        if any(one.signer for one in self.answering.signed):
            return "known-signer"
        return "signed" if self.answering.signed else "recomputed"


def judge(path: Path, clone: Path, asked: Demand, *, older: bool = False) -> Judgement:
    """Read a bundle and check all of it; an `older` one, of the layout before this, is read as unsigned.

    Raises UserError for an archive that is hostile or of another layout, and for a file of the demand that is
    not there; GateError for another file than was asked for, and for a statement that cannot be read.
    """
    for needed in filter(None, (asked.signers, asked.stamp_ca)):
        if not needed.is_file():
            raise UserError(f"there is no file '{needed}'", remedy="look at its name")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary)
        unpacked = archive.unpack(path, folder)
        sha256 = hash_file(path)
        if asked.sha256 and sha256 not in asked.sha256:
            raise GateError(f"'{path.name}' is another file: its SHA-256 is {sha256}")
        read, answering, problems = store.read_results(folder), Answering(), list(unpacked.problems)
        plans = {file_sha256(file.read_bytes()): file.name for file in folder.glob("plans/*")}
        locks = {text_sha256(file.read_bytes()): file.name for file in folder.glob("docker/**/*.txt")}
        results = replace(read, records=tuple(_believed(stored, locks) for stored in read.records))
        if contents.STATEMENT in unpacked.names:
            envelope, statement = _statement(folder / contents.STATEMENT, path.name)
            stated = statement.predicate
            problems += _file_problems(folder, unpacked.names, statement)
            problems += _stated_problems(stated, results, plans, locks)
            try:
                answering = _answering(folder, envelope, asked)
            except UserError as error:
                problems.append(f"{contents.STATEMENT}: {error.problem}")
        else:
            stated = _older_predicate(folder / OLDER_MANIFEST, path.name, results, clone, wanted=older)
        problems += folder_problems(folder, clone, read)
    return Judgement(
        name=path.name,
        sha256=sha256,
        files=len(unpacked.names),
        stated=stated,
        answering=answering,
        results=results,
        plans=plans,
        problems=tuple(dict.fromkeys(problems)),
        other_figures=tuple(_other_figures(stated, results)),
        missing=tuple(dict.fromkeys(_missing(results, plans, locks))),
        other_sources=tuple(_other_sources(stated, clone)),
    )


def shortfall(found: Judgement, asked: Demand) -> str:
    """Return in which way a bundle without a problem is less than was asked for; empty where it is not."""
    order, answering = found.stated.order, found.answering
    if asked.order is not None and order != asked.order:
        return f"it is of order '{order}', not of '{asked.order}'" if order else "it states no order"
    if asked.signers and not any(one.signer for one in answering.signed):
        return f"none of the signers in '{asked.signers}' has signed it"
    if asked.stamp_ca and not answering.moment:
        return "it has no time stamp"
    levels = [*LEVELS]
    if levels.index(found.level) < levels.index(asked.at_least):
        return f"it is {LEVELS[found.level]}, and '{LEVELS[asked.at_least]}' was asked for"
    return ""


def _statement(path: Path, bundle: str) -> tuple[Envelope, Statement]:
    """Return the envelope and its statement; raises GateError where one is not written as we write it."""
    written, wrong = path.read_bytes(), "is not written as gpudyno writes it"
    try:
        envelope = Envelope.parse(written, path.name)
        statement = Statement.parse(envelope.content, path.name)
        if json_bytes(envelope) == written and json_bytes(statement) == envelope.content:
            return envelope, statement
    except (RecordError, ValueError) as error:
        wrong = str(error)
    raise GateError(f"'{bundle}' is not as it was packed: {path.name}: {wrong}")


def _older_predicate(path: Path, bundle: str, results: Results, clone: Path, *, wanted: bool) -> Predicate:
    """Return what a bundle without a statement would have stated of its records, without an order.

    Raises UserError unless it is of the layout before statements, and wanted.
    """
    said = read_object(path)
    if not said:
        raise UserError(f"'{bundle}' is no bundle: it has no {contents.STATEMENT}", remedy="name a bundle")
    packer = said["gpudyno"] if isinstance(said.get("gpudyno"), dict) else {}
    version, revision = (str(packer.get(name))[:40] for name in ("version", "revision"))
    lead = next((session for session in results.sessions if session.id == said.get("session")), None)
    if not wanted or said.get("bundle") != OLDER or lead is None:
        raise UserError(
            f"'{bundle}' has layout {str(said.get('bundle'))[:9]}, not {LAYOUT}: "
            f"gpudyno {version}, commit {revision}, packed it",
            remedy="verify it there, or ask for it again",
        )
    return Predicate(
        gpudyno=Harness(version=version, revision=revision),
        machine=lead.machine,
        session=lead.id,
        as_of=contents.as_of(results.records, datetime.now(UTC)),
        # Nobody accepts a machine by it.
        margin=0.5,
        sources=resources(contents.sources(clone)),
        figures=contents.figures(results.records),
    )


def _file_problems(folder: Path, names: Sequence[str], statement: Statement) -> Iterator[str]:
    """Yield each file that is not the one that the statement has a digest of, or that no bundle has."""
    stated = {one.name: one.digest.sha256 for one in statement.subject}
    present = set(names) - {contents.STATEMENT, contents.STAMP}
    for name in sorted(present | stated.keys()):
        if name not in present:
            yield f"{name}: is missing"
        elif not contents.OURS.fullmatch(name):
            yield f"{name}: is no file of a bundle"
        elif name not in stated:
            yield f"{name}: was added; the statement does not name it"
        elif hash_file(folder / name) != stated[name]:
            yield f"{name}: its content was changed"


def _answering(folder: Path, envelope: Envelope, asked: Demand) -> Answering:
    """Return who signed and when; raises UserError where a signature or the time stamp is no good one."""
    signed, stamp, moment = signed_keys(envelope, asked.signers), folder / contents.STAMP, ""
    if asked.stamp_ca and stamp.is_file():
        moment = stamped_at(json_bytes(envelope), stamp.read_bytes(), asked.stamp_ca)
    return Answering(signed, stamp.is_file(), moment)


def _believed(stored: Stored, locks: Container[str]) -> Stored:
    """Return a record with what its samples give, and unpinned where nothing shows what it was pinned to."""
    record, environment = stored.record, stored.record.environment
    if environment.pinned and environment.lock_sha256 not in locks:
        changes = {"pinned": False, "unpinned_because": ("its lock is not in the bundle",)}
        environment = environment.model_copy(update=changes)
    given = {"summary": judge_trial(record), "environment": environment}
    return Stored(stored.path, record.model_copy(update=given))


def _stated_problems(
    stated: Predicate, results: Results, plans: Mapping[str, str], locks: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is stated of the files and they deny, and the plans and lock that nothing in them names."""
    where, records = contents.STATEMENT, results.records
    if (stated.session, stated.machine) not in {(one.id, one.machine) for one in results.sessions}:
        yield f"{where}: session {stated.session} of machine {stated.machine} is not in it"
    if contents.as_of(records, stated.as_of) != stated.as_of:
        yield f"{where}: no trial ended at {stated.as_of}"
    measured = {stored.path for stored in records if stored.record.measurement}
    for name in sorted(measured ^ stated.figures.keys()):
        yield f"{where}: its figures are not those of '{name}'"
    for sha256 in sorted(plans.keys() - {session.plan_sha256 for session in results.sessions}):
        yield f"plans/{plans[sha256]}: is no plan that a session ran"
    named = {stored.record.environment.lock_sha256 for stored in records}
    for sha256 in sorted(locks.keys() - named):
        yield f"docker/{locks[sha256]}: is the lock of no record"


def _other_figures(stated: Predicate, results: Results) -> Iterator[str]:
    """Yield each record whose raw samples give other figures here than where it was packed."""
    for path, record in ((stored.path, stored.record) for stored in results.records):
        packed = record.model_copy(update={"summary": stated.figures.get(path)})
        if wrong := differing_part(packed, record.summary):
            yield f"{path}: its raw samples do not give the '{wrong}' that is stated"


def _missing(results: Results, plans: Container[str], locks: Container[str]) -> Iterator[str]:
    """Yield the plans and lock that sessions and record name, and that are not in the bundle."""
    for session in results.sessions:
        if session.plan_sha256 not in plans:
            yield f"the plan '{session.plan}' as session {session.id} ran it"
    for environment in (stored.record.environment for stored in results.records):
        if environment.lock_sha256 and environment.lock_sha256 not in locks:
            yield f"the lock {environment.lock_sha256[:12]} of the environment '{environment.image}'"


def _other_sources(stated: Predicate, clone: Path) -> Iterator[str]:
    """Yield the name of each claim, card or table that this clone has otherwise."""
    there = {one.name: one.digest for one in stated.sources}
    here = {one.name: one.digest for one in resources(contents.sources(clone))}
    yield from (name for name in sorted(there.keys() | here.keys()) if there.get(name) != here.get(name))
