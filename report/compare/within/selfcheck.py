"""The same thing measured as two sides: what measuring alone makes of no difference at all.

The plan `selfcheck` asks for every variant twice, with the option `side` A and B, which no workload acts on.
An interval of 95 % misses 1 in one session of twenty by itself; it is to hold it in nine of ten at least.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.record import Record
from harness.summary.statistics import judge_trial
from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.key import SIDE, key_of

PLAN = "selfcheck"
SIDES = ("A", "B")
LEAST_RUNS = 3
"""Fewer valid runs a side decide nothing."""

WIDE = 1.2
"""An interval whose ends are further apart than this holds 1 by its width, and says so."""


@dataclass(frozen=True, slots=True)
class Check:
    """One variant in one session: throughput of A over B; no interval where too few runs are valid."""

    session: str
    what: str
    n: tuple[int, int]
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


def checks(records: Iterable[Record]) -> tuple[Check, ...]:
    """One check for each variant and session, by session; the level holds for a session's checks together."""
    sessions: dict[str, dict[str, dict[str, list[Record]]]] = {}
    for record in records:
        side = record.trial.asked.variant.options.get(SIDE)
        if record.plan == PLAN and side in SIDES:
            variants = sessions.setdefault(record.session, {})
            variants.setdefault(_what(record), {}).setdefault(str(side), []).append(record)
    return tuple(
        _check(session, what, sides, len(variants))
        for session, variants in sorted(sessions.items())
        for what, sides in sorted(variants.items())
    )


def _what(record: Record) -> str:
    key = replace(key_of(record), options=())
    return f"{key.workload} {key.model} {key.precision}, batch {key.batch_size}, {key.data_mode} data"


def _check(session: str, what: str, sides: dict[str, list[Record]], comparisons: int) -> Check:
    of, over = (_runs(sides.get(side, ())) for side in SIDES)
    n = len(of.values), len(over.values)
    enough = min(n) >= LEAST_RUNS
    interval = blocks_interval(of, over, paired=True, comparisons=comparisons) if enough else None
    return Check(session, what, n, interval)


def _runs(records: Sequence[Record]) -> Runs:
    values, blocks = [], []
    for record in records:
        summary = record.summary or judge_trial(record)
        if summary is not None and summary.verdict != "invalid":
            values.append(summary.throughput)
            blocks.append(record.block)
    return Runs(tuple(values), tuple(blocks))
