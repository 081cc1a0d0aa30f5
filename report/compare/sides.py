"""What one session says of two sides that it measured in turns: one thing under two names, or two stacks.

The plan `selfcheck` asks for every variant twice, with the option `side` A and B, which no workload acts on:
what measuring alone makes of no difference. An interval of 95 % misses 1 in one session of twenty by itself;
it is to hold it in nine of ten at least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from harness.record import Record, Session
from harness.summary.statistics import judge_trial
from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.key import SIDE, Key, grouped_by, key_of
from report.trials.leading import SELFCHECK
from report.trials.trial import TrialResult

SIDES = ("A", "B")
LEAST_RUNS = 3
"""Fewer valid runs a side decide nothing."""

WIDE = 1.2
"""An interval whose ends are further apart than this holds 1 by its width, and says so."""


@dataclass(frozen=True, slots=True)
class SideCheck:
    """One variant in one session: throughput of A over B; no interval where too few runs are valid."""

    session: str
    what: str
    n: tuple[int, ...]
    interval: Interval | None

    @property
    def passed(self) -> bool | None:
        """Whether the interval holds 1; null where there is none."""
        return None if self.interval is None else self.interval.includes(1.0)

    def line(self) -> str:
        """The result in one line."""
        if self.interval is None:
            return f"{self.what}: {self.n[0]} and {self.n[1]} valid runs: too few to tell"
        low, estimate, high = self.interval.low, self.interval.estimate, self.interval.high
        word = "no difference shown" if self.passed else "A DIFFERENCE WHERE THERE IS NONE"
        if self.passed and high > WIDE * low:
            word += ", by an interval too wide to show much: the machine was busy or unsteady"
        return f"{self.what}: A is {estimate:.4f} times B, interval {low:.4f} to {high:.4f}: {word}"


def side_checks(records: Iterable[Record]) -> tuple[SideCheck, ...]:
    """One check for each variant and session, by session; the level holds for a session's checks together."""
    of_plan = (record for record in records if record.plan == SELFCHECK)
    works = grouped_by(of_plan, lambda record: (record.session, _what(record)))
    variants = Counter(session for session, _ in works)
    return tuple(_check(*work, works[work], variants[work[0]]) for work in sorted(works))


def _what(record: Record) -> str:
    key = key_of(record)
    return f"{key.workload} {key.model} {key.precision}, batch {key.batch_size}, {key.data_mode} data"


def _check(session: str, what: str, records: Sequence[Record], comparisons: int) -> SideCheck:
    sides = [_runs(records, side) for side in SIDES]
    n = tuple(len(runs.values) for runs in sides)
    enough = min(n) >= LEAST_RUNS
    interval = blocks_interval(*sides, paired=True, comparisons=comparisons) if enough else None
    return SideCheck(session, what, n, interval)


def _runs(records: Sequence[Record], side: str) -> Runs:
    own = [record for record in records if record.trial.asked.variant.options.get(SIDE) == side]
    judged = [(record.summary or judge_trial(record), record.block) for record in own]
    valid = [
        (summary.throughput, block) for summary, block in judged if summary and summary.verdict != "invalid"
    ]
    return Runs(tuple(rate for rate, _ in valid), tuple(block for _, block in valid))


# Two software stacks

Trials = Sequence[TrialResult]


@dataclass(frozen=True, slots=True)
class TwinRuns:
    """The speeds of two neighbours, samples per second."""

    repeat: int
    first: float
    second: float


@dataclass(frozen=True, slots=True)
class StackWork:
    """One work in both stacks; `ratio` is the first over the second, by their differences pair by pair."""

    key: Key
    unit: str
    twins: tuple[TwinRuns, ...]
    ratio: Interval | None
    failed: tuple[tuple[str, ...], tuple[str, ...]]
    """For each stack, the reasons of trials that failed or are invalid."""

    @property
    def verdict(self) -> Literal["slower", "faster", "equal", "too-few", "failed"]:
        """Return what may be said of the first stack."""
        if self.ratio is None:
            return "failed" if any(self.failed) else "too-few"
        if self.ratio.includes(1.0):
            return "equal"
        return "slower" if self.ratio.high < 1 else "faster"


@dataclass(frozen=True, slots=True)
class StackComparison:
    """What a session of two stacks says."""

    asked: tuple[str, ...]
    """The second stack, as it was asked for."""
    environment: str
    """The first stack's image."""
    works: tuple[StackWork, ...]
    moved: tuple[tuple[str, str, str], ...]
    """Packages that differ: name, version in the first, version in the second; empty where it has none."""


def stack_ratio(twins: Sequence[TwinRuns], *, comparisons: int = 1) -> Interval | None:
    """The first over the second by the logarithms' differences: what an hour does to both cancels."""
    repeats = tuple(pair.repeat for pair in twins)
    first = Runs(tuple(pair.first for pair in twins), repeats)
    second = Runs(tuple(pair.second for pair in twins), repeats)
    return blocks_interval(first, second, paired=True, comparisons=comparisons)


def stack_comparison(session: Session, trials: Trials) -> StackComparison | None:
    """What the trials of a session say of its two stacks; null where it has one."""
    if session.against is None:
        return None
    other = session.against.stack
    paired = []
    for members in grouped_by(trials, lambda trial: trial.record.trial.asked.work).values():
        first = [each for each in members if each.record.trial.asked.stack != other]
        second = [each for each in members if each.record.trial.asked.stack == other]
        paired.append((first, second, _twins(first, second)))
    comparisons = sum(len(twins) > 1 for *_, twins in paired)
    own = [trial for first, *_ in paired for trial in first]
    others = [trial for _, second, _ in paired for trial in second]
    return StackComparison(
        asked=session.against.asked,
        environment=own[0].environment.image if own else session.against.environment,
        works=tuple(_work(*sides, comparisons) for sides in paired),
        moved=_moved(_packages(own), _packages(others)),
    )


def _packages(side: Trials) -> dict[str, str] | None:
    return next((each.record.measurement.packages for each in side if each.record.measurement), None)


def _moved(first: dict[str, str] | None, second: dict[str, str] | None) -> tuple[tuple[str, str, str], ...]:
    """The packages that measured trials of both stacks found in other versions."""
    if first is None or second is None:
        return ()
    names = sorted(first.keys() | second.keys())
    versions = ((name, first.get(name, ""), second.get(name, "")) for name in names)
    return tuple(each for each in versions if each[1] != each[2])


def _twins(first: Trials, second: Trials) -> tuple[TwinRuns, ...]:
    """The pairs of which both trials count."""
    own = {each.repeat: each.samples_per_second for each in first if each.verdict != "invalid"}
    other = {each.repeat: each.samples_per_second for each in second if each.verdict != "invalid"}
    both = sorted(own.keys() & other.keys())
    return tuple(TwinRuns(at, one, two) for at in both if (one := own[at]) and (two := other[at]))


def _work(first: Trials, second: Trials, twins: tuple[TwinRuns, ...], comparisons: int) -> StackWork:
    some = (*first, *second)[0]
    ratio = stack_ratio(twins, comparisons=comparisons)
    return StackWork(some.key, f"{some.sample_unit}s/s", twins, ratio, (_failed(first), _failed(second)))


def _failed(side: Trials) -> tuple[str, ...]:
    failures = [each.failure for each in side if each.failure and each.failure.kind == "trial"]
    invalid = any(each.verdict == "invalid" and not each.failure for each in side)
    return (*dict.fromkeys(failure.reason for failure in failures), *(["invalid"] if invalid else []))
