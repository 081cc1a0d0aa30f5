"""Which system is faster, pair by pair, and all that did the same work in order."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.pairs import Benchmark, Expectation
from report.compare.ranking import Standing, Standings, standings
from report.page.names import work
from report.page.systems import Systems
from report.page.values import Quantity, System, of_figure, of_ratio


@dataclass(frozen=True, slots=True)
class PairRow:
    """How many times as fast `fast` is as `slow`: these two units, and any units of their models."""

    fast: System
    slow: System
    units: Quantity
    model: Quantity
    standing: str
    """RANKED, TIED, FIRST_LOOK or SINGLE: see `report.stats.intervals.Ranking`."""
    vague: bool
    blocks_assumed: int | None
    """See `Expectation.blocks_assumed`."""
    works: int
    fewest_runs: int
    most_runs: int


@dataclass(frozen=True, slots=True)
class WorkRow:
    """One work of the first pair: both speeds and their ratio."""

    name: str
    fast: Quantity
    slow: Quantity
    ratio: Quantity
    runs: tuple[int, int]


@dataclass(frozen=True, slots=True)
class StandingRow:
    """One system among all that did the same work; `bar` is in percent of the slowest one's time."""

    system: System
    label: str
    first: int | None
    last: int | None
    time: Quantity
    bar: dict[str, float | str | None] | None
    speeds: tuple[Quantity | None, ...]


@dataclass(frozen=True, slots=True)
class StandingsView:
    """All systems that did the same work; `columns` are the works."""

    columns: tuple[str, ...]
    units: tuple[str, ...]
    decide: int
    """How many of the works the order is by."""
    rows: tuple[StandingRow, ...]
    blocks: int
    """The fewest blocks of time that a rank stands on."""


@dataclass(frozen=True, slots=True)
class PairsView:
    """Every pair of systems, and the works of the first one."""

    pairs: tuple[PairRow, ...]
    works: tuple[WorkRow, ...]
    measured_units: int | None
    """On how many units the spread of the first pair's models is measured; null where it is not."""
    own_mix: bool
    standings: StandingsView | None


def view(analysis: Analysis, systems: Systems) -> PairsView | None:
    """All pairs of the leading systems with others; null where no other system did the same work."""
    found = standings(analysis.own_cells, analysis.cells)
    if not analysis.expectations and found is None:
        return None
    first = analysis.expectations[0] if analysis.expectations else None
    return PairsView(
        pairs=tuple(_pair(each, systems) for each in analysis.expectations),
        works=tuple(_work(each, first.cells) for each in first.benchmarks) if first else (),
        measured_units=first.band.units if first and first.band.measured else None,
        own_mix=bool(first and first.own_mix),
        standings=_standings(found, systems, analysis) if found else None,
    )


def _pair(pair: Expectation, systems: Systems) -> PairRow:
    runs = [n for each in pair.benchmarks for n in each.ratio.n]
    units, model = (
        Quantity(pair.best, "ratio", *((found.low, found.high) if found else (None, None)))
        for found in (pair.units, pair.model)
    )
    return PairRow(
        fast=systems.at(pair.fast.machine, pair.fast.card),
        slow=systems.at(pair.slow.machine, pair.slow.card),
        units=units,
        model=model,
        standing=pair.ranking.name,
        vague=pair.vague,
        blocks_assumed=pair.blocks_assumed,
        works=len(pair.benchmarks),
        fewest_runs=min(runs),
        most_runs=max(runs),
    )


def _work(each: Benchmark, among: tuple[Cell, ...]) -> WorkRow:
    return WorkRow(
        work(each.of, among), _speed(each.of), _speed(each.over), of_ratio(each.ratio), each.ratio.n
    )


def _speed(cell: Cell) -> Quantity:
    return of_figure(cell.throughput, f"{cell.trials[0].sample_unit}s/s")


def _standings(found: Standings, systems: Systems, analysis: Analysis) -> StandingsView:
    labels = {trial.machine: trial.machine_label for trial in analysis.trials}
    most = max((row.high or row.time or 0.0 for row in found.rows), default=1.0)
    return StandingsView(
        columns=tuple(work(cell, found.works) for cell in found.works),
        units=tuple(f"{cell.trials[0].sample_unit}s/s" for cell in found.works),
        decide=sum(found.decide),
        rows=tuple(
            _standing(row, systems.at(row.machine, row.card), labels[row.machine], most) for row in found.rows
        ),
        blocks=min((cell.blocks for row in found.rows if row.first for cell in row.cells if cell), default=0),
    )


def _standing(row: Standing, system: System, label: str, most: float) -> StandingRow:
    return StandingRow(
        system=system,
        label=label,
        first=row.first,
        last=row.last,
        time=Quantity(row.time, "", row.low, row.high),
        bar=_bar(row, system, most),
        speeds=tuple(Quantity(cell.throughput.mean, "") if cell else None for cell in row.cells),
    )


def _bar(row: Standing, system: System, most: float) -> dict[str, float | str | None] | None:
    if row.time is None:
        return None
    at, low, high = (
        round(100 * value / most, 1) if value is not None else None for value in (row.time, row.low, row.high)
    )
    return {
        "at": at,
        "low": low,
        "high": high,
        "cls": f"s{system.slot}" if system.own else "",
        "alt": f"{row.time:.2f}",
    }
