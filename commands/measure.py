"""What leads to records: a plan shown, its data fetched, its environment built, its trials run."""

from __future__ import annotations

import math
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from commands import plan
from commands.terminal import PlanWatcher, Screen
from harness.data import chest_xray
from harness.data.datasets import DATASETS, find_dataset
from harness.data.download import FetchProgress
from harness.data.fetch import Resolved, bring_dataset, default_folder, fetch_dataset, find_members
from harness.engine.choose import fall_back_to_venv, wheel_folder
from harness.engine.interface import Built, Engine
from harness.errors import CardError, GateError, MachineError, NotBuilt, UserError
from harness.image.images import Image
from harness.image.second_lock import moved_image
from harness.machine import machine_folder, machine_id, user_state_folder
from harness.plan import own_file
from harness.record import Question, Session
from harness.record.published.program import Program
from harness.record.store import session_records
from harness.run import batch_search, session, source_tree
from harness.run import setup as run_setup
from harness.run.choice import (
    Chosen,
    Keep,
    choose_trials,
    draft_session,
    narrow_plan,
    session_against,
    trial_seconds,
)
from harness.run.ready import ready_run
from harness.run.runner import Outcome, TimeBudget
from harness.run.runner import run_session as run_session
from harness.run.session import run_lock
from harness.run.setup import RunSetup
from harness.settings import Settings, expand_path, setting_words
from report import text
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.compare import card_check
from report.page import render
from report.page.one.page_one import page_one
from report.page.values import systems_of
from report.stats.contrast import LEAST_PROCESSES
from report.trials.leading import SELFCHECK

MOST_OF_A_STEP = 24
"""Letters of what a builder prints, in the line that moves."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The switches of `run`."""

    new_session: bool = False
    retry: bool = False
    strict: bool = False
    keep: Keep | None = None
    """Which of the plan's trials are wanted; all where it is null."""
    first: tuple[str, ...] = ()
    """What of the first stack's lock is moved, as `torch==2.13.0`."""
    at_most_seconds: float | None = None
    """After these no further trial starts; the settings' budget goes before."""


def build_data_set(root: Path, name: str, source: str = "") -> None:
    """Fetches one data set or a program's source, or takes it from `source`, a folder or file of the user's.

    With a program goes its data, where `source` has that. Raises NoNetwork where it cannot be had.
    """
    folder = default_folder()
    program, given = _find_program(root, name), expand_path(source) if source else None
    with Screen() as screen:
        if program is not None:
            data = DATASETS.get(program.input.data) if program.input else None
            is_source = given is None or source_tree.is_repository(given)
            if data and given and not (is_source and given.is_file()) and find_members(data, given):
                bring_dataset(data, given, folder)
                screen.say(f"{data.name}: complete in {folder}")
                if not is_source:
                    return
            source_tree.bring_source(program, given, folder)
            screen.say(f"{name}: complete in {folder / program.folder}")
        elif name == chest_xray.NAME:
            _prepare_xrays(name, source, screen)
        else:
            if given:
                bring_dataset(find_dataset(name), given, folder)
            else:
                fetch_dataset(find_dataset(name), folder, progress=data_progress(screen))
            screen.say(f"{name}: complete in {folder}")


def _find_program(root: Path, name: str) -> Program | None:
    """A program of this clone by its name, or by the path of its file; null where that is none."""
    path = name if name.endswith(".toml") else f"workloads/programs/{name}.toml"
    there = (root / path).is_file()
    return own_file.read_program((root / path).read_bytes(), path) if there else None


def _prepare_xrays(name: str, source: str, screen: Screen) -> None:
    if not source:
        raise UserError(
            "ChestX-ray14 is behind a form of its makers, so it cannot be fetched",
            remedy="unpack it, then name its folder with --from FOLDER",
        )
    # Loads Pillow, which no other verb needs.
    from harness.data.xray_images import prepare_xrays

    done = prepare_xrays(
        expand_path(source),
        default_folder(),
        expected=chest_xray.WHOLE,
        watch=lambda there, of: screen.move(name, there, of, f"{there:,}/{of:,} images"),
    )
    for part, size in done.sizes.items():
        screen.say(f"{part}: {size.patients:,} patients, {size.images:,} images")
    screen.say(
        f"{name}: complete in {done.folder}\n"
        f"SHA-256 {done.sha256}, by Pillow {done.pillow}; its makers give no hash to check against"
    )


