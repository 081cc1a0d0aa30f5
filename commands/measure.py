"""What the verbs do, each in one function: called by tasks.py, which parses and nothing else."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from rich.progress import TaskID

from commands.terminal import PlanWatcher, Screen, name_of, special
from harness.data.download import Progress
from harness.data.fetch import Resolved, default_folder, fetch
from harness.engine.base import Built
from harness.errors import GateError, NotBuilt
from harness.machine import state_folder
from harness.record import Session
from harness.record.store import read_all
from harness.run import batch_search, session, setup
from harness.run.choice import Chosen, choose, trial_seconds
from harness.run.runner import Outcome, command_of
from harness.run.runner import run as run_session
from harness.run.session import only_run
from harness.run.setup import Bench
from harness.settings import Settings
from harness.units import duration
from report.comparisons import selfcheck

_BUILD_STEP = re.compile(r"(?:\[(?:[\w-]+ +)?|STEP )(\d+)/(\d+)")
"""BuildKit's `[stack 2/7]` and Podman's `STEP 2/7`; the whole output is in the build's log."""


@dataclass(frozen=True, slots=True)
class How:
    """The switches of `run`."""

    new_session: bool = False
    retry: bool = False
    strict: bool = False
    build: bool = True
    dry_run: bool = False


def show_plan(root: Path, settings: Settings) -> None:
    """Prints the matrix and every command that building and running it would take."""
    bench = setup.bench(root, settings)
    screen = Screen()
    for note in bench.notes:
        screen.say(note)
    chosen = choose(bench)
    _say_matrix(bench, chosen, screen)
    screen.say("\nto build:")
    for step in bench.engine.steps(bench.image) or ():
        screen.say(f"  # {step.label}\n  {step.command}")
    screen.say("\nto run, in this order (the order of a session is drawn anew):")
    built = bench.engine.expected(bench.image)
    job = setup.job(bench, built, {})
    for item in chosen.planned:
        screen.say(f"  # {name_of(item.trial)}\n  {command_of(job, 'SESSION', item.trial)}")


def _say_matrix(bench: Bench, chosen: Chosen, screen: Screen) -> None:
    rows: dict[tuple[str, ...], int] = {}
    for item in chosen.planned:
        asked, variant = item.trial.asked, item.trial.asked.variant
        size = f"{variant.image_size} px" if variant.image_size else ""
        key: tuple[str, ...] = (
            asked.workload,
            asked.protocol,
            variant.model,
            variant.precision,
            f"batch {variant.batch_size}",
            size,
            special(variant),
            variant.data_mode,
            item.role,
        )
        rows[key] = rows.get(key, 0) + 1
    screen.say(f"plan {bench.plan.name}: {bench.plan.title}")
    for key, repeats in sorted(rows.items()):
        screen.say(f"  {repeats:>3} × {'  '.join(part for part in key if part)}")
    about = f"about {duration(chosen.seconds)}"
    about += f" in {bench.plan.blocks} blocks an hour apart" if bench.plan.blocks > 1 else ""
    screen.say(
        f"{len(chosen.planned)} trials, {about}, in environment '{bench.image.name}' ({bench.engine.name})"
    )
    for left in chosen.left_out:
        screen.say(f"  left out: {left.trials} × {left.what}: {left.reason}")


def data(root: Path, settings: Settings, only: str | None) -> None:
    """Fetches what a plan needs, or one data set; raises NoNetwork where it cannot be had."""
    with Screen() as screen:
        if only is not None:
            folder = default_folder()
            fetch(only, folder, progress=_data_progress(screen))
            screen.say(f"{only}: complete in {folder}")
            return
        bench = setup.bench(root, settings)
        found = setup.resolve_data(bench, _data_progress(screen), allow_generated=False)
        _say_data(found, screen)


def _say_data(found: dict[str, Resolved], screen: Screen) -> None:
    for name, answer in found.items():
        if answer.source == "real":
            screen.say(f"data: {name}: {answer.why}")
        elif name.startswith("weights-"):
            screen.say(
                f"weights: {name.removeprefix('weights-')}: RANDOM BODY in place of them ({answer.why})"
            )
        else:
            screen.say(f"data: {name}: GENERATED in place of the real ({answer.why})")


def _data_progress(screen: Screen) -> Progress:
    bars: dict[str, TaskID] = {}

    def show(label: str, done_bytes: int, total_bytes: int | None) -> None:
        if label not in bars:
            bars[label] = screen.bar(f"fetching {label}", total_bytes)
        total = f" of {total_bytes / 1e6:.0f}" if total_bytes else ""
        screen.move(
            bars[label], done_bytes, total_bytes, f"{done_bytes / 1e6:.0f}{total} MB", f"fetching {label}"
        )

    return show


