"""Page one of one machine by itself, and of many that did the same work: how fast each trains."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.record import FULL_PRECISION
from report.analysis import Analysis
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell, Speedup, time_breakdown
from report.compare.ranking import Standing, Standings
from report.compare.scaling import Scaling, scalings
from report.expected.expected import ExpectedValue
from report.page import panels
from report.page.filters import work
from report.page.parts.studies import with_published
from report.page.pictures import TimePicture, shared_work, time_picture
from report.page.values import Headline, Picture, Quantity, Systems, quantity, rate_unit
from report.stats.intervals import BLOCKS_NEEDED, FLOOR_RUNS
from report.trials.key import LOADER_ALONE, grouped_by

MOST_ROWS = 8
OTHERS = 4
"""The colour's slot of other machines."""
STRICT = "fp32-ieee"
"""The baseline of a gain, where it was measured."""
MOST_STRIPS = 3


@dataclass(frozen=True, slots=True)
class SpeedRow:
    """One work in one precision; `needs` are names of what is missing before it is ranked."""

    name: str
    cell: Cell
    computes: float | None
    """Share of a step."""
    gain: Quantity | None
    expected: Quantity
    """The speed over what other cards' records lead one to expect, with a range for nine in ten."""
    speedup: Quantity
    """Over one device."""
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MachineSpeeds:
    """The picture, and the table under it."""

    picture: TimePicture | None
    more: tuple[tuple[str, Picture], ...]
    """Other pictures by what they show: scaling, learning, shares of a step, utilization."""
    rows: tuple[SpeedRow, ...]
    rows_left: int


def measured(analysis: Analysis, systems: Systems) -> MachineSpeeds:
    """Return the speeds of this machine's cells, the leading session's first."""
    cells = leading(analysis)
    families = scalings(cells)
    scaled = {id(cell) for family in families for cell in family.cells if panels.devices([family], systems)}
    rows = [_row(cell, cells, families, analysis) for cell in cells[:MOST_ROWS]]
    drawn = {id(cell) for cell in cells} - scaled
    works = {shared_work(g.base) for g in analysis.groups if any(id(e.cell) in drawn for e in g.entries)}
    groups = [group for group in analysis.groups if shared_work(group.base) in works]
    timed = time_picture(with_published(groups, analysis), systems)
    return MachineSpeeds(
        timed,
        tuple(_more(cells, families, systems, compared=timed is not None)),
        tuple(rows),
        max(0, len(cells) - MOST_ROWS),
    )


def _more(
    cells: Sequence[Cell], families: Sequence[Scaling], systems: Systems, *, compared: bool
) -> Iterator[tuple[str, Picture]]:
    """Yield what else the cells show: a picture each where there is something to see."""
    lines, learned = panels.devices(families, systems), panels.quality_over_time(cells, systems)
    if lines:
        yield "scaling", panels.picture("scaling", (lines,))
    alike = [members for members in grouped_by(cells, rate_unit).values() if len(members) > 1]
    if alike and not lines and not compared:
        yield "speeds", panels.speeds([panels.rates(members, systems) for members in alike])
    if learned:
        yield "learning", panels.picture("learning", (learned,))


def leading(analysis: Analysis) -> list[Cell]:
    """Return the leading session's cells on the page: training first, then loading alone."""
    own = [cell for cell in analysis.measured_here if cell.session == analysis.lead]
    cells = own or analysis.measured_here
    return sorted(cells, key=lambda cell: cell.key.protocol == LOADER_ALONE)


def gain_of(cell: Cell, gains: Sequence[Speedup]) -> Quantity | None:
    """How many times as fast as in 32 bits, the strict baseline before others; null for 32 bits itself."""
    own = [gain for gain in gains if gain.of is cell and cell.key.precision not in FULL_PRECISION]
    strict = [gain for gain in own if gain.over.key.precision == STRICT] or own
    return quantity(strict[0].ratio) if strict else None


