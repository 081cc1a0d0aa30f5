"""The verbs that need both harness and report: each gathers, calls both, and prints; for tasks.py alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from harness import archive, bundle, store
from harness.bundle import Manifest, Opened
from harness.claims import load_claims
from harness.errors import GateError, GpudynoError, UserError
from harness.gate import session_problems
from harness.machine import machine_id, state_folder
from harness.ordered import disturbed, not_as_ordered, other_machine
from harness.prepare import revision
from harness.purchase import load_purchase
from harness.record import Harness, Record, Session, differences
from harness.settings import Settings
from report import acceptance, again, compare, delivered, sides, words
from report.acceptance import Clause
from report.delivered import Finding
from report.page import build as build_page

PURCHASE = "purchase.toml"
WHOLE_PLAN = "measure the whole plan, with `invoke accept` and the bundle alone"


def compare_two(root: Path, first: str, second: str, fail_below: float | None) -> None:
    """Prints two sides' figures; with `fail_below`, raises GateError where a work is slower than that."""
    shelf = store.read_all(root)
    found = compare.compare(sides.rows_of(shelf, root), first, second)
    print("\n".join(compare.lines(found)))
    records = {stored.path: stored.record for stored in shelf.records}
    for line in _machines_differ(found, records):
        print(line)
    if fail_below is None:
        return
    refused = compare.below(found, fail_below)
    print(
        f"\nGate: a work fails where the upper end of its interval lies below {fail_below:g}, so that noise "
        "alone rarely closes it."
    )
    for line in refused:
        print(f"  FAILS: {line}")
    if refused:
        raise GateError(f"'{first}' is below {fail_below:g} of '{second}' in {len(refused)} ways")
    print("  passed")


def _machines_differ(found: compare.Comparison, records: dict[str, Record]) -> list[str]:
    """What differs between the machines of the pairs, each once."""
    said: dict[str, None] = {}
    for pair in found.pairs:
        one, other = (records[cell.rows[0].path].machine for cell in (pair.second, pair.first))
        said |= dict.fromkeys(differences(one, other))
    return (
        [
            "",
            f"The machines differ ('{found.second}' → '{found.first}'):",
            *(f"  {words.clean(x, 200)}" for x in said),
        ]
        if said
        else []
    )


@dataclass(frozen=True, slots=True)
class Packing:
    """The switches of `bundle`."""

    out: Path | None = None
    session: str | None = None
    baseline: str | None = None
    margin: float = acceptance.MARGIN
    key: Path | None = None
    purchase: bool = True


def pack(root: Path, how: Packing) -> Path:
    """Writes a bundle of one session, or of all that the page stands on, and prints what is in it."""
    if not 0 < how.margin < 1:
        raise UserError(f"a margin of {how.margin:g} is no share of a figure", remedy="give one such as 0.05")
    shelf, now = store.read_all(root), datetime.now(UTC)
    lead, standing = sides.stands_on(
        shelf,
        root,
        load_claims(root),
        session=how.session,
        machine=machine_id(state_folder()),
        baseline=how.baseline,
        now=now,
    )
    if lead is None or not standing:
        raise UserError("nothing has been measured here yet", remedy="run `invoke build run` first")
    with TemporaryDirectory() as temporary:
        folder = Path(temporary) / "bundle"
        folder.mkdir()
        locks, notes = bundle.gather(root, folder, [how.session] if how.session else standing)
        if not how.purchase:
            (folder / PURCHASE).unlink(missing_ok=True)
        packed = store.read_all(folder)
        for problem in packed.problems:
            raise UserError(f"a record cannot be packed: {problem}", remedy="fetch it again or remove it")
        commit, changed = revision(root)
        manifest = Manifest(
            bundle=1,
            gpudyno=Harness(version=version("gpudyno"), revision=commit, modified=changed),
            as_of=bundle.as_of(packed.records, now, _quoted(folder)),
            session=lead,
            baseline=how.baseline,
            margin=how.margin,
            sessions=tuple(sorted(session.id for session in packed.sessions)),
            locks=locks,
            notes=notes,
        )
        page = _page(folder, Path(temporary) / "work", manifest)
        for name in bundle.names_in(page):
            archive.copy_into(folder / bundle.PAGE, name, page / name)
        out = how.out or root / "report" / "out" / f"gpudyno-{lead}.tar.gz"
        out.parent.mkdir(parents=True, exist_ok=True)
        bundle.seal(folder, manifest, out, key=how.key)
        _say_packed(out, folder, manifest, packed, how)
    return out


def _quoted(folder: Path) -> list[date]:
    """The days of the buyer's quotes."""
    purchase = load_purchase(folder)
    return [quote.date for quote in purchase.quote] if purchase else []


def _page(folder: Path, work: Path, manifest: Manifest) -> Path:
    return again.page_from_raw(
        folder,
        work,
        session=manifest.session,
        baseline=manifest.baseline,
        margin=manifest.margin,
        now=manifest.as_of,
    )


