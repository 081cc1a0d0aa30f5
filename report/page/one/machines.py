"""Page one of many machines that did the same work: where each stands, and one row a machine."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from report.analysis import Analysis
from report.charts.marks import KeyEntry
from report.charts.strips import Dot, Strip, Strips
from report.compare.ranking import Standing, Standings, standings
from report.page.names import work
from report.page.systems import Systems
from report.page.values import Headline, Picture, Quantity

MOST_ROWS = 20
MOST_STRIPS = 3


@dataclass(frozen=True, slots=True)
class Machines:
    """All machines sorted; `shown` are those in page one's table, the part below has all."""

    picture: Picture
    all: Standings
    shown: tuple[Standing, ...]


def machines(analysis: Analysis, systems: Systems) -> Machines:
    """All that did the leading session's work."""
    found = standings(analysis.own_cells, analysis.cells)
    assert found is not None
    return Machines(_picture(found, systems), found, _nearest(found.rows, systems))


def _picture(found: Standings, systems: Systems) -> Picture:
    """A strip of dots for all works together, and one for each: a machine's time over the fastest's."""
    names = [work(cell, found.works) for cell in found.works]
    timed = [(row, row.time) for row in found.rows if row.time is not None]
    strips = [Strip("All works" if len(names) > 1 else names[0], _dots(timed, systems))]
    for at, name in enumerate(names[:MOST_STRIPS] if len(names) > 1 else ()):
        strips.append(Strip(name, _dots(_times_of_work(found, at), systems)))
    key = (KeyEntry("this machine", "own"), KeyEntry("the others", "other", slot=9))
    alt = ", ".join(f"{systems.of(row).name} {time:.2f}" for row, time in timed)
    return Picture("strips", Strips(tuple(strips), "fastest = 1.00", key), alt, paper=True)


def _dots(times: Iterable[tuple[Standing, float]], systems: Systems) -> tuple[Dot, ...]:
    placed = ((systems.of(row), time, row.first is not None) for row, time in times)
    return tuple(Dot(system.name, time, system.own, ranked) for system, time, ranked in placed)


def _times_of_work(found: Standings, at: int) -> list[tuple[Standing, float]]:
    """The time of a sample on each machine over that on the fastest."""
    cells = [(row, cell.throughput.mean) for row in found.rows if (cell := row.cells[at])]
    speeds = [(row, speed) for row, speed in cells if speed]
    most = max(speed for _, speed in speeds)
    return [(row, most / speed) for row, speed in speeds]


def _nearest(rows: tuple[Standing, ...], systems: Systems) -> tuple[Standing, ...]:
    """All where there is room; else the fastest half, and those nearest to this machine."""
    if len(rows) <= MOST_ROWS:
        return rows
    own = next((at for at, row in enumerate(rows) if systems.of(row).own), 0)
    near = sorted(range(len(rows)), key=lambda at: abs(at - own))[: MOST_ROWS // 2]
    kept = {*range(MOST_ROWS // 2), *near}
    return tuple(row for at, row in enumerate(rows) if at in kept)


def headline(found: Machines, systems: Systems) -> Headline:
    """How many can be ranked, how far the slowest is from the fastest, and where this machine stands."""
    ranked = [row for row in found.all.rows if row.first is not None]
    own = next((row for row in ranked if systems.of(row).own), None)
    slowest = ranked[-1] if len(ranked) > 1 else None
    return Headline(
        "class",
        {
            "machines": len(found.all.rows),
            "ranked": len(ranked),
            "slowest": Quantity(slowest.time, "", slowest.low, slowest.high) if slowest else None,
            "own": systems.of(own) if own else None,
            "place": {"first": own.first, "last": own.last} if own else None,
        },
    )
