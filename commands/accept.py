"""Whether a delivered machine is the one that was ordered, reaches its figures, and later keeps them."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from commands import measure
from commands.offer import Packing, analysis_of, intact, pack
from harness.errors import GateError, GpudynoError, UserError
from harness.machine import look
from harness.plan import plan
from harness.record.store import session_records
from harness.run.session import find_open
from harness.settings import Settings
from report import text
from report.analysis import Analysis, Evidence, Question, analyse, evidence_in
from report.buying import clause, life
from report.buying.clause import DemandResult
from report.buying.life import Life, Order
from report.buying.machine import Difference, disturbed, not_as_ordered, other_machine
from report.expected.figures import read_tables
from report.expected.sizes import read_pairs, sizes
from report.page import render
from report.trials.reading import read

WHOLE_PLAN = "measure the whole plan, with `invoke accept` and the bundle alone"


def accept(root: Path, settings: Settings, path: Path, records: str | None) -> None:
    """Answers pass, fail, or not the machine that was ordered; the last two by GateError.

    A machine that passed before is held to what it did then. Takes the session `records`, else runs the
    bundle's plan anew. Raises UserError where too little was measured to answer.
    """
    with intact(path) as opened:
        manifest = opened.manifest
        ordered = analysis_of(opened, manifest) if manifest else None
        if manifest is None or ordered is None or ordered.clause is None:
            raise UserError(
                f"'{path.name}' holds no work with two valid runs", remedy="ask for a longer session"
            )
        if records in manifest.sessions:
            raise UserError(
                f"session {records} is one that the bundle itself stands on, and no delivery",
                remedy=WHOLE_PLAN,
            )
        order = Order(ordered.clause, [trial.record for trial in ordered.own], manifest.sessions)
        print(render.clause(ordered, f"invoke accept {path.name}"))
        if records is None:
            records = _measured(root, settings, path, ordered, order)
        _answer(root, path, records, order)


def _measured(root: Path, settings: Settings, path: Path, ordered: Analysis, order: Order) -> str:
    """A session of the bundle's plan, gone on with where an earlier call was stopped.

    Another machine is told before anything runs, unless it was accepted. A session that the bundle holds is
    never gone on with, and of an accepted machine none that is whole.
    """
    session, first, here = ordered.leading_session, order.records[0], look()[0]
    assert session is not None
    evidence = _on_record(root, path)
    known = read(evidence.results.records, evidence.cards, evidence.results.sessions)
    accepted = life.was_accepted(order, life.visits(known), here)
    if not accepted:
        _refuse_other(other_machine(first.machine, here, device=first.trial.asked.device))
    if plan.load(root, session.plan).sha256 != session.plan_sha256:
        raise UserError(
            f"the plan '{session.plan}' is not the one that was ordered by",
            remedy="copy plans/ out of the bundle into this clone's",
        )
    budget = f"{session.budget_seconds:.0f}s" if session.budget_seconds else settings.budget
    chosen = settings.model_copy(update={"plan": session.plan, "budget": budget})
    opened = find_open(root, session.plan)
    ended = opened is not None and len(opened.trials) == len(
        {stored.record.trial.id for stored in session_records(root, opened)}
    )
    anew = opened is not None and (opened.id in order.sessions or (accepted and ended))
    outcome = measure.run(root, chosen, measure.How(new_session=anew))
    assert outcome is not None
    return outcome.session.id


def _refuse_other(found: Sequence[Difference]) -> None:
    differences = [
        text.clean(f"{each.what}: ordered {each.before}, delivered {each.now}", 200) for each in found
    ]
    for difference in differences:
        print(f"  {difference}")
    if differences:
        raise GateError(f"NOT THE MACHINE THAT WAS ORDERED: {differences[0]}")


def _answer(root: Path, path: Path, session: str, order: Order) -> None:
    delivered = analyse(_on_record(root, path), Question(datetime.now(UTC), session=session))
    since = life.life(order, life.visits(delivered.trials), session)
    if since is not None:
        _answer_of(since, root, path, session)
        return
    records = [trial.record for trial in delivered.own]
    _refuse_other(not_as_ordered(order.records, records))
    failures = [trial for trial in delivered.own if trial.failure is not None]
    findings = clause.judge(order.clause, delivered.own_cells, failures)
    print(f"\nDelivered, session {session}:")
    for finding in findings:
        print(f"  {_sentence(finding)}")
    for line in disturbed(records):
        print(line)
    _refuse_missed(findings, "FAIL: {} of {} figures were not reached")
    _keep(root, path, session)
    print("PASS")


def _answer_of(since: Life, root: Path, path: Path, session: str) -> None:
    """What an accepted machine has kept; a session that answers is packed, whatever it says."""
    rows = [row for table in read_tables(root).values() for row in table]
    released = sizes(read_pairs(root, rows)).get("software") if since.other_release else None
    said, drawn = render.life(since, released)
    print(f"\n{said}")
    for line in disturbed(since.visits[-1].records):
        print(line)
    results = since.results[-1]
    if not clause.unanswered(results):
        _keep(root, path, session, drawn)
    _refuse_missed(results, "NOT KEPT: {} of {} figures fell too far since the machine was accepted")
    print("KEPT")


def _refuse_missed(findings: Sequence[DemandResult], failed: str) -> None:
    count = sum(finding.passed is False for finding in findings)
    if count:
        raise GateError(failed.format(count, len(findings)))
    for finding in clause.unanswered(findings):
        raise UserError(f"{finding.demand.what}: {finding.why}, so there is no answer", remedy=WHOLE_PLAN)


def _beside(path: Path, session: str) -> Path:
    """Where a session is kept: in the folder of the order's bundle."""
    return path.resolve().with_name(f"{path.name.removesuffix('.tar.gz')}-{session}.tar.gz")


