"""Whether a delivered machine is the one that was ordered, and as fast."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from commands import measure
from commands.offer import analysis_of, opened_bundle, refuse_damaged
from harness.errors import GateError, UserError
from harness.machine import fingerprint
from harness.plan import plan
from harness.record import Record, Session, store
from harness.settings import Settings
from report import text
from report.acceptance import clause, delivery
from report.acceptance.clause import Clause
from report.acceptance.delivery import DemandResult
from report.acceptance.machine import disturbed, not_as_ordered, other_machine
from report.analysis import Question, analyse, evidence_in

WHOLE_PLAN = "measure the whole plan, with `invoke accept` and the bundle alone"


def accept(root: Path, settings: Settings, path: Path, records: str | None) -> None:
    """Answers pass, fail, or not the machine that was ordered; the last two by GateError.

    Takes the session `records`, else runs the bundle's plan anew. Raises UserError where too little was
    measured to answer.
    """
    with opened_bundle(path) as opened:
        refuse_damaged(path, opened)
        manifest = opened.manifest
        wanted = analysis_of(opened, manifest).clause if manifest else None
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
        print("\n".join(clause.lines(wanted, f"invoke accept {path.name}")))
        if records is None:
            records = _measured(root, settings, session, ordered)
        _answer(
            root, records, wanted, [s.record for s in shelf.records if s.record.session == manifest.session]
        )


def _measured(root: Path, settings: Settings, session: Session, ordered: Record) -> str:
    """A new session of the bundle's plan; another machine is told before anything runs."""
    _refuse_other(other_machine(ordered.machine, fingerprint(), device=ordered.trial.asked.device))
    if plan.load(root, session.plan).sha256 != session.plan_sha256:
        raise UserError(
            f"the plan '{session.plan}' is not the one that was ordered by",
            remedy=f"copy plans/{session.plan}.toml out of the bundle into plans/",
        )
    budget = f"{session.budget_seconds:.0f}s" if session.budget_seconds else settings.budget
    chosen = settings.model_copy(update={"plan": session.plan, "budget": budget})
    before = {one.id for one in store.read_sessions(root)}
    measure.run(root, chosen, measure.How(new_session=True))
    after = [one.id for one in store.read_sessions(root) if one.id not in before]
    return after[-1]


def _refuse_other(fields: Sequence[str]) -> None:
    said = [text.clean(field, 200) for field in fields]
    for one in said:
        print(f"  {one}")
    if said:
        raise GateError(f"NOT THE MACHINE THAT WAS ORDERED: {said[0]}")


def _answer(root: Path, session: str, wanted: Clause, ordered: Sequence[Record]) -> None:
    question = Question(datetime.now(UTC), session=session, from_raw=True)
    delivered = analyse(evidence_in(root, purchase=False), question)
    records = [trial.record for trial in delivered.own]
    if not records:
        raise UserError(f"there is no record of session '{session}'", remedy="name a session in results/")
    _refuse_other(not_as_ordered(ordered, records))
    failures = [trial for trial in delivered.own if trial.failure is not None]
    found = delivery.judge(wanted, delivered.own_cells, failures)
    print(f"\nDelivered, session {session}:")
    for one in found:
        print(f"  {_finding(one)}")
    for line in disturbed(records):
        print(line)
    failed = [one for one in found if one.passed is False]
    if failed:
        raise GateError(f"FAIL: {len(failed)} of {len(found)} figures were not reached")
    for one in delivery.unanswered(found):
        raise UserError(f"{one.demand.what}: {one.why}, so there is no answer", remedy=WHOLE_PLAN)
    print("PASS")


def _finding(one: DemandResult) -> str:
    word = {True: "reached", False: "NOT REACHED", None: "NOT KNOWN"}[one.passed]
    if one.ratio is None:
        return f"{word}: {one.demand.what}: {one.why}"
    spread = "" if one.low is None else f", 95 % interval {one.low:.3f} to {one.high:.3f}"
    return f"{word}: {one.demand.what}: {one.ratio:.3f} of its figure{spread}"
