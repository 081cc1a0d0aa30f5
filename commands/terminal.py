"""What a person sees in the terminal: one line that moves where it is one, a line a minute elsewhere."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn
from rich.table import Column
from rich.text import Text

from commands.line import plain_stream
from harness.errors import as_typed, escape_controls
from harness.record import Record, TrialSpec, events, store
from harness.record.trial_spec import work_words
from harness.units import format_duration
from report import text
from report.trials.account import MachineAccount

LINE_SECONDS = 60.0
"""Without a terminal, how often a long wait says that it goes on."""
BAR_WIDTH = 12
VERDICT_WORDS = {"unproven": "not settled", "warn": "valid, with a warning"}
MOST_LETTERS = 158
"""A line of news is at most as long as two lines of a terminal with 80 columns."""


class Screen:
    """One line's terminal: news, and below them a line that moves, or without a terminal one now and then."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=plain_stream(sys.stdout), soft_wrap=True, highlight=False)
        self._progress = Progress(
            TextColumn(
                "{task.description}",
                markup=False,
                table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
            ),
            BarColumn(BAR_WIDTH),
            TextColumn("{task.fields[count]}", table_column=Column(no_wrap=True, overflow="ellipsis")),
            _Clock(table_column=Column(no_wrap=True)),
            console=self.console,
            transient=True,
            expand=True,
            disable=not self.console.is_terminal,
        )
        self._label = ""
        self._bar: TaskID | None = None
        self._next_line = 0.0
        self._begun = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def say(self, line: str) -> None:
        """Print one line of news as it is: no markup in it means anything."""
        self.console.print(as_typed(escape_controls(line)), markup=False)

    def say_found(self, found: Mapping[str, object], *, as_json: bool) -> None:
        """Print each key that has a value with it, in lines that can be searched, or all as JSON in one."""
        known = {key: value for key, value in found.items() if value is not None}
        if as_json:
            self.say(json.dumps(known, ensure_ascii=False, default=str))
            return
        for key, value in known.items():
            self.say(f"{key}: {value:.4g}" if isinstance(value, float) else f"{key}: {value}")

    def move(
        self,
        label: str,
        done: float = 0,
        total: float | None = None,
        count: str = "",
        left_seconds: float | None = None,
    ) -> None:
        """Set the line that moves: another label begins another wait. `left_seconds` are an estimate."""
        now = time.monotonic()
        if label != self._label or self._bar is None:
            self.clear()
            self._label, self._begun, self._next_line = label, now, now + LINE_SECONDS
            self._bar = self._progress.add_task(escape_controls(label), total=None, count="", until=None)
        until = None if left_seconds is None else now + left_seconds
        self._progress.update(
            self._bar, completed=done, total=total, count=escape_controls(count), until=until
        )
        if not self.console.is_terminal and now >= self._next_line:
            self._next_line = now + LINE_SECONDS
            left = "" if left_seconds is None else f", about {format_duration(left_seconds)} left"
            shown = f"  … {label}: {count}".rstrip(": ")
            self.say(f"{shown}, {format_duration(now - self._begun)} passed{left}")

    def clear(self) -> None:
        """Take the line that moves away."""
        if self._bar is not None:
            self._progress.remove_task(self._bar)
        self._bar, self._label = None, ""


class _Clock(ProgressColumn):
    """How long it has gone on, and about how long it still takes where that is known."""

    def render(self, task: Task) -> Text:
        until = task.fields.get("until")
        left = task.time_remaining if until is None else max(0.0, until - time.monotonic())
        passed = format_duration(task.elapsed or 0.0)
        return Text(passed if left is None else f"{passed}, {format_duration(left)} left")


class PlanWatcher:
    """The trial that runs and the time that the whole plan still takes; a line for each that has ended.

    `estimates` are seconds by a trial's id.
    """

    def __init__(self, screen: Screen, estimates: Mapping[str, float]) -> None:
        self._screen = screen
        self._estimates = dict(estimates)
        self._label = ""
        self._trial = ""
        self._began = 0.0
        self._ran_seconds = 0.0
        self._ran_estimate = 0.0

    def trial_begins(self, trial: TrialSpec, number: int, count: int) -> None:
        """Show that trial `number` of `count` starts."""
        self._trial, self._began = trial.id, time.monotonic()
        self._label = f"[{number}/{count}] {trial_words(trial)}"
        self._screen.move(self._label, left_seconds=self._left())

    def _left(self) -> float | None:
        """Return the seconds that the plan still takes: the estimates, corrected by the trials that ran."""
        if not self._estimates:
            return None
        pace = self._ran_seconds / self._ran_estimate if self._ran_estimate else 1.0
        others = sum(each for name, each in self._estimates.items() if name != self._trial)
        own = self._estimates.get(self._trial, 0.0) * pace - (time.monotonic() - self._began)
        return others * pace + max(0.0, own)

    def trial_goes_on(self, progress: events.Progress) -> None:
        """Show the trial's newest progress."""
        of = f"/{progress.total}" if progress.total else ""
        count = f"{progress.done}{of} {progress.unit}s" if progress.done else ""
        self._screen.move(
            self._label, progress.done, progress.total, count or progress.stage, left_seconds=self._left()
        )

    def trial_ends(self, record: Record) -> None:
        """Print what the trial gave, in a line."""
        self._ran_seconds += record.wall_seconds
        self._ran_estimate += self._estimates.pop(record.trial.id, record.wall_seconds)
        self._screen.clear()
        line = f"{self._label or trial_words(record.trial)}: {result_words(record)}"
        self._screen.say(line if len(line) <= MOST_LETTERS else f"{line[: MOST_LETTERS - 1]}…")

    def say(self, line: str) -> None:
        """Print one line of news."""
        self._screen.say(line)


def relative_path(path: Path) -> Path:
    """Return a path as a person in this folder would type it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def page_folder(root: Path) -> Path:
    """Return where pages and bundles go: below the clone, and of a wheel's tree below the caller's folder."""
    return (Path.cwd() if (root / store.OWN).is_dir() else root) / "report" / "out"


def account_lines(accounts: Iterable[MachineAccount]) -> Iterator[str]:
    """Yield how many trials each machine's sessions planned, and what became of them."""
    for account in accounts:
        fates = ", ".join(f"{number:,} {fate}" for fate, number in account.fates)
        yield f"{text.clean(account.label)}: {text.count(account.planned, 'trial')} planned: {fates}"
        if account.absent_sessions:
            yield f"  {text.count(account.absent_sessions, 'session')} of its numbers not here"


def trial_words(trial: TrialSpec) -> str:
    """Return a trial in a few words."""
    generated = " GENERATED data" if trial.asked.data == "generated" else ""
    return f"{work_words(trial.asked)} repeat {trial.repeat}{generated}"


def result_words(record: Record) -> str:
    """Return a record in a line."""
    if record.failure is not None:
        again = " (will be tried again)" if record.failure.kind == "machinery" else ""
        return f"failed at {record.failure.stage}: {record.failure.reason}: {record.failure.message}{again}"
    if record.summary is None or record.measurement is None:
        return "measured"
    unit, verdict = record.measurement.sample_unit, record.summary.verdict
    return (
        f"{text.number(record.summary.throughput, 4)} {unit}s/s, {VERDICT_WORDS.get(verdict, verdict)}, "
        f"{format_duration(record.wall_seconds)}"
    )
