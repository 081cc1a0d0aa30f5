"""The verbs that need both harness and report: each gathers, calls both, and prints; for tasks.py alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from harness.bundle import archive, bundle
from harness.bundle.bundle import Manifest, Opened
from harness.errors import GateError, GpudynoError, UserError
from harness.machine import machine_id, state_folder
from harness.record import Harness, store
from harness.record.claims import load_claims
from harness.run.setup import revision
from report import analysis, text
from report.acceptance import clause
from report.acceptance.clause import Clause
from report.comparisons import unit_spread
from report.cost.purchase import load_purchase
from report.page import remake
from report.trials.table import trials_of

PURCHASE = "purchase.toml"


@dataclass(frozen=True, slots=True)
class Packing:
    """The switches of `bundle`."""

    out: Path | None = None
    session: str | None = None
    baseline: str | None = None
    margin: float = clause.MARGIN
    key: Path | None = None
    purchase: bool = True


def pack(root: Path, how: Packing) -> Path:
    """Writes a bundle of one session, or of all that the page stands on, and prints what is in it."""
    if not 0 < how.margin < 1:
        raise UserError(f"a margin of {how.margin:g} is no share of a figure", remedy="give one such as 0.05")
    shelf, now = store.read_all(root), datetime.now(UTC)
    lead, standing = analysis.stands_on(
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
        bundle.write(folder, manifest, out, key=how.key)
        _say_packed(out, folder, manifest, packed, how)
    return out


def _quoted(folder: Path) -> list[date]:
    """The days of the buyer's quotes."""
    purchase = load_purchase(folder)
    return [quote.date for quote in purchase.quote] if purchase else []


def _page(folder: Path, work: Path, manifest: Manifest) -> Path:
    return remake.page_from_raw(
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
    return clause.lines(wanted, f"invoke accept {name}")


def _clause(folder: Path, manifest: Manifest) -> Clause | None:
    table = analysis.table_of(store.read_all(folder), folder, from_raw=True)
    cells = analysis.session_cells(table, manifest.session or "")
    return clause.clause(cells, unit_spread.units_of(trials_of(table), cells), margin=manifest.margin)


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
            print(f"  DIFFERS: {text.clean(problem, 500)}", file=sys.stderr)
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
    found = remake.differences(packed, anew)
    figures = remake.figures(packed)
    print(f"  page: {figures:,} figures made again from raw samples; it was made by gpudyno {own}")
    said = [f"{bundle.PAGE}/{one.sentence()}" for one in found[: remake.MOST_LISTED]]
    if len(found) > remake.MOST_LISTED:
        said.append(f"{bundle.PAGE}: {len(found) - remake.MOST_LISTED} more places differ")
    return said


def _refuse_damaged(path: Path, opened: Opened) -> None:
    if opened.problems:
        raise GateError(
            f"'{path.name}' is not as it was packed: {text.clean(opened.problems[0], 500)}",
            remedy=f"see `invoke verify {path.name}`, and ask for it again",
        )
