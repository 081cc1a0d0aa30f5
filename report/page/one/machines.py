"""Page one of many machines that did the same work: where each stands, and one row a machine."""

from __future__ import annotations

from dataclasses import dataclass, replace

from report.analysis import Analysis
from report.charts.marks import KeyEntry
from report.charts.strips import Dot, Strip, Strips
from report.page.parts.pairs import StandingRow, StandingsView, standings_view
from report.page.systems import Systems
from report.page.values import Headline, Picture

MOST_ROWS = 20
MOST_STRIPS = 3


@dataclass(frozen=True, slots=True)
class Machines:
    """All machines sorted; `shown` are those in page one's table, the part below has all."""

    picture: Picture
    all: StandingsView
    shown: tuple[StandingRow, ...]


def machines(analysis: Analysis, systems: Systems) -> Machines:
    """All that did the leading session's work."""
    found = standings_view(analysis, systems)
    assert found is not None
    return Machines(_picture(found), found, _nearest(found.rows))


def _picture(found: StandingsView) -> Picture:
    """A strip of dots for all works together, and one for each: a machine's time over the fastest's."""
    strips = [Strip("All works" if len(found.columns) > 1 else found.columns[0], _dots(found))]
    if len(found.columns) > 1:
        strips += [
            Strip(name, _dots_of_work(found, at)) for at, name in enumerate(found.columns[:MOST_STRIPS])
        ]
    key = (KeyEntry("this machine", "own"), KeyEntry("the others", "other", slot=9))
    alt = ", ".join(f"{row.system.name} {row.time.value:.2f}" for row in found.rows if row.time.value)
    return Picture("strips", Strips(tuple(strips), "fastest = 1.00", key), alt, paper=True)


def _dots(found: StandingsView) -> tuple[Dot, ...]:
    return tuple(
        Dot(row.system.name, row.time.value, row.system.own, row.first is not None)
        for row in found.rows
        if row.time.value is not None
    )


def _dots_of_work(found: StandingsView, at: int) -> tuple[Dot, ...]:
    """The time of a sample on each machine over that on the fastest."""
    speeds = [(row, speed.value) for row in found.rows if (speed := row.speeds[at]) and speed.value]
    most = max(speed for _, speed in speeds)
    return tuple(
        Dot(row.system.name, most / speed, row.system.own, row.first is not None) for row, speed in speeds
    )


def _nearest(rows: tuple[StandingRow, ...]) -> tuple[StandingRow, ...]:
    """All where there is room; else the fastest half, and those nearest to this machine."""
    if len(rows) <= MOST_ROWS:
        return rows
    own = next((at for at, row in enumerate(rows) if row.system.own), 0)
    near = sorted(range(len(rows)), key=lambda at: abs(at - own))[: MOST_ROWS // 2]
    kept = {*range(MOST_ROWS // 2), *near}
    return tuple(row for at, row in enumerate(rows) if at in kept)


def headline(found: Machines) -> Headline:
    """How many can be ranked, how far the slowest is from the fastest, and where this machine stands."""
    ranked = [row for row in found.all.rows if row.first is not None]
    own = next((row for row in ranked if row.system.own), None)
    slowest = ranked[-1].time if len(ranked) > 1 else None
    return Headline(
        "class",
        {
            "machines": len(found.all.rows),
            "ranked": len(ranked),
            "slowest": replace(slowest, unit="ratio") if slowest else None,
            "own": own.system if own else None,
            "place": {"first": own.first, "last": own.last} if own else None,
        },
    )
