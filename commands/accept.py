"""Whether a delivered machine is the one that was ordered, and reaches the figures of its bundle."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from commands import measure
from commands.offer import analysis_of, intact
from harness.errors import GateError, UserError
from harness.machine import fingerprint
from harness.plan import plan
from harness.record import Record
from harness.run.session import find_open
from harness.settings import Settings
from report import text
from report.analysis import Analysis, Question, analyse, evidence_in
from report.buying import delivery
from report.buying.delivery import DemandResult
from report.buying.machine import disturbed, not_as_ordered, other_machine
from report.page.render import clause

WHOLE_PLAN = "measure the whole plan, with `invoke accept` and the bundle alone"


def accept(root: Path, settings: Settings, path: Path, records: str | None) -> None:
    """Answers pass, fail, or not the machine that was ordered; the last two by GateError.

    Takes the session `records`, else runs the bundle's plan anew. Raises UserError where too little was
    measured to answer.
    """
    with intact(path) as opened:
        manifest = opened.manifest
        order = analysis_of(opened, manifest) if manifest else None
        if manifest is None or order is None or order.clause is None:
            raise UserError(
                f"'{path.name}' holds no work with two valid runs", remedy="ask for a longer session"
            )
        if records in manifest.sessions:
            raise UserError(
                f"session {records} is one that the bundle itself stands on, and no delivery",
                remedy=WHOLE_PLAN,
            )
        ordered = [trial.record for trial in order.own]
        print(clause(order, f"invoke accept {path.name}"))
        if records is None:
            records = _measured(root, settings, order, ordered[0], manifest.sessions)
        _answer(root, records, order, ordered)


def _measured(
    root: Path, settings: Settings, order: Analysis, ordered: Record, bundled: Sequence[str]
) -> str:
    """A session of the bundle's plan, gone on with where an earlier call was stopped.

    Another machine is told before anything runs, and a session that the bundle holds is never gone on with.
    """
    session = order.leading_session
    assert session is not None
    _refuse_other(other_machine(ordered.machine, fingerprint(), device=ordered.trial.asked.device))
    if plan.load(root, session.plan).sha256 != session.plan_sha256:
        raise UserError(
            f"the plan '{session.plan}' is not the one that was ordered by",
            remedy="copy plans/ out of the bundle into this clone's",
        )
    budget = f"{session.budget_seconds:.0f}s" if session.budget_seconds else settings.budget
    chosen = settings.model_copy(update={"plan": session.plan, "budget": budget})
    opened = find_open(root, session.plan)
    outcome = measure.run(root, chosen, measure.How(new_session=opened is not None and opened.id in bundled))
    assert outcome is not None
    return outcome.session.id


def _refuse_other(fields: Sequence[str]) -> None:
    differences = [text.clean(field, 200) for field in fields]
    for difference in differences:
        print(f"  {difference}")
    if differences:
        raise GateError(f"NOT THE MACHINE THAT WAS ORDERED: {differences[0]}")


def _answer(root: Path, session: str, order: Analysis, ordered: Sequence[Record]) -> None:
    assert order.clause is not None
    question = Question(datetime.now(UTC), session=session)
    delivered = analyse(evidence_in(root, purchase=False), question)
    records = [trial.record for trial in delivered.own]
    _refuse_other(not_as_ordered(ordered, records))
    failures = [trial for trial in delivered.own if trial.failure is not None]
    findings = delivery.judge(order.clause, delivered.own_cells, failures)
    print(f"\nDelivered, session {session}:")
    for finding in findings:
        print(f"  {_sentence(finding)}")
    for line in disturbed(records):
        print(line)
    failed = sum(finding.passed is False for finding in findings)
    if failed:
        raise GateError(f"FAIL: {failed} of {len(findings)} figures were not reached")
    for finding in delivery.unanswered(findings):
        raise UserError(f"{finding.demand.what}: {finding.why}, so there is no answer", remedy=WHOLE_PLAN)
    print("PASS")


def _sentence(finding: DemandResult) -> str:
    word = {True: "reached", False: "NOT REACHED", None: "NOT KNOWN"}[finding.passed]
    if finding.ratio is None:
        return f"{word}: {finding.demand.what}: {finding.why}"
    interval = "" if finding.low is None else f", 95 % interval {finding.low:.3f} to {finding.high:.3f}"
    return f"{word}: {finding.demand.what}: {finding.ratio:.3f} of its figure{interval}"
