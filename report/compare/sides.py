"""What one session says of two software stacks that it measured in turns, pair by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from harness.record import Session
from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.key import Key, grouped_by
from report.trials.trial import TrialResult

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