def say_data(resolved: dict[str, Resolved], screen: Screen) -> None:
    for name, data_set in resolved.items():
        if data_set.source == "real":
            screen.say(f"data: {name}: {data_set.why}")
        elif name.startswith("weights-"):
            screen.say(f"weights: {name.removeprefix('weights-')}: using RANDOM WEIGHTS ({data_set.why})")
        else:
            screen.say(f"data: {name}: using GENERATED data ({data_set.why})")


def data_progress(screen: Screen) -> FetchProgress:
    def show(label: str, done_bytes: int, total_bytes: int | None) -> None:
        total = f" of {total_bytes / 1e6:.0f}" if total_bytes else ""
        screen.move(f"fetching {label}", done_bytes, total_bytes, f"{done_bytes / 1e6:.0f}{total} MB")

    return show


def build_plan(root: Path, settings: Settings, *, with_data: bool) -> None:
    """Makes the environment that the plan needs here, or says that it is made.

    `with_data` also fetches the plan's data, unless the image alone was named.
    """
    images, engine, notes = run_setup.prepare_build(root, settings)
    with Screen() as screen:
        for note in notes:
            screen.say(note)
        made, engine, _ = build_environments(root, settings, images, engine, screen)
        for built in made:
            what = built.environment.tag or built.environment.image
            pinned = "pinned" if built.environment.pinned else "UNPINNED"
            reasons = "; ".join(built.environment.unpinned_because)
            screen.say(f"environment: {what} ({engine.name}, {pinned}{': ' + reasons if reasons else ''})")
        if with_data and settings.image is None:
            setup = run_setup.prepare_run(root, settings)
            say_data(run_setup.resolve_data(setup, data_progress(screen)), screen)


_failed_builds: dict[tuple[str, str], MachineError] = {}
"""By image and engine, what a `build` of this line met: the `run` behind it does not try that again."""


def build_environments(
    root: Path, settings: Settings, images: Sequence[Image], engine: Engine, screen: Screen
) -> tuple[tuple[Built, ...], Engine, tuple[str, ...]]:
    """The environments, the one engine that holds them, and what is to be noted of a session in them.

    Virtual environments take the place of a container engine that cannot build and was not asked for by name.
    """
    made: list[Built] = []
    for image in images:
        place = (image.name, engine.name)
        try:
            if place in _failed_builds:
                raise _failed_builds[place]
            made.append(_build_image(image, engine, screen))
        except MachineError as error:
            venv, note = fall_back_to_venv(root, settings, image, engine, error)
            screen.clear()
            screen.say(note)
            _failed_builds[place] = error
            return tuple(_build_image(each, venv, screen) for each in images), venv, (note,)
    return tuple(made), engine, ()


def _build_image(image: Image, engine: Engine, screen: Screen) -> Built:
    try:
        return engine.built_environment(image)
    except NotBuilt:
        screen.say(f"building environment '{image.name}' with {engine.name}")

    def say(line: str, done: int = 0, total: int | None = None) -> None:
        screen.move(f"building {image.name}", done, total, line.strip()[:MOST_OF_A_STEP])

    built = engine.build(image, say)
    screen.clear()
    return built


def prepare_with_pins(root: Path, settings: Settings, how: RunOptions) -> RunSetup:
    """What a line works with, before anything is built or fetched."""
    setup = run_setup.prepare_run(root, settings)
    if not how.first:
        return setup
    image = moved_image(setup.image, root, how.first, wheelhouse=wheel_folder(root, settings))
    return replace(setup, image=image)


def run_plan(root: Path, settings: Settings, how: RunOptions) -> Outcome:
    """Runs what is missing of a plan, and says what it did.

    Raises GateError where --strict meets a failed trial, or where the plan is a selfcheck that does not pass;
    CardError where --strict meets a card that is slow or wrong.
    """
    setup = prepare_with_pins(root, settings, how)
    if how.keep is not None:
        setup = narrow_plan(setup, how.keep)
    with Screen() as screen:
        for note in setup.notes:
            screen.say(note)
        machine_id(user_state_folder())
        built, engine, noted = build_environments(root, settings, setup.images_used, setup.engine, screen)
        setup = replace(setup, engine=engine, notes=(*setup.notes, *noted))
        resolved = run_setup.resolve_data(setup, data_progress(screen))
        say_data(resolved, screen)
        with run_lock():
            outcome = _run_trials(setup, built, resolved, how, screen)
        _say_outcome(settings, outcome, screen)
    if setup.plan.name == SELFCHECK:
        _say_selfcheck(root, outcome.session.id)
    if how.strict and outcome.failed:
        raise GateError(
            f"{text.count(outcome.failed, 'trial')} failed", remedy="the report shows each with its reason"
        )
    if how.strict and setup.plan.name in card_check.PLANS:
        refuse_faulty_card(root, outcome.session.id)
    return outcome


