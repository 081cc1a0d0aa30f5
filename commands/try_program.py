"""A program of the user's own, measured as it lies in its folder, until there is an answer."""

from __future__ import annotations

import math
import re
import shlex
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from commands.build import build_environments
from commands.run import begin_session, resumable_session
from commands.terminal import PlanWatcher, Screen
from harness.engines import ENGINES
from harness.errors import GateError, UserError
from harness.record import Measurement, Record, Session, TrialSpec, store
from harness.record.events import Progress
from harness.record.trial_spec import StackKey
from harness.run.choice import choose_trials
from harness.run.obstacles import prepare_line
from harness.run.own_program import OwnAsked, copy_folder, prepare_own_run
from harness.run.ready import copies_folder, ready_run
from harness.run.runner import Outcome, TimeBudget, run_session
from harness.run.session import run_lock
from harness.run.setup import RunSetup
from harness.settings import Settings
from harness.units import format_duration
from report import text
from report.page.filters import figure_text, range_text, times_text, value_text
from report.page.values import Quantity, quantity
from report.stats.contrast import LEAST_PROCESSES
from report.stats.intervals import Interval
from report.stats.own_figure import LEAST_RUNS, SLICED_LOOKS, SideRuns, TryAnswer, answer_of

LEAST_SECONDS = 60.0
"""What a process has at least to its end, however few minutes were asked for."""


def parse_asked(
    command: str,
    *,
    per_step: str = "",
    until: str = "5%",
    steps: str = "",
    minutes: str = "10",
    **given: Any,
) -> OwnAsked:
    """Return what a line asks; `given` are more fields. Raises UserError for what is no pattern or number."""
    asked = OwnAsked(command, **given)
    for name, pattern, group in (("match", asked.match, "step"), ("metric", asked.metric, "")):
        try:
            groups = re.compile(pattern) if pattern else None
        except re.error as error:
            raise UserError(f"--{name} is no pattern: {error}", remedy="write one of Python's") from None
        if groups is not None and not (group in groups.groupindex if group else groups.groups):
            raise UserError(
                f"--{name} '{pattern[:60]}' has no group that is taken",
                remedy=r"write (?P<step>\d+)" if group else r"write val_loss (\S+)",
            )
    try:
        numbers = tuple(float(each) for each in per_step.split(",") if each.strip())
        share = float(until.strip().removesuffix("%")) / (100 if until.strip().endswith("%") else 1)
        whole, most = int(steps or 0), float(minutes)
    except ValueError:
        problem = "--per-step, --until, --steps and --minutes are numbers"
        raise UserError(problem, remedy="write 1024, 2%, 300 and 10") from None
    if not 0 < share < 1 or min(whole if steps else 1, most, *numbers) <= 0:
        raise UserError("--until is a share such as 2%, and what else is counted above 0", remedy="write 2%")
    return replace(asked, per_step=numbers, within=share, steps=whole, minutes=most)


def try_program(root: Path, settings: Settings, asked: OwnAsked, *, as_json: bool = False) -> Outcome:
    """Run a program in fresh processes until its figure, or which of two sides is faster, is known.

    Raises what own_run() raises, and GateError where no process gave a figure.
    """
    own_run = prepare_own_run(asked, Path.cwd())
    if own_run.interpreter is not None and settings.python is None:
        settings = settings.model_copy(update={"python": own_run.interpreter})
    # What a plan is narrowed by is said of plans.
    settings = settings.model_copy(update={"budget": None, "role": None, "precision": ()})
    if settings.engine == "auto":
        settings = settings.model_copy(update={"engine": "venv"})
    if asked.against_command and settings.against:
        raise UserError("--against and --against-command are two questions", remedy="ask one at a time")
    setup = prepare_line(root, settings, own_run.plan(max(LEAST_SECONDS, 60 * asked.minutes)))
    deadline = time.monotonic() + asked.minutes * 60
    with Screen() as screen:
        for note in setup.notes:
            screen.say(note)
        built, engine, noted = build_environments(root, settings, setup.images_used, setup.engine, screen)
        setup = replace(setup, engine=engine, notes=(*setup.notes, *noted))
        ready = ready_run(setup, built, {}, own_run)
        copy_folder(own_run.folder, copies_folder(root))
        size = text.count(len(own_run.folder.files), "file")
        screen.say(f"folder: {size}, {own_run.folder.sha256[:12]}; each process gets a copy")
        with run_lock():
            watcher = TryWatcher(screen, asked, len(own_run.sides), len(ready.stacks))
            # A number of steps is of one process without a pause; an engine ends a container beside another.
            on_linux = ENGINES[setup.engine.name].on_host and sys.platform == "linux"
            turns = watcher.sides > 1 and not asked.steps and on_linux
            opened = _open_session(setup, screen, SLICED_LOOKS if turns else None)
            budget = TimeBudget(deadline, watcher.estimate)
            outcome = run_session(ready, opened, watcher, budget, answer=watcher.reason_to_stop)
        records = [stored.record for stored in store.session_records(root, outcome.session)]
        found = answer_of(collect_sides(records), asked.within, outcome.session.looks or ())
        if found.state == "nothing":
            raise _no_figure_error(asked, records)
        if len(found.sides) > 1:
            screen.say("\n".join(_side_lines(found)))
        screen.say_found(_last_lines(found, records, outcome), as_json=as_json)
    return outcome


