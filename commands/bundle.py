"""A bundle for a buyer who has to decide: packed with its clause, and verified to the last figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from commands.terminal import account_lines
from harness.bundle import archive, contents
from harness.bundle.contents import Manifest, Opened
from harness.bundle.validate import simulated
from harness.errors import GateError, GpudynoError, UserError
from harness.files import printed, sha256_of
from harness.machine import machine_id, state_folder
from harness.plan.plan_file import questions
from harness.record import Harness, store
from harness.run.assemble import harness
from report import text
from report.analysis import Analysis, AnalysisRequest, analyse, evidence_in
from report.buying.clause import MARGIN
from report.page import remake, render
from report.page.build import write

PURCHASE = "purchase.toml"
MOST_LISTED = 40


@dataclass(frozen=True, slots=True)
class Packing:
    """The switches of `bundle`."""

    out: Path | None = None
    session: str | None = None
    baseline: str | None = None
    margin: float = MARGIN
    key: Path | None = None
    with_prices: bool = False
    """Whether purchase.toml is packed, with the buyer's prices, which the page then shows."""


def pack(root: Path, how: Packing) -> Path:
    """Writes a bundle of one session, or of all sessions of the page, and prints what is in it."""
    if not 0 < how.margin < 1:
        raise UserError(f"a margin of {how.margin:g} is no share of a figure", remedy="give one such as 0.05")
    now = datetime.now(UTC)
    request = AnalysisRequest(
        now,
        how.session,
        machine_id(state_folder()),
        how.baseline,
        how.margin,
        committed=committed_sessions(root),
        questions=questions(root),
    )
    here = analyse(evidence_in(root), request)
    if here.came_with_clone:
        raise UserError(
            f"nothing has been measured on this machine yet, and session '{here.lead}' came with this clone",
            remedy="run `invoke build run` first, or name a session by --session",
        )
    if here.lead is None or not here.standing:
        raise UserError("nothing has been measured here yet", remedy="run `invoke build run` first")
    with TemporaryDirectory() as temporary:
        folder, page = Path(temporary) / "bundle", Path(temporary) / "page"
        folder.mkdir()
        sessions = [how.session] if how.session else _own(here)
        locks, notes = contents.gather(root, folder, sessions)
        if not how.with_prices:
            (folder / PURCHASE).unlink(missing_ok=True)
        packed = evidence_in(folder)
        for problem in (*packed.results.problems, *simulated(packed.results)):
            raise UserError(f"a record cannot be packed: {problem}", remedy="fetch it again or remove it")
        offered = [offer.date for offer in packed.purchase.offer] if packed.purchase else []
        manifest = Manifest(
            bundle=contents.LAYOUT,
            gpudyno=harness(root),
            as_of=contents.as_of(packed.results.records, now, offered),
            session=here.lead,
            baseline=how.baseline,
            margin=how.margin,
            sessions=tuple(sorted(session.id for session in packed.results.sessions)),
            locks=locks,
            notes=notes,
        )
        analysis = analyse(packed, _request(folder, manifest))
        (folder / contents.FIGURES).write_text(
            json.dumps(remake.figures(analysis), indent=1), encoding="utf-8"
        )
        write(analysis, page)
        for name in contents.names_in(page):
            archive.copy_into(folder / contents.PAGE, name, page / name)
        out = how.out or root / "report" / "out" / f"gpudyno-{here.lead}.tar.gz"
        if out.exists() and not out.is_file():
            raise UserError(f"'{out}' is no file that a bundle can replace", remedy="name another with --out")
        out.parent.mkdir(parents=True, exist_ok=True)
        contents.write(folder, manifest, out, key=how.key)
        _say_packed(out, analysis, manifest, how, prices=here.evidence.purchase is not None)
    return out


def committed_sessions(root: Path) -> frozenset[str]:
    """The sessions that the clone came with; none where it is no clone of git's."""
    listed = printed("git", "-C", str(root), "ls-tree", "-r", "-z", "--name-only", "HEAD", "--", "results")
    return frozenset(store.sessions_among((listed or "").split("\0")))


def _own(here: Analysis) -> list[str]:
    """Return the page's sessions, without other machines' sessions that came with the clone."""
    machines = {session.id: session.machine for session in here.evidence.results.sessions}
    came = here.request.committed
    return [name for name in here.standing if name not in came or machines[name] == here.request.machine]


def _request(folder: Path, manifest: Manifest) -> AnalysisRequest:
    """What the page of a bundle answers: from raw samples, whatever its records say of themselves."""
    return AnalysisRequest(
        manifest.as_of,
        session=manifest.session,
        baseline=manifest.baseline,
        margin=manifest.margin,
        questions=questions(folder),
    )


def analysis_of(opened: Opened) -> Analysis:
    """Return an opened bundle's analysis, computed again from its raw samples."""
    assert opened.manifest is not None
    return analyse(evidence_in(opened.folder), _request(opened.folder, opened.manifest))


