"""A bundle for whoever has to decide: packed with its clause, and verified to the last figure."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from harness.bundle import archive, bundle, challenge
from harness.bundle.bundle import Manifest, Opened
from harness.bundle.validate import simulated
from harness.data.check import sha256_of
from harness.engine.venv import VenvEngine
from harness.errors import GateError, GpudynoError, UserError
from harness.image.catalog import load_images
from harness.machine import machine_id, state_folder
from harness.run.setup import harness
from report import text
from report.analysis import METHODS, Analysis, Question, analyse, evidence_in
from report.buying.clause import MARGIN
from report.page import remake, render
from report.page.build import order_of, write
from report.page.parts import acceptance
from report.page.pdf import write as write_pdf
from report.trials.account import Account

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
    """Whether purchase.toml is packed, with the buyer's prices and limits, which the page then shows."""
    sheets: Path | None = None
    """Where to print the order as a PDF."""
    challenge: str | bool = ""
    """The text that is put into the order; a new one where none is given."""
    quiet: bool = False
    """Whether nothing is printed."""


def pack(root: Path, how: Packing) -> Path:
    """Writes a bundle of one session, or of all that the page stands on, and prints what is in it."""
    if not 0 < how.margin < 1:
        raise UserError(f"a margin of {how.margin:g} is no share of a figure", remedy="give one such as 0.05")
    now = datetime.now(UTC)
    question = Question(now, how.session, machine_id(state_folder()), how.baseline, how.margin)
    here = analyse(evidence_in(root), question)
    if here.lead is None or not here.standing:
        raise UserError("nothing has been measured here yet", remedy="run `invoke build run` first")
    with TemporaryDirectory() as temporary:
        folder, page = Path(temporary) / "bundle", Path(temporary) / "page"
        folder.mkdir()
        locks, notes = bundle.gather(root, folder, [how.session] if how.session else here.standing)
        if not how.with_prices:
            (folder / PURCHASE).unlink(missing_ok=True)
        packed = evidence_in(folder)
        for problem in (*packed.results.problems, *simulated(packed.results)):
            raise UserError(f"a record cannot be packed: {problem}", remedy="fetch it again or remove it")
        offered = [offer.date for offer in packed.purchase.offer] if packed.purchase else []
        manifest = Manifest(
            bundle=3,
            gpudyno=harness(root),
            as_of=bundle.as_of(packed.results.records, now, offered),
            session=here.lead,
            baseline=how.baseline,
            margin=how.margin,
            sessions=tuple(sorted(session.id for session in packed.results.sessions)),
            locks=locks,
            notes=notes,
        )
        analysis = analyse(packed, _question(manifest))
        (folder / bundle.FIGURES).write_text(json.dumps(remake.figures(analysis), indent=1), encoding="utf-8")
        write(analysis, page)
        for name in bundle.names_in(page):
            archive.copy_into(folder / bundle.PAGE, name, page / name)
        out = how.out or root / "report" / "out" / f"gpudyno-{here.lead}.tar.gz"
        if out.exists() and not out.is_file():
            raise UserError(f"'{out}' is no file that a bundle can replace", remedy="name another with --out")
        out.parent.mkdir(parents=True, exist_ok=True)
        bundle.write(folder, manifest, out, key=how.key)
        if not how.quiet:
            _say_packed(out, analysis, manifest, how, prices=here.evidence.purchase is not None)
    if how.sheets is not None:
        print_order(out, how.sheets, how.challenge)
    return out


def print_order(path: Path, target: Path, nonce: str | bool) -> None:
    """Prints what an order quotes of a bundle: page one; below it clause, hash of the file and challenge.

    Raises GateError for a bundle that is not as it was packed, UserError where it has no clause.
    """
    asked = nonce if isinstance(nonce, str) and nonce else challenge.new()
    challenge.refuse_malformed(asked)
    if target.suffix != ".pdf":
        raise UserError(f"'{target}' is no name of a PDF", remedy="let it end in .pdf")
    with intact(path) as opened, TemporaryDirectory() as folder:
        assert opened.manifest is not None
        analysis = analysis_of(opened, opened.manifest)
        clause, session = acceptance.view(analysis), analysis.leading_session
        if clause is None or session is None:
            raise UserError(
                f"'{path.name}' holds no work with two valid runs, so no clause for an order",
                remedy="ask for a longer session",
            )
        order = acceptance.Order(clause, path.name, sha256_of(path), asked, session.plan)
        page = Path(folder) / "order.html"
        page.write_text(render.render(order_of(analysis, order)).html, encoding="utf-8")
        target.parent.mkdir(parents=True, exist_ok=True)
        write_pdf(page, target, root=os.geteuid() == 0)
    print(f"order: {target}, with the challenge '{asked}'")