def _open_session(setup: RunSetup, screen: Screen, looks: tuple[int, ...] | None) -> Session:
    """Return the open session that this very line began, else a new one, with `looks` in slices."""
    chosen = choose_trials(setup)
    earlier = resumable_session(setup, chosen, lambda why: None)
    if earlier is None:
        opened = begin_session(setup, chosen).model_copy(update={"looks": looks})
        store.write_session(setup.root, opened)
        return opened
    screen.say(f"going on with session {earlier.id}")
    return earlier


class TryWatcher(PlanWatcher):
    """Shows a person each process, and looks after it whether the session has its answer."""

    def __init__(self, screen: Screen, asked: OwnAsked, commands: int, stacks: int) -> None:
        super().__init__(screen, {})
        self._asked = asked
        self.sides, self._stacks = commands * stacks, stacks
        self._line = ""

    def trial_begins(self, trial: TrialSpec, number: int, count: int) -> None:
        """Show that process `number` starts."""
        self._label = f"[{number}] {side_name(trial.asked.variant.model, trial.asked.stack, self._stacks)}"
        self._screen.move(self._label)

    def trial_goes_on(self, progress: Progress) -> None:
        """Show how many steps it has counted, and once the line in which it counts them."""
        if progress.line and not self._line:
            self._line = progress.line
            self._screen.say(f"its steps are counted as in '{progress.line}'; --match names another count")
        super().trial_goes_on(progress)

    def trial_ends(self, record: Record) -> None:
        """Print what the process gave, in a line: it need not be the one that was shown."""
        asked = record.trial.asked
        number = self._label.partition("]")[0]
        self._label = f"{number}] {side_name(asked.variant.model, asked.stack, self._stacks)}"
        super().trial_ends(record)

    def reason_to_stop(self, opened: Session, records: Sequence[Record]) -> str:
        """Return why no further process is needed; empty where one is."""
        if records and all(record.status == "failed" for record in records):
            return "the program failed"
        looks = opened.looks or ()
        if len(records) == 1 or (looks and len(records) == 2):
            self._say_minutes(records[0].wall_seconds, looks)
        found = answer_of(collect_sides(records), self._asked.within, looks)
        if looks and len(records) >= 2 * looks[-1]:
            return found.state
        return found.state if found.is_enough else ""

    def _say_minutes(self, seconds: float, looks: Sequence[int]) -> None:
        """Say how many minutes would do, where so many were not given."""
        needed = looks[0] if looks else LEAST_RUNS if self.sides == 1 else 2 * LEAST_PROCESSES
        if needed * seconds > self._asked.minutes * 60:
            minutes = math.ceil(needed * seconds / 60)
            self.say(f"a process takes {format_duration(seconds)}: an answer needs about --minutes {minutes}")

    def estimate(self, trial: TrialSpec, records: Sequence[Record]) -> float:
        """Return the seconds of another process: the longest one's until now."""
        return max((record.wall_seconds for record in records), default=0.0)


def collect_sides(records: Sequence[Record]) -> tuple[SideRuns, ...]:
    """Return the speeds of each side that has a figure, by its command and its stack, in the order asked."""
    sides: dict[tuple[str, StackKey], list[tuple[int, float, Measurement]]] = {}
    for record in records:
        asked, summary, measured = record.trial.asked, record.summary, record.measurement
        if summary is None or measured is None or summary.verdict == "invalid" or not summary.throughput:
            continue
        runs = sides.setdefault((asked.variant.model, asked.stack), [])
        runs.append((record.trial.repeat, summary.throughput, measured))
    return tuple(_side_runs(*key, runs) for key, runs in sides.items())