def _say_packed(out: Path, folder: Path, manifest: Manifest, packed: store.Shelf, how: Packing) -> None:
    print(f"bundle: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    print(f"  {len(packed.records)} records of {len(packed.sessions)} sessions, {len(manifest.locks)} locks")
    for note in manifest.notes:
        print(f"  not in it: {note}")
    if (folder / PURCHASE).is_file():
        print(f"  {PURCHASE} is in it, with your prices and limits; --no-purchase leaves it out")
    print(f"  signed with '{how.key.name}'" if how.key else "  not signed")
    for line in clause_lines(folder, manifest, out.name):
        print(line)


def clause_lines(folder: Path, manifest: Manifest, name: str) -> tuple[str, ...]:
    """The acceptance clause of an unpacked bundle, or why there is none."""
    wanted = _clause(folder, manifest)
    if wanted is None:
        return ("no acceptance clause: no work of the leading session has two valid runs",)
    return acceptance.lines(wanted, f"invoke accept {name}")


def _clause(folder: Path, manifest: Manifest) -> Clause | None:
    rows = sides.rows_of(store.read_all(folder), folder, from_raw=True)
    cells = sides.session_cells(rows, manifest.session or "")
    return acceptance.clause(cells, acceptance.units_of(rows, cells), margin=manifest.margin)


@contextmanager
def _opened(path: Path, signers: Path | None = None) -> Iterator[tuple[Opened, Path]]:
    with TemporaryDirectory() as temporary:
        folder, work = Path(temporary) / "bundle", Path(temporary) / "work"
        folder.mkdir()
        work.mkdir()
        yield bundle.open_bundle(path, folder, signers=signers), work


def verify(path: Path, signers: Path | None) -> None:
    """Checks a bundle's bytes, records and figures; raises GateError where anything differs, naming it."""
    with _opened(path, signers) as (opened, work):
        problems = list(opened.problems)
        print(f"{path.name}: {len(opened.names)} files")
        if opened.signed is not None:
            print(f"  signature: good, {opened.signed.key}, {_whose(opened.signed.signer)}")
        elif (opened.folder / bundle.SIGNATURE).is_file() is False:
            print("  signature: none")
        if opened.manifest is not None:
            problems += _page_problems(opened, opened.manifest, work)
        print(f"  records: {len(store.read_all(opened.folder).records)}, each summary computed anew")
        for problem in problems:
            print(f"  DIFFERS: {words.clean(problem, 500)}", file=sys.stderr)
        if problems:
            raise GateError(f"{path.name}: {len(problems)} things are not as they were packed")
        print("  every byte, record and figure is as it was packed")


def _whose(signer: str | None) -> str:
    return f"of {signer}" if signer else "whose it is, is not known (--signers FILE names allowed ones)"


def _page_problems(opened: Opened, manifest: Manifest, work: Path) -> list[str]:
    own = f"{manifest.gpudyno.version} ({(manifest.gpudyno.revision or 'no revision')[:12]})"
    packed = opened.folder / bundle.PAGE
    try:
        anew = _page(opened.folder, work, manifest)
    except GpudynoError as error:
        return [f"{bundle.PAGE}: cannot be made again ({error.problem})"]
    found = again.differences(packed, anew)
    print(
        f"  page: {again.figures(packed):,} figures made again from raw samples; it was made by gpudyno {own}"
    )
    said = [f"{bundle.PAGE}/{one.sentence()}" for one in found[: again.MOST_LISTED]]
    if len(found) > again.MOST_LISTED:
        said.append(f"{bundle.PAGE}: {len(found) - again.MOST_LISTED} more places differ")
    return said


@contextmanager
def merged(root: Path, paths: Sequence[Path]) -> Iterator[tuple[Path, str | None]]:
    """A folder with the records of several bundles and this clone's claims and cards, and the first's lead.

    Raises GateError for a bundle that is not as it was packed, UserError where two hold one record otherwise.
    """
    with TemporaryDirectory() as temporary:
        clone, lead = Path(temporary) / "clone", None
        for name in (*bundle.CLONE, PURCHASE):
            if (root / name).is_file():
                archive.copy_into(clone, name, root / name)
        for path in sorted((root / "results" / "claims").glob("*.toml")):
            archive.copy_into(clone, path.relative_to(root).as_posix(), path)
        for path in paths:
            with _opened(path) as (opened, _):
                _refuse_damaged(path, opened)
                lead = lead or (opened.manifest.session if opened.manifest else None)
                _take_records(opened, clone, path)
        for problem in session_problems(clone):
            raise UserError(f"two bundles hold one session: {problem}", remedy="ask why")
        yield clone, lead


def _take_records(opened: Opened, clone: Path, path: Path) -> None:
    for name in opened.names:
        if not name.startswith("results/") or not name.endswith(".json"):
            continue
        there = clone / name
        if there.is_file() and there.read_bytes() != (opened.folder / name).read_bytes():
            raise UserError(
                f"'{path.name}' and another bundle hold '{name}' with other content", remedy="ask why"
            )
        archive.copy_into(clone, name, opened.folder / name)


def _refuse_damaged(path: Path, opened: Opened) -> None:
    if opened.problems:
        raise GateError(
            f"'{path.name}' is not as it was packed: {words.clean(opened.problems[0], 500)}",
            remedy=f"see `invoke verify {path.name}`, and ask for it again",
        )


def report_on(root: Path, out: Path, paths: Sequence[Path], baseline: str | None, session: str) -> None:
    """The page of several bundles, equal work side by side."""
    with merged(root, paths) as (clone, lead):
        built = build_page(clone, out, baseline=baseline, session=session or lead, now=datetime.now(UTC))
    for warning in built.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"report: {built.html}\n        {built.markdown}")