def _say_packed(out: Path, analysis: Analysis, manifest: Manifest, how: Packing, *, prices: bool) -> None:
    results = analysis.evidence.results
    print(f"bundle: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    print(f"  SHA-256: {sha256_of(out)}")
    print(
        f"  {text.count(len(results.records), 'record')} of {text.count(len(results.sessions), 'session')}, "
        f"{text.count(len(manifest.locks), 'lock')}"
    )
    for line in account_lines(analysis.accounts):
        print(f"  {line}")
    for note in manifest.notes:
        print(f"  not in it: {note}")
    if analysis.evidence.purchase:
        print(f"  {PURCHASE} is in it, with your prices: send it to nobody who sells cards")
    elif prices:
        print(f"  not in it: {PURCHASE}, and no price of yours; --with-prices packs it")
    print(f"  signed with '{how.key.name}'" if how.key else "  not signed")
    if analysis.clause is None or analysis.clause.unproven:
        print("no clause for an order: it needs two valid runs of a work, none too short to rank")
    else:
        print(render.clause(analysis, f"invoke accept {out.name}"))


@contextmanager
def intact(path: Path) -> Iterator[Opened]:
    """A bundle, unpacked as long as it is used; raises GateError where it is not as it was packed."""
    with TemporaryDirectory() as folder:
        opened = contents.open_bundle(path, Path(folder))
        if opened.problems:
            raise GateError(
                f"'{path.name}' is not as it was packed: {text.clean(opened.problems[0], 500)}",
                remedy=f"see `invoke bundle --verify {path.name}`, and ask for it again",
            )
        yield opened


def verify(path: Path, signers: Path | None) -> None:
    """Checks a bundle's bytes, records and figures; raises GateError where anything differs, naming it."""
    with TemporaryDirectory() as folder:
        opened = contents.open_bundle(path, Path(folder), signers=signers)
        problems, manifest = list(opened.problems), opened.manifest
        packer = "" if manifest is None else _other_packer(manifest.gpudyno)
        print(f"{path.name}: {text.count(len(opened.names), 'file')}")
        if opened.signed is not None:
            unknown = "whose it is, is not known (--signers FILE names allowed ones)"
            whose = f"of {opened.signed.signer}" if opened.signed.signer else unknown
            print(f"  signature: good, {opened.signed.key}, {whose}")
        elif (opened.folder / contents.SIGNATURE).is_file() is False:
            print(
                "  signature: none, so nobody answers for its samples; a run by someone else would show more"
            )
        if manifest is not None:
            problems += _figure_problems(opened)
        for problem in problems:
            print(f"  DIFFERS: {text.clean(problem, 500)}", file=sys.stderr)
        if problems:
            raise GateError(
                f"{path.name}: not as they were packed: {text.count(len(problems), 'thing')}",
                remedy=packer and f"where figures alone differ, verify it there: {packer}",
            )
        print("  every byte, record and figure is as it was packed")


def _other_packer(packed: Harness) -> str:
    """The gpudyno that can verify what it packed, where that is not this one; empty where it is."""
    here = harness(Path(__file__).parents[1])
    if packed.version == here.version and packed.revision in (None, here.revision):
        return ""
    return f"gpudyno {packed.version}" + (f", commit {packed.revision}" if packed.revision else "")


def _figure_problems(opened: Opened) -> list[str]:
    """What differs from the figures that the raw samples give."""
    try:
        analysis = analysis_of(opened)
    except GpudynoError as error:
        return [f"{contents.PAGE}: cannot be made again ({error.problem})"]
    count = len(analysis.evidence.results.records)
    print(f"  records: {count}, each summary computed from raw samples")
    for line in account_lines(analysis.accounts):
        print(f"  {line}")
    packed, made = _packed_figures(opened.folder), remake.figures(analysis)
    print(f"  figures: {remake.count(made):,} figures made again from raw samples")
    problems = _page_problems(opened.folder, analysis)
    differ = ["is missing or no JSON"] if packed is None else remake.differences(packed, made)
    problems += [f"{contents.FIGURES}: {line}" for line in differ]
    if len(problems) > MOST_LISTED:
        problems = [*problems[:MOST_LISTED], f"{len(problems) - MOST_LISTED} more places differ"]
    return problems


def _packed_figures(folder: Path) -> dict[str, Any] | None:
    try:
        packed = json.loads((folder / contents.FIGURES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return packed if isinstance(packed, dict) else None


def _page_problems(folder: Path, analysis: Analysis) -> list[str]:
    """Files and words of the page that the analysis does not give; drawings are held by their bytes alone."""
    packed = folder / contents.PAGE
    with TemporaryDirectory() as temporary:
        written = write(analysis, Path(temporary), drawn=False)
        names, made = set(contents.names_in(packed)), set(contents.names_in(Path(temporary)))
        problems = [f"{contents.PAGE}/{name}: was added" for name in sorted(names - made)]
        problems += [f"{contents.PAGE}/{name}: is missing" for name in sorted(made - names)]
        for path in (written.html, written.markdown, *written.charts):
            name = path.relative_to(temporary)
            words = remake.other_words(packed / name, path)
            problems += [f"{contents.PAGE}/{name}: {line}" for line in words]
    return problems