def _question(manifest: Manifest) -> Question:
    """What the page of a bundle answers: from raw samples, whatever its records say of themselves."""
    return Question(
        manifest.as_of,
        session=manifest.session,
        baseline=manifest.baseline,
        margin=manifest.margin,
    )


def analysis_of(opened: Opened, manifest: Manifest) -> Analysis:
    """An opened bundle's analysis, made anew from its raw samples."""
    return analyse(evidence_in(opened.folder), _question(manifest))


def _say_packed(out: Path, analysis: Analysis, manifest: Manifest, how: Packing, *, prices: bool) -> None:
    results = analysis.evidence.results
    print(f"bundle: {out} ({out.stat().st_size / 1e6:.2f} MB)")
    print(
        f"  {text.count(len(results.records), 'record')} of {text.count(len(results.sessions), 'session')}, "
        f"{text.count(len(manifest.locks), 'lock')}"
    )
    for line in account_lines(analysis.accounts):
        print(f"  {line}")
    for note in manifest.notes:
        print(f"  not in it: {note}")
    if analysis.evidence.purchase:
        print(f"  {PURCHASE} is in it, with your prices and limits: send it to nobody who sells cards")
    elif prices:
        print(f"  not in it: {PURCHASE}, and no price of yours; --with-prices packs it")
    print(f"  signed with '{how.key.name}'" if how.key else "  not signed")
    if analysis.clause is None:
        print("no acceptance clause: no work of the leading session has two valid runs")
    else:
        print(render.clause(analysis, f"invoke accept {out.name}"))


def account_lines(accounts: Iterable[Account]) -> Iterator[str]:
    """How many trials each machine started, what became of each, and what of it is missing here."""
    for account in accounts:
        fates = ", ".join(f"{number:,} {fate}" for fate, number in account.fates)
        yield f"{text.clean(account.label)}: {text.count(account.started, 'trial')} started: {fates}"
        missing = {
            "session that is not here": account.absent_sessions,
            "session whose ledger is not here": account.lost_ledgers,
            "record that stands in no ledger": account.unentered,
            "planned trial that left no trace": account.without_trace,
        }
        yield from (f"  {number:,} × {what}" for what, number in missing.items() if number)
        yield from (
            f"  the plan '{text.clean(plan, 64)}' changed {text.count(times, 'time')} between its sessions"
            for plan, times in account.plan_changes
        )


@contextmanager
def intact(path: Path) -> Iterator[Opened]:
    """A bundle, unpacked as long as it is used; raises GateError where it is not as it was packed."""
    with TemporaryDirectory() as folder:
        opened = bundle.open_bundle(path, Path(folder))
        if opened.problems:
            raise GateError(
                f"'{path.name}' is not as it was packed: {text.clean(opened.problems[0], 500)}",
                remedy=f"see `invoke bundle --verify {path.name}`, and ask for it again",
            )
        yield opened


def check(root: Path, path: str, signers: Path | None, nonce: str | bool, sheets: Path | None = None) -> None:
    """Verifies a bundle, with the answers to a challenge; by itself a challenge without a text is made.

    With `sheets` the challenge is that of the order, which is printed there.
    """
    if path and sheets is not None:
        verify(Path(path), signers, root)
        print_order(Path(path), sheets, nonce)
    elif path and not isinstance(nonce, bool):
        verify(Path(path), signers, root, nonce)
    elif nonce is True and not path:
        print(challenge.new())
    else:
        raise UserError(
            "--challenge by itself makes a text, and with --verify FILE holds answers against one",
            remedy="write `invoke bundle --verify FILE --challenge TEXT`",
        )


def _challenge_problems(root: Path, opened: Opened, nonce: str) -> list[str]:
    """What of the answers came out otherwise here; prints how many are alike and what is not proven."""
    challenge.refuse_malformed(nonce)
    venv = VenvEngine(root)
    interpreter = venv.built(load_images(root).image("cpu")).interpreter
    assert interpreter is not None
    records = [stored.record for stored in evidence_in(opened.folder).results.records]
    found = challenge.answered(records, nonce, interpreter, root)
    print(
        f"  challenge '{nonce}': {text.count(found.alike, 'answer')} made again, alike; this code ran after"
    )
    print("    the text was known: how fast, and on which device, an answer does not show")
    for workload, count in found.unproven.items():
        print(f"    not proven: {text.count(count, 'trial')} of {text.clean(workload, 64)}")
    if found.left:
        print(f"    not made again, for want of time: {text.count(found.left, 'answer')}")
    return [f"challenge: {problem}" for problem in found.differing]


