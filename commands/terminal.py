"""What a person sees in the terminal: bars where it is one, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from commands.line import plain
from harness.errors import harmless
from harness.record import Limit, Record, Trial, Variant, events
from harness.units import counted, duration

LINE_SECONDS = 15.0
"""Without a terminal, how often a long wait says that it goes on."""


class Screen:
    """One line's terminal: bars for the long waits, news above them."""

    def __init__(self, console: Console | None = None) -> None:
        self.console = console or Console(file=plain(sys.stdout), soft_wrap=True, highlight=False)
        self._bars = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
            disable=not self.console.is_terminal,
        )
        self._last_line = 0.0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bars.stop()

    def say(self, line: str) -> None:
        """One line of news, as it is: no markup in it means anything."""
        self.console.print(harmless(line), markup=False)

    def bar(self, label: str, total: float | None) -> TaskID:
        """A new bar; without a terminal, a line."""
        if not self.console.is_terminal:
            self.say(label)
        return self._bars.add_task(harmless(label), total=total, count="")

    def move(
        self, bar: TaskID, done: float, total: float | None, count: str, label: str | None = None
    ) -> None:
        """Sets a bar; without a terminal, a line now and then."""
        self._bars.update(bar, completed=done, total=total, count=count)
        if label is not None:
            self._bars.update(bar, description=harmless(label))
        now = time.monotonic()
        if not self.console.is_terminal and now - self._last_line > LINE_SECONDS:
            self._last_line = now
            self.say(f"  … {label or ''} {count}".rstrip())

    def end(self, bar: TaskID) -> None:
        """Takes a bar away."""
        self._bars.remove_task(bar)


class PlanWatcher:
    """Two bars: the whole plan with its time left, and the trial that runs."""

    def __init__(self, screen: Screen, trials: int) -> None:
        self._screen = screen
        self._trials = trials
        self._plan = screen.bar(counted(trials, "trial"), trials)
        self._trial = screen.bar("trial", None)
        self._label = ""
        self._number = 0
        self._first = 0
        self._begun = time.monotonic()

    def trial_begins(self, trial: Trial, number: int, count: int) -> None:
        """Trial `number` of `count` starts."""
        self._first = self._first or number
        self._number = number
        self._label = name_of(trial)
        self._screen.say(f"[{number}/{count}] {self._label}{self._left(number, count)}")
        self._screen.move(self._plan, number - 1, count, f"{number - 1}/{count}", "whole plan")

    def _left(self, number: int, count: int) -> str:
        """The time left for the whole plan, from the trials that this line has run."""
        ran = number - self._first
        if ran == 0:
            return ""
        each = (time.monotonic() - self._begun) / ran
        return f" (about {duration(each * (count - number + 1))} left)"

    def trial_goes_on(self, progress: events.Progress) -> None:
        """The trial's newest progress."""
        count = (
            f"{progress.done}/{progress.total or '?'} {progress.unit}s" if progress.done else progress.stage
        )
        self._screen.move(self._trial, progress.done, progress.total, count, self._label)

    def trial_ends(self, record: Record) -> None:
        """Its record is written: what it gave, in a line."""
        self._screen.say(f"    {result_of(record)}")
        self._screen.move(
            self._plan, self._number, self._trials, f"{self._number}/{self._trials}", "whole plan"
        )

    def say(self, line: str) -> None:
        """One line of news."""
        self._screen.say(line)


def name_of(trial: Trial) -> str:
    """A trial in a few words."""
    variant = trial.asked.variant
    size = f" {variant.image_size} px" if variant.image_size else ""
    generated = " GENERATED data" if trial.asked.data == "generated" else ""
    extra = f" {special(variant)}" if special(variant) else ""
    return (
        f"{trial.asked.workload} {trial.asked.protocol} {variant.model}{size} {variant.precision} "
        f"batch {variant.batch_size}{extra} {variant.data_mode}{_length(variant.limit)} "
        f"repeat {trial.repeat}{generated}"
    )


def _length(limit: Limit) -> str:
    """How long a trial goes on that is not stopped by a clock alone."""
    if limit.steps is not None:
        return f" {limit.steps} steps"
    if limit.seconds is not None:
        return ""
    if limit.epochs is None:
        return " whole"
    return " 1 epoch" if limit.epochs == 1 else f" {limit.epochs} epochs"


def special(variant: Variant) -> str:
    """What is not as usual: several devices and how they share work, a layout, a profile, options."""
    parallel = variant.options.get("parallel")
    words = (
        f"{variant.gpus} devices{f' {parallel}' if parallel else ''}" if variant.gpus > 1 else "",
        variant.layout if variant.layout != "contiguous" else "",
        variant.profile if variant.profile != "default" else "",
    )
    options = (
        name.replace("_", " ") if value is True else f"{name.replace('_', ' ')} {value}"
        for name, value in sorted(variant.options.items())
        if name != "parallel" and value is not False
    )
    return " ".join(word for word in (*words, *options) if word)


def result_of(record: Record) -> str:
    """A record in a line."""
    if record.failure is not None:
        again = " (will be tried again)" if record.failure.kind == "machinery" else ""
        return f"failed at {record.failure.stage}: {record.failure.reason}: {record.failure.message}{again}"
    if record.summary is None or record.measurement is None:
        return "measured"
    unit = record.measurement.sample_unit
    step_ms = record.summary.step_seconds_median * 1000
    return (
        f"{record.summary.throughput:,.1f} {unit}s/s, {step_ms:.1f} ms a step, "
        f"{record.summary.verdict}, {record.wall_seconds:.0f} s in all"
    )