def accept(root: Path, settings: Settings, path: Path, records: str | None) -> None:
    """Answers pass, fail, or not the machine that was ordered; the last two by GateError.

    Takes the session `records`, else runs the bundle's plan anew. Raises UserError where too little was
    measured to answer.
    """
    with _opened(path) as (opened, _):
        _refuse_damaged(path, opened)
        manifest = opened.manifest
        wanted = _clause(opened.folder, manifest) if manifest else None
        if manifest is None or wanted is None:
            raise UserError(
                f"'{path.name}' holds no work with two valid runs", remedy="ask for a longer session"
            )
        if records in manifest.sessions:
            raise UserError(
                f"session {records} is one that the bundle itself stands on, and no delivery",
                remedy=WHOLE_PLAN,
            )
        shelf = store.read_all(opened.folder)
        ordered = next(s.record for s in shelf.records if s.record.session == manifest.session)
        session = next(one for one in shelf.sessions if one.id == manifest.session)
        print("\n".join(acceptance.lines(wanted, f"invoke accept {path.name}")))
        if records is None:
            records = _measured(root, settings, session, ordered)
        _answer(
            root, records, wanted, [s.record for s in shelf.records if s.record.session == manifest.session]
        )


def _measured(root: Path, settings: Settings, session: Session, ordered: Record) -> str:
    """A new session of the bundle's plan; another machine is told before anything runs."""
    from harness import plan, verbs
    from harness.machine import fingerprint

    _refuse_other(other_machine(ordered.machine, fingerprint(), device=ordered.trial.asked.device))
    if plan.load(root, session.plan).sha256 != session.plan_sha256:
        raise UserError(
            f"the plan '{session.plan}' is not the one that was ordered by",
            remedy=f"copy plans/{session.plan}.toml out of the bundle into plans/",
        )
    budget = f"{session.budget_seconds:.0f}s" if session.budget_seconds else settings.budget
    chosen = settings.model_copy(update={"plan": session.plan, "budget": budget})
    before = {one.id for one in store.read_all(root).sessions}
    verbs.run(root, chosen, verbs.How(new_session=True))
    after = [one.id for one in store.read_all(root).sessions if one.id not in before]
    return after[-1]


def _refuse_other(fields: Sequence[str]) -> None:
    said = [words.clean(field, 200) for field in fields]
    for one in said:
        print(f"  {one}")
    if said:
        raise GateError(f"NOT THE MACHINE THAT WAS ORDERED: {said[0]}")


def _answer(root: Path, session: str, wanted: Clause, ordered: Sequence[Record]) -> None:
    shelf = store.read_all(root)
    records = [stored.record for stored in shelf.records if stored.record.session == session]
    if not records:
        raise UserError(f"there is no record of session '{session}'", remedy="name a session in results/")
    _refuse_other(not_as_ordered(ordered, records))
    rows = sides.rows_of(shelf, root, from_raw=True)
    failures = [row for row in rows if row.session == session and row.failure is not None]
    found = delivered.judge(wanted, sides.session_cells(rows, session), failures)
    print(f"\nDelivered, session {session}:")
    for one in found:
        print(f"  {_finding(one)}")
    for line in disturbed(records):
        print(line)
    failed = [one for one in found if one.passed is False]
    if failed:
        raise GateError(f"FAIL: {len(failed)} of {len(found)} figures were not reached")
    for one in delivered.unanswered(found):
        raise UserError(f"{one.demand.what}: {one.why}, so there is no answer", remedy=WHOLE_PLAN)
    print("PASS")


def _finding(one: Finding) -> str:
    word = {True: "reached", False: "NOT REACHED", None: "NOT KNOWN"}[one.passed]
    if one.ratio is None:
        return f"{word}: {one.demand.what}: {one.why}"
    spread = "" if one.low is None else f", 95 % interval {one.low:.3f} to {one.high:.3f}"
    return f"{word}: {one.demand.what}: {one.ratio:.3f} of its figure{spread}"
