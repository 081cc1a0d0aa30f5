"""Page one of systems side by side: speed and limits as rows, systems as columns, and who is ahead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from harness.summary.bound import speedup_limit
from report.analysis import Analysis
from report.compare.cells import Cell, Speedup, TimeBreakdown, time_breakdown
from report.compare.pairs import Expectation
from report.page.filters import work
from report.page.one.measured import gain_of
from report.page.parts.verdicts import VerdictCounts, counts
from report.page.pictures import TimePicture, time_picture
from report.page.values import NamedSystem, Quantity, Systems, between, quantity, rate
from report.trials.key import grouped_by

FactGroup = Literal["speed", "limits"]
MOST_WORKS = 4
WIDEST = math.log(1.25)
"""At least so far reaches the drawing on either side of equal."""


@dataclass(frozen=True, slots=True)
class AheadMark:
    """How far the second system is from the first, in per cent of the drawing's width; 50 is equal."""

    low: float
    at: float
    high: float
    slot: int
    tied: bool
    alt: str


@dataclass(frozen=True, slots=True)
class Fact:
    """A row: a cell for each system, and the second against the first. `name` is worded by the template."""

    group: FactGroup
    name: str
    cells: tuple[Quantity | None, ...]
    of: str = ""
    """The work that it is of."""
    ratio: Quantity | None = None
    note: str = ""
    data: Any = None
    mark: AheadMark | None = None


@dataclass(frozen=True, slots=True)
class SystemComparison:
    """Two systems; the ratio is of the second of `pair` against the first."""

    pair: tuple[NamedSystem, NamedSystem]
    picture: TimePicture | None
    groups: tuple[tuple[FactGroup, list[Fact]], ...]
    works_left: int
    counts: VerdictCounts
    """What came of the published claims."""


def comparison(analysis: Analysis, systems: Systems) -> SystemComparison:
    """Compare the leading pair."""
    expectation = _second_over_first(analysis)
    pair = systems.of(expectation.slow), systems.of(expectation.fast)
    works = expectation.benchmarks[:MOST_WORKS]
    facts = [
        *_speed(analysis, expectation, works),
        *_limits(analysis, works, pair),
    ]
    widest = max((abs(math.log(end)) for fact in facts for end in _ends(fact)), default=WIDEST)
    marked = [replace(fact, mark=_mark(fact, pair, max(widest, WIDEST))) for fact in facts]
    cells = {id(cell) for benchmark in works for cell in (benchmark.of, benchmark.over)}
    groups = [group for group in analysis.groups if any(id(entry.cell) in cells for entry in group.entries)]
    compared = {(system.machine, system.card) for system in pair}
    shown = [
        replace(group, entries=tuple(e for e in group.entries if (e.cell.machine, e.cell.card) in compared))
        for group in groups
    ]
    return SystemComparison(
        pair,
        time_picture(shown, systems),
        tuple(grouped_by(marked, lambda fact: fact.group).items()),
        max(0, len(expectation.benchmarks) - MOST_WORKS),
        counts(analysis),
    )


def _second_over_first(analysis: Analysis) -> Expectation:
    """The expectation of the leading pair, turned so that its `slow` side is this machine."""
    expectation = analysis.expectations[0]
    own = {trial.machine for trial in analysis.own}
    if expectation.slow.machine in own or expectation.fast.machine not in own:
        return expectation
    return replace(
        expectation,
        fast=expectation.slow,
        slow=expectation.fast,
        best=1 / expectation.best,
        units=expectation.units and expectation.units.inverse,
        model=expectation.model and expectation.model.inverse,
        benchmarks=tuple(each.inverse for each in expectation.benchmarks),
    )


# Speed