def refuse_faulty_card(root: Path, session: str) -> None:
    """Raises CardError where a session's check finds its card slow, at two speeds or with other bits."""
    analysis = analyse(evidence_in(root, purchase=False), AnalysisRequest(datetime.now(UTC), session))
    for card in analysis.checks:
        if card.longest.session == session and card.state in card_check.FAULTY:
            raise CardError(
                render.answer(page_one(analysis, systems_of(analysis)).headline).rstrip("."),
                remedy="see 'Is this card as it should be?' in docs/running.md",
            )


def _say_selfcheck(root: Path, session: str) -> None:
    """Prints whether a session showed a difference where there is none; raises GateError where it did."""
    asked = AnalysisRequest(datetime.now(UTC), session, question=Question(kind="faster", by="side"))
    analysis = analyse(evidence_in(root, purchase=False), asked)
    print(f"answer: {render.answer(page_one(analysis, systems_of(analysis)).headline)}")
    ratios = analysis.comparison.ratios if analysis.comparison else ()
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
    exactly = bool(how.keep or setup.settings.role or setup.settings.precision)
    opened = None if how.new_session else _resumable_session(setup, chosen, screen, exactly=exactly)
    if opened is None:
        screen.say("\n".join(plan.plan_lines(setup, chosen)))
        number = session.next_session_number(
            machine_folder(user_state_folder()), setup.root, setup.machine.id
        )
        opened = session.open_session(setup.root, draft_session(setup, chosen, number=number))
    else:
        screen.say(f"going on with session {opened.id}")
    budget = TimeBudget(deadline, partial(trial_seconds, chosen.speeds))
    recorded = {stored.record.trial.id for stored in session_records(setup.root, opened)}
    missing = [trial for trial in opened.trials if trial.id not in recorded]
    # A time-out says nothing of how long a trial takes.
    estimates = {} if chosen.at_most else {trial.id: budget.estimate(trial, ()) for trial in missing}
    watcher = PlanWatcher(screen, estimates)
    return run_session(ready_run(setup, built, resolved), opened, watcher, budget, retry=how.retry)


def _resumable_session(setup: RunSetup, chosen: Chosen, screen: Screen, *, exactly: bool) -> Session | None:
    """The open session, if what it asks for is still what this line would ask for; or `exactly` that."""
    opened = session.find_open_session(setup.root, setup.plan.name, session_against(setup))
    if opened is None:
        return None
    if opened.plan_sha256 != setup.plan.sha256:
        screen.say(f"the plan '{opened.plan}' was changed since session {opened.id} began: a new one begins")
        return None
    planned = [item.trial for item in chosen.planned]
    wanted = frozenset(trial.id for trial in planned) if exactly else chosen.everything
    still_asked = all(
        trial.id in wanted or batch_search.is_between_batches(trial, planned) for trial in opened.trials
    )
    if opened.machine == setup.machine.id and still_asked:
        question = setup.settings.question or opened.question
        return opened.model_copy(update={"question": question})
    screen.say(f"session {opened.id} asked for another plan, lock, data or machine: a new one begins")
    return None


def _say_outcome(settings: Settings, outcome: Outcome, screen: Screen) -> None:
    """What was run, what happened to the session's trials, and the line that goes on where some are left."""
    failed = f", {outcome.failed} of them failed" if outcome.failed else ""
    again = f"`{shlex.join(('invoke', 'run', *setting_words(settings)))}` goes on"
    left = "" if outcome.complete else f"; {text.count(outcome.left, 'trial')} left: {again}"
    screen.say(f"session {outcome.session.id}: {text.count(outcome.ran, 'trial')} run{failed}{left}")