def verify(path: Path, signers: Path | None, root: Path = Path(), nonce: str = "") -> None:
    """Checks a bundle's bytes, records and figures, and with a nonce its answers, in the clone's environment.

    Raises GateError where anything differs, naming it.
    """
    with TemporaryDirectory() as folder:
        opened = bundle.open_bundle(path, Path(folder), signers=signers)
        problems, by_method = list(opened.problems), ""
        print(f"{path.name}: {text.count(len(opened.names), 'file')}")
        if opened.signed is not None:
            unknown = "whose it is, is not known (--signers FILE names allowed ones)"
            whose = f"of {opened.signed.signer}" if opened.signed.signer else unknown
            print(f"  signature: good, {opened.signed.key}, {whose}")
        elif (opened.folder / bundle.SIGNATURE).is_file() is False:
            print(
                "  signature: none, so nobody answers for its samples; a run by someone else would show more"
            )
        if opened.manifest is not None:
            more, by_method = _figure_problems(opened, opened.manifest)
            problems += more
        if nonce and not problems:
            problems += _challenge_problems(root, opened, nonce)
        for problem in problems:
            print(f"  DIFFERS: {text.clean(problem, 500)}", file=sys.stderr)
        if problems:
            raise GateError(f"{path.name}: not as they were packed: {text.count(len(problems), 'thing')}")
        print(
            f"  whole; figures by {by_method}"
            if by_method
            else "  every byte, record and figure is as it was packed"
        )


def _figure_problems(opened: Opened, manifest: Manifest) -> tuple[list[str], str]:
    """What differs from the figures that the raw samples give; and the method, where it is not ours."""
    try:
        analysis = analysis_of(opened, manifest)
    except GpudynoError as error:
        return [f"{bundle.PAGE}: cannot be made again ({error.problem})"], ""
    count = len(analysis.evidence.results.records)
    print(f"  records: {count}, each summary computed from raw samples")
    for line in account_lines(analysis.accounts):
        print(f"  {line}")
    for line in remake.older_summaries(analysis):
        print(f"  {line}")
    packed, made, by_method = _packed_figures(opened.folder), remake.figures(analysis), ""
    if packed is None and manifest.bundle > 1:
        return [f"{bundle.FIGURES}: is missing or no JSON"], ""
    print(f"  figures: {remake.count(made):,} figures made again from raw samples")
    differing = list(remake.differences(packed, made)) if packed else []
    problems = [f"{bundle.FIGURES}: {line}" for line in differing]
    if packed is None:
        by_method = "method 1: this bundle was packed before its figures lay beside the page"
    elif packed.get("methods") != METHODS:
        for line in differing[:MOST_LISTED]:
            print(f"  by the present methods: {line}")
        problems, by_method = [], f"methods {packed.get('methods')}, those of here are {METHODS}"
    if by_method or manifest.gpudyno.version != version("gpudyno"):
        print(f"  page: of the words of gpudyno {manifest.gpudyno.version} the speeds alone were compared")
        problems = _speed_problems(opened.folder, analysis) + problems
    else:
        problems = _page_problems(opened.folder, analysis) + problems
    if len(problems) > MOST_LISTED:
        problems = [*problems[:MOST_LISTED], f"{len(problems) - MOST_LISTED} more places differ"]
    return problems, by_method


def _packed_figures(folder: Path) -> dict[str, Any] | None:
    try:
        packed = json.loads((folder / bundle.FIGURES).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    return packed if isinstance(packed, dict) else None


def _speed_problems(folder: Path, analysis: Analysis) -> list[str]:
    """Speeds on the page of another release that nothing made again is near."""
    with TemporaryDirectory() as temporary:
        written = write(analysis, Path(temporary), drawn=False)
        known = [*remake.speeds_of(analysis), *remake.speeds_on(written.markdown)]
        return [
            f"{bundle.PAGE}/{path.name}: it says {speed:,g} a second, which no figure made again is near"
            for path in sorted((folder / bundle.PAGE).glob("*.*"))
            if path.suffix in (written.html.suffix, written.markdown.suffix)
            for speed in remake.speeds_on(path)
            if not any(abs(speed / each - 1) <= remake.NEAR for each in known if each)
        ]


def _page_problems(folder: Path, analysis: Analysis) -> list[str]:
    """Files and words of the page that the analysis does not give; drawings are held by their bytes alone."""
    packed = folder / bundle.PAGE
    with TemporaryDirectory() as temporary:
        written = write(analysis, Path(temporary), drawn=False)
        names, made = set(bundle.names_in(packed)), set(bundle.names_in(Path(temporary)))
        problems = [f"{bundle.PAGE}/{name}: was added" for name in sorted(names - made)]
        problems += [f"{bundle.PAGE}/{name}: is missing" for name in sorted(made - names)]
        for path in (written.html, written.markdown, *written.charts):
            name = path.relative_to(temporary)
            words = remake.other_words(packed / name, path)
            problems += [f"{bundle.PAGE}/{name}: {line}" for line in words]
    return problems
