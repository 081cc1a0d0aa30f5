"""A plan's missing trials, run one after the other, and what became of them."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from commands.build import build_environments, data_progress, say_data
from commands.check import optional_problems
from commands.plan import plan_lines
from commands.report import ReportOptions, analyse_records, last_lines
from commands.terminal import PlanWatcher, Screen, page_folder
from harness.data.fetch import Resolved
from harness.engine.choose import wheel_folder
from harness.engine.interface import Built
from harness.errors import CardError, GateError, MachineError
from harness.image.second_lock import moved_image
from harness.machine.fingerprint import machine_folder, user_state_folder
from harness.record import Session
from harness.record.store import session_records
from harness.run import missing, session
from harness.run import setup as run_setup
from harness.run.choice import (
    Chosen,
    Keep,
    choose_trials,
    draft_session,
    narrow_plan,
    session_against,
    trial_seconds,
    units_by_place,
)
from harness.run.obstacles import prepare_line
from harness.run.ready import ready_run
from harness.run.runner import Outcome, TimeBudget, run_session
from harness.run.session import run_lock
from harness.run.setup import RunSetup
from harness.settings import Settings, setting_words
from report import text
from report.analysis import Analysis
from report.compare import card_check
from report.page import render
from report.page.one.page_one import page_one
from report.page.values import systems_of
from report.stats.contrast import LEAST_PROCESSES
from report.trials.leading import SELFCHECK


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The switches of `run`."""

    new_session: bool = False
    retry: bool = False
    strict: bool = False
    json: bool = False
    answers: bool = False
    """Whether it ends with the session's answer, as where no `report` follows."""
    keep: Keep | None = None
    """Which of the plan's trials are wanted; all where it is null."""
    first: tuple[str, ...] = ()
    """What of the first stack's lock is moved, as `torch==2.13.0`."""
    at_most_seconds: float | None = None
    """After these no further trial starts; the settings' budget goes before."""


def prepare_with_pins(root: Path, settings: Settings, how: RunOptions) -> RunSetup:
    """Return what a line works with, before anything is built or fetched."""
    setup = prepare_line(root, settings)
    if not how.first:
        return setup
    image = moved_image(setup.image, root, how.first, wheelhouse=wheel_folder(root, settings))
    return replace(setup, image=image)


def run_plan(root: Path, settings: Settings, how: RunOptions) -> Outcome:
    """Run what is missing of a plan, and say what it did.

    Raises GateError where --strict meets a failed trial, or where the plan is a selfcheck that does not pass;
    CardError where --strict meets a card that is slow or wrong.
    """
    setup = prepare_with_pins(root, settings, how)
    if how.keep is not None:
        setup = narrow_plan(setup, how.keep)
    with Screen() as screen:
        for note in setup.notes:
            screen.say(note)
        for problem in optional_problems(root):
            screen.say(f"left out: {problem}")
        built, engine, noted = build_environments(root, settings, setup.images_used, setup.engine, screen)
        setup = replace(setup, engine=engine, notes=(*setup.notes, *noted))
        resolved = run_setup.resolve_data(setup, data_progress(screen))
        say_data(resolved, screen)
        with run_lock():
            outcome = _run_trials(setup, built, resolved, how, screen)
        _say_outcome(settings, outcome, screen)
        analysis = _analyse_session(root, outcome, setup.plan.name, how)
        found: dict[str, object] = {"session": outcome.session.id}
        if analysis:
            found = last_lines(analysis, page_one(analysis, systems_of(analysis)).answer, {})
        screen.say_found(found, as_json=how.json)
    if outcome.fault:
        raise MachineError(
            f"the plan ends, since two trials failed alike on the same devices: {outcome.fault}",
            remedy="correct that on this machine; then the same line goes on",
        )
    if setup.plan.name == SELFCHECK:
        _refuse_difference(analysis)
    if how.strict and outcome.failed:
        raise GateError(
            f"{text.count(outcome.failed, 'trial')} failed", remedy="the report shows each with its reason"
        )
    if analysis is not None and how.strict:
        refuse_faulty_card(analysis)
    return outcome


