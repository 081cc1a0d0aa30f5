"""Whether a delivered machine is the one that was ordered, and reaches its figures."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from commands import run
from commands.recipient import judged, order_of
from commands.report import analyse_clone
from harness.bundle.judgement import Demand
from harness.errors import GateError, UserError
from harness.machine.fingerprint import look_at_machine
from harness.plan import plan_file
from harness.record import Gpu, Record
from harness.run.session import find_open_session
from harness.settings import Settings
from harness.summary.contradictions import shares_steps
from report import text
from report.analysis import Analysis
from report.buying import clause
from report.buying.clause import RequirementResult
from report.buying.ordered_machine import not_as_ordered, other_machine
from report.compare.card_units import BoxCards, CardBehind, cards_behind
from report.page import render
from report.stats.intervals import LEVEL
from report.trials.key import Term

WHOLE_PLAN = "measure the whole plan, with `invoke accept` and the bundle alone"


def accept(root: Path, settings: Settings, path: Path, records: str | None, asked: Demand) -> None:
    """Answer pass, fail, or not the machine that was ordered; the last two by GateError.

    Takes the session `records`, else runs the bundle's plan. Raises GateError for a bundle that is less than
    was asked for, UserError where too little was measured to answer.
    """
    bundle = judged(root, path, asked)
    if not asked.compares:
        print("  not compared with your order: name --signers, --sha256 or --order")
    ordered = order_of(root, bundle)
    session = ordered.leading_session
    if ordered.clause is None or session is None:
        raise UserError(f"'{path.name}' holds no work with two valid runs", remedy="ask for a longer session")
    if session.plan_sha256 not in bundle.plans:
        raise UserError(f"'{path.name}' does not hold its plan '{session.plan}'", remedy="ask for it again")
    bundled = {one.id for one in bundle.results.sessions}
    if records in bundled:
        raise UserError(f"session {records} is part of the bundle itself, and no delivery", remedy=WHOLE_PLAN)
    print(render.terminal_text("clause.md", view=ordered.clause, command=f"invoke accept {path.name}"))
    chosen = records or _measured(root, settings, ordered, bundled)
    delivered = analyse_clone(root, chosen)
    was, now = ([trial.record for trial in each.own] for each in (ordered, delivered))
    _refuse_copies(was, now)
    _refuse_other(not_as_ordered(was, now))
    print(f"\nDelivered, session {chosen}:")
    every = any(one.leading_session and one.leading_session.cards for one in (ordered, delivered))
    results = clause.judge(ordered.clause, delivered.own_cells, delivered.own)
    _answer(results, delivered.box, cards_behind(delivered.own), whole=every)


def _measured(root: Path, settings: Settings, ordered: Analysis, bundled: Collection[str]) -> str:
    """Return a session of the bundle's plan, resumed where an earlier call was stopped.

    Another machine is refused before anything runs. A session that the bundle holds is never resumed.
    """
    session, first = ordered.leading_session, ordered.own[0].record
    assert session is not None
    _refuse_other(other_machine(first.machine, look_at_machine()[0], device=first.trial.asked.device))
    if plan_file.load_plan(root, session.plan).sha256 != session.plan_sha256:
        raise UserError(
            f"the plan '{session.plan}' is not the one that was ordered by",
            remedy="copy plans/ out of the bundle into this clone's",
        )
    budget = f"{session.budget_seconds:.0f}s" if session.budget_seconds else settings.budget
    chosen = settings.model_copy(update={"plan": session.plan, "budget": budget})
    opened = find_open_session(root, session.plan)
    own = opened is not None and opened.id in bundled
    return run.run_plan(root, chosen, run.RunOptions(new_session=own)).session.id


def _refuse_copies(ordered: Sequence[Record], delivered: Sequence[Record]) -> None:
    for now in delivered:
        if any(shares_steps(was, now) for was in ordered):
            raise GateError(
                f"NO DELIVERY: the step times of {now.trial.id} in session {now.session} are the order's own"
            )


def _refuse_other(found: Sequence[Term]) -> None:
    differences = [
        text.clean(f"{each.field}: ordered {each.over}, delivered {each.of}", 200) for each in found
    ]
    for difference in differences:
        print(f"  {difference}")
    if differences:
        raise GateError(f"NOT THE MACHINE THAT WAS ORDERED: {differences[0]}")


def _card_words(gpu: Gpu) -> str:
    return f"card {gpu.index}" + (f" ({gpu.bus})" if gpu.bus else "")


def _answer(
    results: Sequence[RequirementResult], box: BoxCards, behind: Sequence[CardBehind], *, whole: bool
) -> None:
    """Print what was reached; raise GateError for what was not, UserError for what is not known.

    With `whole` that is also a card that was not measured.
    """
    if box.present > 1:
        print(f"  {len(box.measured)} of {box.present} cards measured")
    for result in results:
        print(f"  {_sentence(result)}")
    for one in behind:
        said = f"{one.ratio:.3f} of the others' mean, where a sound one reaches {one.least:.3f}"
        print(f"  NOT REACHED: {_card_words(one.gpu)}: {said}")
    missed = sum(result.passed is False for result in results)
    if missed:
        raise GateError(f"FAIL: {missed} of {len(results)} figures were not reached")
    if behind:
        raise GateError(f"FAIL: {_card_words(behind[0].gpu)} lies behind the others")
    if whole and box.missing:
        raise UserError(
            f"{_card_words(box.missing[0])} was not measured, so there is no answer", remedy=WHOLE_PLAN
        )
    for result in results:
        if result.passed is None:
            raise UserError(f"{result.demand.what}: {result.why}, so there is no answer", remedy=WHOLE_PLAN)
    print("PASS")


def _sentence(result: RequirementResult) -> str:
    word = {True: "reached", False: "NOT REACHED", None: "NOT KNOWN"}[result.passed]
    if result.ratio is None:
        return f"{word}: {result.demand.what}: {result.why}"
    level = f"{100 * LEVEL:.0f} %"
    ratio, hour = result.ratio, result.ratio.hour_assumed
    hours = f", another hour: ± {100 * hour:g} % assumed" if hour else ""
    ends = f"{level} range {ratio.low:.3f} to {ratio.high:.3f}"
    return f"{word}: {result.demand.what}: {ratio.estimate:.3f} of its figure, {ends}{hours}"