def _speed(analysis: Analysis, expectation: Expectation, works: Sequence[Speedup]) -> Iterator[Fact]:
    among = [cell for benchmark in works for cell in (benchmark.of, benchmark.over)]
    for benchmark in works:
        both = benchmark.over, benchmark.of
        yield Fact(
            "speed",
            "work",
            tuple(map(rate, both)),
            of=work(benchmark.over, among),
            ratio=quantity(benchmark.ratio),
            note="" if all(cell.ranked for cell in both) else "not-ranked",
        )
    if expectation.model is not None:
        ratio = between(expectation.best, expectation.model)
        yield Fact("speed", "any-unit", (None, None), ratio=ratio)
    for benchmark in works:
        gains = [gain_of(cell, analysis.speedups) for cell in (benchmark.over, benchmark.of)]
        if any(gains):
            yield Fact("speed", "gain", tuple(gains), of=work(benchmark.over, among))


# Limits


def _limits(
    analysis: Analysis, works: Sequence[Speedup], pair: tuple[NamedSystem, NamedSystem]
) -> Iterator[Fact]:
    sides: list[list[Cell]] = [[each.over for each in works], [each.of for each in works]]
    peaks = [_most(cells, "peak_bytes") for cells in sides]
    sizes = tuple(_memory(cells) for cells in sides)
    yield Fact("limits", "peak-memory", tuple(Quantity(peak, "bytes") for peak in peaks), data=sizes)
    waits = [_longest_wait(cells) for cells in sides]
    if any(waits):
        shares = tuple(Quantity(part.input_wait if part else None, "share") for part in waits)
        yield Fact("limits", "waits", shares)
        twice = (speedup_limit(1 - part.compute) if part else None for part in waits)
        yield Fact("limits", "twice-as-fast", tuple(Quantity(gain, "ratio") for gain in twice))
    joules = [_most(cells, "joules") for cells in sides]
    unit = works[0].of.trials[0].sample_unit if works else "sample"
    yield Fact("limits", "energy", tuple(Quantity(value, f"J/{unit}") for value in joules))
    sessions = {(cell.machine, cell.session) for cells in sides for cell in cells}
    failed = []
    for system in pair:
        ran = [
            trial
            for trial in analysis.trials
            if trial.machine == system.machine and (trial.machine, trial.session) in sessions
        ]
        failed.append((sum(trial.failure is not None for trial in ran), len(ran)))
    yield Fact(
        "limits",
        "failed",
        tuple(Quantity(float(count), "count") for count, _ in failed),
        data=tuple(of for _, of in failed),
    )


def _most(cells: Sequence[Cell], name: str) -> float | None:
    return max((mean for cell in cells if (mean := cell.figures[name].mean) is not None), default=None)


def _memory(cells: Sequence[Cell]) -> float | None:
    measured = [trial.record.measurement for cell in cells for trial in cell.trials]
    return max(
        (float(each.device.memory_bytes) for each in measured if each and each.device.memory_bytes),
        default=None,
    )


def _longest_wait(cells: Sequence[Cell]) -> TimeBreakdown | None:
    """Where the time goes of the work that waits most for input."""
    known = [breakdown for cell in cells if (breakdown := time_breakdown(cell)) is not None]
    return max(known, key=lambda breakdown: breakdown.input_wait, default=None)


# Drawing


def _ends(fact: Fact) -> list[float]:
    ratio = fact.ratio
    if ratio is None:
        return []
    return [end for end in (ratio.low, ratio.value, ratio.high) if end and math.isfinite(end) and end > 0]


def _mark(fact: Fact, pair: tuple[NamedSystem, NamedSystem], widest: float) -> AheadMark | None:
    ends = _ends(fact)
    if not ends or fact.ratio is None:
        return None
    low, at, high = (
        50 + 45 * math.log(end) / widest for end in (min(ends), fact.ratio.value or 1, max(ends))
    )
    leader = pair[1] if at > 50 else pair[0]
    tied = fact.ratio.tied or fact.ratio.value == 1
    return AheadMark(
        round(low, 1),
        round(at, 1),
        round(high, 1),
        9 if tied else leader.slot,
        tied,
        leader.name,
    )