def _row(cell: Cell, among: Sequence[Cell], families: Sequence[Scaling], analysis: Analysis) -> SpeedRow:
    breakdown = time_breakdown(cell)
    several = (family for family in families if cell.key.gpus > 1 and cell in family.cells)
    return SpeedRow(
        name=work(cell, among),
        cell=cell,
        computes=breakdown.compute if breakdown else None,
        gain=gain_of(cell, analysis.speedups),
        expected=_expected(cell, analysis.request.should),
        speedup=quantity(next((family.over_single(cell) for family in several), None)),
        needs=_needs(cell),
    )


def _expected(cell: Cell, should: Mapping[str, ExpectedValue]) -> Quantity:
    said, speed = should.get(cell.trials[0].path), cell.throughput.mean
    if said is None or speed is None:
        return Quantity(None, "ratio")
    low, high = speed / said.high, speed / said.low
    return Quantity(speed / said.value, "ratio", low, high, tied=low <= 1 <= high)


def _needs(cell: Cell) -> tuple[str, ...]:
    needs = []
    if cell.key.data_source == "generated":
        needs.append("real-data")
    if cell.verdict == "unproven":
        needs.append("longer")
    if cell.throughput.n < FLOOR_RUNS:
        needs.append("runs")
    return tuple(needs)


@dataclass(frozen=True, slots=True)
class Machines:
    """All machines sorted."""

    picture: Picture
    all: Standings


def machines(analysis: Analysis, systems: Systems) -> Machines:
    """All that did the leading session's work."""
    found = analysis.standings
    assert found is not None
    return Machines(_picture(found, systems), found)


def _picture(found: Standings, systems: Systems) -> Picture:
    """A row of dots for all works together, and one for each: a machine's time over the fastest's."""
    names = [work(cell, found.works) for cell in found.works]
    timed = [(row, row.time) for row in found.rows if row.time is not None]
    ranked = [row for row, _ in timed if row.first is not None]
    named = [*ranked[:1], *ranked[-1:], *(row for row, _ in timed if systems.of(row).own)]
    rows = [ScaleRow("All works" if len(names) > 1 else names[0], _dots(timed, systems, named))]
    for at, name in enumerate(names[:MOST_STRIPS] if len(names) > 1 else ()):
        rows.append(ScaleRow(name, _dots(_times_of_work(found, at), systems)))
    alt = ", ".join(f"{systems.of(row).name} {time:.2f}" for row, time in timed)
    return Picture("strips", ScaleRows((RowGroup("", tuple(rows)),), "fastest = 1.00", dots=True), alt)


def _dots(
    times: Iterable[tuple[Standing, float]], systems: Systems, named: Sequence[Standing] = ()
) -> tuple[Mark, ...]:
    return tuple(
        Mark(
            time,
            look="projected" if row.first is None else "measured",
            slot=0 if system.own else OTHERS,
            small=not system.own,
            label=system.name if any(row is one for one in named) else "",
        )
        for row, time in times
        for system in [systems.of(row)]
    )


def _times_of_work(found: Standings, at: int) -> list[tuple[Standing, float]]:
    """The time of a sample on each machine over that on the fastest."""
    cells = [(row, cell.throughput.mean) for row in found.rows if (cell := row.cells[at])]
    speeds = [(row, speed) for row, speed in cells if speed]
    most = max(speed for _, speed in speeds)
    return [(row, most / speed) for row, speed in speeds]


def of_machines(found: Machines, systems: Systems) -> Headline:
    """Which can be the fastest, how far the slowest is from it, and which place this machine has."""
    ranked = [row for row in found.all.rows if row.first is not None]
    own = next((row for row in ranked if systems.of(row).own), None)
    slowest = ranked[-1] if len(ranked) > 1 else None
    return Headline(
        "class",
        {
            "machines": len(found.all.rows),
            "fastest": [systems.of(row) for row in ranked if row.first == 1],
            "first_look": 0 < found.all.blocks < BLOCKS_NEEDED,
            "slowest": Quantity(slowest.time, "", slowest.low, slowest.high) if slowest else None,
            "own": systems.of(own) if own else None,
            "place": {"first": own.first, "last": own.last} if own else None,
        },
    )