def _side_runs(name: str, stack: StackKey, runs: Sequence[tuple[int, float, Measurement]]) -> SideRuns:
    finished = [measured.own for _, _, measured in runs if measured.own]
    printed = tuple(each.printed_rate for each in finished if each.printed_rate)
    return SideRuns(
        name=name,
        stack=stack,
        repeats=tuple(repeat for repeat, _, _ in runs),
        rates=tuple(rate for _, rate, _ in runs),
        unit=runs[0][2].sample_unit,
        printed=printed if len(printed) == len(runs) else (),
        printed_unit=finished[0].printed_unit or "",
    )


STATES = {
    "too-few": "too few processes for a range",
    "wide": "the range is wider than what was asked for",
    "other-units": "the steps of two commands may hold other samples, so neither is called faster; "
    "--per-step 1024,2048 says what each holds",
}
"""What is said of an answer that is none."""


def _no_figure_error(asked: OwnAsked, records: Sequence[Record]) -> GateError:
    failed = next((record.failure for record in records if record.failure), None)
    return GateError(
        f"'{asked.command[:60]}' gave no figure: {failed.message if failed else 'it was stopped'}",
        remedy="start it by itself, or see docs/extending.md",
    )


def _last_lines(found: TryAnswer, records: Sequence[Record], outcome: Outcome) -> dict[str, object]:
    """Return what the verb ends with: the answer, its ratio, its session, and the line that goes on."""
    seconds = [record.measurement.window.seconds for record in records if record.measurement]
    session = outcome.session.id
    apart = "one after the other in" if len(found.sides) > 1 else "in"
    how = "taking turns in" if outcome.session.looks else apart
    names, ratio = _side_names(found), quantity(found.ratio)
    if found.ratio is not None and found.state == "slower":
        names.reverse()
        ratio = Quantity(1 / found.ratio.estimate, "ratio", 1 / found.ratio.high, 1 / found.ratio.low)
    said = [STATES[found.state]] if found.state in STATES else []
    if ratio:
        said = [_order_words(names, found.state, ratio)]
    elif len(names) == 1:
        said = [*_side_lines(found), *said]
    return {
        "answer": f"{'; '.join(said)}, {how} windows of {min(seconds):.0f} s, this hour",
        "ratio": ratio.value,
        "low": ratio.low,
        "high": ratio.high,
        "session": session,
        "next": f"invoke report --session {session}"
        if outcome.complete
        else f"{_resume_line()} --minutes 20",
    }


def side_name(name: str, stack: StackKey, stacks: int) -> str:
    """Return a side's command, and what its stack has of its own where there are several."""
    variables = ", ".join(f"{variable}={value}" for variable, value in stack[2])
    lock = f"lock {stack[1][:8]}" if stack[1] else stack[0]
    return name if stacks == 1 else f"{name} ({variables or lock})"


def _side_names(found: TryAnswer) -> list[str]:
    stacks = len({side.stack for side, _ in found.sides})
    return [side_name(side.name, side.stack, stacks) for side, _ in found.sides]


def _side_lines(found: TryAnswer) -> list[str]:
    """Return each side with its figure and the number of its processes."""
    names = _side_names(found)
    return [
        f"{name}: {_figure_words(side, ends)}, {text.count(len(side.rates), 'process', 'processes')}"
        for (side, ends), name in zip(found.sides, names, strict=True)
    ]


def _figure_words(side: SideRuns, ends: Interval | None) -> str:
    rate = quantity(ends or fmean(side.rates), f"{side.unit}s/s")
    prints = figure_text(fmean(side.printed), f"{side.printed_unit}s/s") if side.printed else ""
    within = f" ({ends_text})" if (ends_text := range_text(rate)) else ""
    return f"{value_text(rate)}{within}{f'; it prints {prints}' if prints else ''}"


def _order_words(names: Sequence[str], state: str, ratio: Quantity) -> str:
    first, second = names
    if state in ("faster", "slower"):
        return f"{first} is {times_text(ratio)} as fast as {second} ({range_text(ratio)})"
    order = "are equal within 5 %" if state == "equal" else "show no difference"
    return f"{first} and {second} {order}: {value_text(ratio)} ({range_text(ratio)})"


def _resume_line() -> str:
    """Return the line that was typed, without its minutes and without what a wheel puts before it."""
    words = iter(sys.argv[1:])
    dropped = ("--minutes", "-r") if sys.argv[0] == "gpudyno" else ("--minutes",)
    kept = [word for word in words if not (word in dropped and next(words, True))]
    return shlex.join(("invoke", *(word for word in kept if not word.startswith("--minutes="))))
