"""Frameworks that train one network alike on one machine: one picture and one row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import FULL_PRECISION
from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.compare.precisions import Speedup
from report.compare.ranking import FrameworkLine, Work, places, works
from report.page.filters import seconds
from report.page.pictures import described
from report.page.values import Chip, Headline, Picture, Quantity, Systems, quantity
from report.trials.key import Key, grouped_by


@dataclass(frozen=True, slots=True)
class FrameworkWork:
    """One work that several frameworks did.

    A row is a framework's line, the places that its range allows, and what a 16-bit precision gains. A line
    that keeps a protocol of its own has no place.
    """

    work: Work
    picture: Picture
    rows: tuple[tuple[FrameworkLine, tuple[int, int] | None, Quantity | None], ...]

    @property
    def key(self) -> Key:
        """The key that the comparable lines have in common."""
        return self.work.alike[0].cell.key


@dataclass(frozen=True, slots=True)
class FrameworksView:
    """All works of several frameworks; by a framework's name, what it does otherwise, in its own words."""

    works: tuple[FrameworkWork, ...]
    differences: tuple[tuple[str, tuple[str, ...]], ...]


def frameworks(analysis: Analysis) -> FrameworksView | None:
    """Null where fewer than two frameworks kept one protocol on this machine."""
    found = works(analysis.measured_here, analysis.lead)
    if not found:
        return None
    by_framework = grouped_by((line for work in found for line in work.lines), lambda line: line.framework)
    differs = []
    for same in by_framework.values():
        said = dict.fromkeys(each for line in same if line.used for each in line.used.differs)
        differs.append((same[0].name, tuple(said)))
    return FrameworksView(
        tuple(framework_work(work, f"frameworks-{n}", analysis.speedups) for n, work in enumerate(found, 1)),
        tuple((name, words) for name, words in differs if words),
    )


def framework_work(work: Work, name: str, gains: Sequence[Speedup]) -> FrameworkWork:
    """One work as it is shown; `name` is its picture's."""
    mixed = [gain for gain in gains if gain.of.key.precision not in FULL_PRECISION]
    rows = []
    for line in work.lines:
        gain = next((quantity(gain.ratio) for gain in mixed if gain.over is line.cell), None)
        rows.append((line, places(line, work.alike), gain))
    return FrameworkWork(work, _picture(work, name), tuple(rows))


def _picture(work: Work, name: str) -> Picture:
    bars = tuple(_bar(line) for line in work.alike if line.scaled is not None)
    key = (KeyEntry("ranked", "own"), KeyEntry("not ranked", "unranked"))
    groups = (Group(text.model_name(work.alike[0].cell.key.model), bars),)
    chart = Bars(groups, axis="fastest = 1.00", key=key)
    return Picture(name, chart, described(groups))


def _bar(line: FrameworkLine) -> Bar:
    assert line.scaled is not None
    interval = line.scaled.interval
    return Bar(
        line.name,
        "own" if line.cell.ranked else "unranked",
        line.scaled.estimate,
        interval.low if interval else None,
        interval.high if interval else None,
        text=seconds(line.cell.seconds.mean),
        small=text.times(line.scaled.estimate),
        note=line.cell.key.precision,
    )


def headline(work: Work, systems: Systems) -> Headline:
    """The fastest, with what ties with it, and the first that does not."""
    first, *others = work.compared
    tied = [line for line in others if line.scaled is None or line.scaled.tied is not False]
    slower = next((line for line in others if line not in tied), None)
    return Headline(
        "frameworks",
        {
            "model": text.model_name(first.cell.key.model),
            "own": systems.of(first.cell),
            "tied": [first.name, *(line.name for line in tied)],
            "slower": {"name": slower.name, "times": quantity(slower.scaled)} if slower else None,
            "first_look": any(
                not line.cell.ranked or (line.scaled and line.scaled.first_look) for line in work.compared
            ),
        },
    )


def chips(work: Work) -> list[Chip]:
    """What is not ranked or no longer kept up."""
    unranked = [line.name for line in work.alike if not line.cell.ranked]
    retired = [line.name for line in work.alike if line.used and line.used.retired]
    found = [Chip("care", "not-ranked", "workloads", {"names": unranked})] if unranked else []
    found += [Chip("care", "retired", "workloads", {"count": len(retired)})] if retired else []
    return [*found, Chip("good", "one-protocol")]