def build(root: Path, settings: Settings, *, dry_run: bool) -> None:
    """Makes the environment that the plan needs here, or says that it is made."""
    bench = setup.bench(root, settings)
    with Screen() as screen:
        for note in bench.notes:
            screen.say(note)
        if dry_run:
            for step in bench.engine.steps(bench.image):
                screen.say(f"# {step.label}\n{step.command}")
            return
        built = _build(bench, screen)
        what = built.environment.tag or built.environment.image
        pinned = "pinned" if built.environment.pinned else "UNPINNED"
        reasons = "; ".join(built.environment.unpinned_because)
        screen.say(f"environment: {what} ({bench.engine.name}, {pinned}{': ' + reasons if reasons else ''})")


def _build(bench: Bench, screen: Screen) -> Built:
    try:
        return bench.engine.built(bench.image)
    except NotBuilt:
        screen.say(f"building environment '{bench.image.name}' with {bench.engine.name}")
    bar = screen.bar(f"building {bench.image.name}", None)

    def say(line: str, done: int = 0, total: int | None = None) -> None:
        if bench.engine.name == "venv" and line:
            screen.say(f"  {line}")
        step = _BUILD_STEP.search(line)
        if step:
            done, total = int(step[1]), int(step[2])
        screen.move(bar, done, total, line.strip()[:50], f"building {bench.image.name}")

    built = bench.engine.build(bench.image, say)
    screen.end(bar)
    return built


def run(root: Path, settings: Settings, how: How) -> None:
    """Runs what is missing of a plan.

    Raises GateError where --strict meets a failed trial, or where the plan is a selfcheck that does not pass.
    """
    bench = setup.bench(root, settings)
    with Screen() as screen:
        for note in bench.notes:
            screen.say(note)
        if how.dry_run:
            _say_matrix(bench, choose(bench), screen)
            return
        built = _build(bench, screen) if how.build else bench.engine.built(bench.image)
        found = setup.resolve_data(bench, _data_progress(screen))
        _say_data(found, screen)
        with only_run(state_folder()):
            outcome = _run(bench, built, found, how, screen)
        _say_outcome(outcome, screen)
    if bench.plan.name == selfcheck.PLAN:
        _say_selfcheck(root)
    if how.strict and outcome.failed:
        raise GateError(f"{outcome.failed} trials failed", remedy="the report shows each with its reason")


def _say_selfcheck(root: Path) -> None:
    """Prints whether a difference showed where there is none; raises GateError where one did."""
    records = [stored.record for stored in read_all(root).records]
    checks = selfcheck.newest(records)
    print("\n".join([*(check.line() for check in checks), selfcheck.rate_line(records)]))
    if not all(check.passed for check in checks):
        raise GateError(
            "the selfcheck did not pass", remedy="see whether the machine did other work meanwhile"
        )


def _run(bench: Bench, built: Built, found: dict[str, Resolved], how: How, screen: Screen) -> Outcome:
    chosen = choose(bench, found)
    deadline = None if chosen.budget_seconds is None else time.monotonic() + chosen.budget_seconds
    opened = None if how.new_session else _going_on(bench, chosen, screen)
    if opened is None:
        _say_matrix(bench, chosen, screen)
        opened = session.begin(
            bench.root,
            bench.plan,
            bench.machine,
            [item.trial for item in chosen.planned],
            now=datetime.now(UTC),
            order_seed=chosen.order_seed,
            budget_seconds=chosen.budget_seconds,
            left_out=chosen.left_out,
            notes=bench.notes,
            blocks=(item.block for item in chosen.planned),
        )
    else:
        screen.say(f"going on with session {opened.id}")
    job = replace(
        setup.job(bench, built, found),
        deadline=deadline,
        estimate=partial(trial_seconds, chosen.speeds, bench.machine.id),
    )
    watcher = PlanWatcher(screen, len(opened.trials))
    return run_session(job, opened, watcher, retry=how.retry)


def _going_on(bench: Bench, chosen: Chosen, screen: Screen) -> Session | None:
    """The open session, if what it asks for is still what this line would ask for."""
    opened = session.find_open(bench.root, bench.plan.name)
    if opened is None:
        return None
    planned = [item.trial for item in chosen.planned]
    asked = all(
        trial.id in chosen.everything or batch_search.stands_between(trial, planned)
        for trial in opened.trials
    )
    if opened.machine == bench.machine.id and asked:
        return opened
    screen.say(f"session {opened.id} asked for another plan, lock, data or machine: a new one begins")
    return None


def _say_outcome(outcome: Outcome, screen: Screen) -> None:
    failed = f", {outcome.failed} of them failed" if outcome.failed else ""
    left = "" if outcome.complete else f"; {outcome.left} trials are left (`invoke run` goes on)"
    screen.say(f"session {outcome.session.id}: {outcome.ran} trials run{failed}{left}")