def _analyse_session(root: Path, outcome: Outcome, plan: str, how: RunOptions) -> Analysis | None:
    """Return what the session says, where that is asked for or judged; null where it has no record."""
    judged = plan == SELFCHECK or (how.strict and plan in card_check.PLANS)
    if not (how.answers or judged) or not session_records(root, outcome.session):
        return None
    question = outcome.session.question if plan == SELFCHECK else None
    asked = ReportOptions(session=(outcome.session.id,), question=question)
    return analyse_records(root, page_folder(root), asked)


def refuse_faulty_card(analysis: Analysis) -> None:
    """Raise CardError where the session's check finds a card slow, at two speeds or with other bits."""
    for card in analysis.checks:
        if card.longest.session == analysis.lead and card.state in card_check.FAULTY:
            raise CardError(
                render.answer_text(page_one(analysis, systems_of(analysis)).answer.headline).rstrip("."),
                remedy="see 'Is this card as it should be?' in docs/running.md",
            )


def _refuse_difference(analysis: Analysis | None) -> None:
    """Raise GateError where a selfcheck's session shows a difference, or too little to show none."""
    ratios = analysis.comparison.ratios if analysis and analysis.comparison else ()
    same = [ratio.order in ("equal", "not-shown") and min(ratio.n) >= LEAST_PROCESSES for ratio in ratios]
    if not same or not all(same):
        raise GateError(
            "the selfcheck did not pass", remedy="see whether the machine did other work meanwhile"
        )


def _run_trials(
    setup: RunSetup, built: Sequence[Built], resolved: dict[str, Resolved], how: RunOptions, screen: Screen
) -> Outcome:
    chosen = choose_trials(setup, resolved, keep=how.keep)
    at_most_seconds = chosen.budget_seconds or how.at_most_seconds
    deadline = math.inf if at_most_seconds is None else time.monotonic() + at_most_seconds
    opened = None if how.new_session else resumable_session(setup, chosen, screen.say)
    if opened is None:
        screen.say("\n".join(plan_lines(setup, chosen)))
        opened = begin_session(setup, chosen)
    else:
        screen.say(f"going on with session {opened.id}")
    budget = TimeBudget(deadline, partial(trial_seconds, chosen.speeds))
    recorded = {stored.record.trial.id for stored in session_records(setup.root, opened)}
    missing = [trial for trial in opened.trials if trial.id not in recorded]
    # A time-out says nothing of how long a trial takes.
    estimates = {} if chosen.at_most else {trial.id: budget.estimate(trial, ()) for trial in missing}
    watcher = PlanWatcher(screen, estimates)
    return run_session(ready_run(setup, built, resolved), opened, watcher, budget, retry=how.retry)


def begin_session(setup: RunSetup, chosen: Chosen) -> Session:
    """Return a new session, open, with the machine's next number."""
    number = session.next_session_number(machine_folder(user_state_folder()), setup.root, setup.machine.id)
    return session.open_session(setup.root, draft_session(setup, chosen, number=number))


def resumable_session(setup: RunSetup, chosen: Chosen, say: Callable[[str], None]) -> Session | None:
    """Return the open session if this line would still ask for its trials."""
    opened = session.find_open_session(setup.root, setup.plan.name, session_against(setup))
    if opened is None:
        return None
    if opened.plan_sha256 != setup.plan.sha256:
        say(f"the plan '{opened.plan}' was changed since session {opened.id} began: a new one begins")
        return None
    planned = [item.trial for item in chosen.planned]
    if opened.cards != units_by_place(setup, opened.trials):
        say(f"the cards have other places than when session {opened.id} began: a new one begins")
        return None
    still_asked = all(
        trial.id in chosen.resumed or missing.is_between_batches(trial, planned) for trial in opened.trials
    )
    if opened.machine == setup.machine.id and still_asked:
        question = setup.settings.question or opened.question
        return opened.model_copy(update={"question": question})
    say(f"session {opened.id} asked for another plan, lock, data or machine: a new one begins")
    return None


def _say_outcome(settings: Settings, outcome: Outcome, screen: Screen) -> None:
    """Say what was run, what happened to the session's trials, and the line that goes on with the rest."""
    failed = f", {outcome.failed} of them failed" if outcome.failed else ""
    again = f"`{shlex.join(('invoke', 'run', *setting_words(settings)))}` goes on"
    left = "" if outcome.complete else f"; {text.count(outcome.left, 'trial')} left: {again}"
    screen.say(f"{text.count(outcome.ran, 'trial')} run{failed}{left}")
