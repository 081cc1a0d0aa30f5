"""Which system is faster, pair by pair, and all that did the same work in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from report.analysis import Analysis
from report.compare.pairs import Benchmark, Expectation
from report.compare.ranking import Standing, standings
from report.expected.sizes import Difference, Size
from report.page.names import work
from report.page.systems import Systems
from report.page.values import Quantity, System, rate_unit


@dataclass(frozen=True, slots=True)
class StandingRow:
    """One system among all that did the same work; `bar` is in percent of the slowest one's time."""

    system: System
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
    rows: tuple[StandingRow, ...]
    blocks: int
    """The fewest blocks of time that a rank stands on."""


@dataclass(frozen=True, slots=True)
class PairsView:
    """Every pair of systems, and by their names the works of the first one."""

    pairs: tuple[Expectation, ...]
    works: tuple[tuple[str, Benchmark], ...]
    standings: StandingsView | None
    sizes: tuple[Size, ...]
    """Of what differs between the first two, where published pairs say what it is worth."""


def view(analysis: Analysis, systems: Systems) -> PairsView | None:
    """All pairs of the leading systems with others; null where no other system did the same work."""
    found, pairs = standings_view(analysis, systems), analysis.expectations
    if not pairs and found is None:
        return None
    works = [(work(each.of, pairs[0].cells), each) for each in pairs[0].benchmarks] if pairs else []
    sizes = _sizes(pairs[0].benchmarks[0], analysis.question.sizes) if pairs else ()
    return PairsView(pairs, tuple(works), found, sizes)


def _sizes(work: Benchmark, known: Mapping[Difference, Size]) -> tuple[Size, ...]:
    """Clocks and displays count where the model of card is the same."""
    sides = [cell.trials[0].record for cell in (work.of, work.over)]
    frameworks = [record.measurement.framework if record.measurement else None for record in sides]
    gpus = [record.machine.gpus[0] if record.machine.gpus else None for record in sides]
    told: dict[Difference, list[object]] = {
        "software": [work.of.stack.versions, work.over.stack.versions],
        "layout": [framework.layout if framework else None for framework in frameworks],
    }
    if work.of.card == work.over.card:
        told["memory clock"] = [gpu.clock_memory_max_mhz if gpu else None for gpu in gpus]
        told["display"] = [gpu.display_attached if gpu else None for gpu in gpus]
    differ = [name for name, (a, b) in told.items() if None not in (a, b) and a != b]
    return tuple(known[name] for name in differ if name in known)


def standings_view(analysis: Analysis, systems: Systems) -> StandingsView | None:
    """Null where fewer than three systems did the same work."""
    found = standings(analysis.own_cells, analysis.cells)
    if found is None:
        return None
    most = max((row.high or row.time or 0.0 for row in found.rows), default=1.0)
    return StandingsView(
        columns=tuple(work(cell, found.works) for cell in found.works),
        units=tuple(map(rate_unit, found.works)),
        rows=tuple(_standing(row, systems.of(row), most) for row in found.rows),
        blocks=min((cell.blocks for row in found.rows if row.first for cell in row.cells if cell), default=0),
    )


def _standing(row: Standing, system: System, most: float) -> StandingRow:
    return StandingRow(
        system=system,
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
    cls = f"s{system.slot}" if system.own else ""
    return {"at": at, "low": low, "high": high, "cls": cls, "alt": f"{row.time:.2f}"}