def _on_record(root: Path, path: Path) -> Evidence:
    """What this clone measured, and the sessions that earlier answers kept beside the order's bundle."""
    here = evidence_in(root, purchase=False)
    found = here.results
    pattern = _beside(Path(glob.escape(path.name)), "????????-??????").name
    for kept in sorted(path.resolve().parent.glob(pattern)):
        with intact(kept) as opened:
            there = evidence_in(opened.folder, purchase=False).results
        known = {session.id for session in found.sessions}
        records = (stored for stored in there.records if stored.record.session not in known)
        sessions = (session for session in there.sessions if session.id not in known)
        found = replace(found, records=(*found.records, *records), sessions=(*found.sessions, *sessions))
    return replace(here, results=found)


def _keep(root: Path, path: Path, session: str, drawn: bytes = b"") -> None:
    """Packs a session beside the order's bundle, with the picture of all; what cannot be kept is told."""
    kept = _beside(path, session)
    try:
        if not kept.exists():
            pack(root, Packing(out=kept, session=session, quiet=True))
        print(f"\nKeep them beside each other: {path.name}, {kept.name}")
        if drawn:
            picture = kept.with_suffix("").with_suffix(".svg")
            picture.write_bytes(drawn)
            print(f"picture: {picture}")
    except (OSError, GpudynoError) as error:
        print(f"\nNot kept beside {path.name} ({error}): `invoke bundle --session {session}` packs it")


def _sentence(finding: DemandResult) -> str:
    word = {True: "reached", False: "NOT REACHED", None: "NOT KNOWN"}[finding.passed]
    if finding.ratio is None:
        return f"{word}: {finding.demand.what}: {finding.why}"
    interval = "" if finding.low is None else f", 95 % interval {finding.low:.3f} to {finding.high:.3f}"
    hours = ", hours ± 1 % assumed" if interval and finding.demand.figure.blocks_assumed else ""
    return f"{word}: {finding.demand.what}: {finding.ratio:.3f} of its figure{interval}{hours}"
