"""Frameworks that train one network alike on one machine: a row for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import FULL_PRECISION
from report import text
from report.analysis import Analysis
from report.compare.cells import Speedup
from report.compare.ranking import FrameworkLine, Work, places, works
from report.page.pictures import TimePicture
from report.page.values import Chip, Headline, Quantity, Systems, quantity
from report.trials.key import Key


@dataclass(frozen=True, slots=True)
class FrameworkWork:
    """One work that several frameworks did.

    A row is a framework's line, the places that its range allows, and what a 16-bit precision gains. A line
    that keeps a protocol of its own has no place.
    """

    work: Work
    rows: tuple[tuple[FrameworkLine, tuple[int, int] | None, Quantity | None], ...]
    picture: TimePicture | None
    """Page one's alone."""

    @property
    def key(self) -> Key:
        """The key that the comparable lines have in common."""
        return self.work.alike[0].cell.key


def frameworks(analysis: Analysis) -> tuple[FrameworkWork, ...]:
    """Each work that several frameworks did alike on this machine."""
    return tuple(
        framework_work(work, analysis.speedups) for work in works(analysis.measured_here, analysis.lead)
    )


def framework_work(work: Work, gains: Sequence[Speedup], picture: TimePicture | None = None) -> FrameworkWork:
    """One work as it is shown."""
    mixed = [gain for gain in gains if gain.of.key.precision not in FULL_PRECISION]
    rows = []
    for line in work.lines:
        gain = next((quantity(gain.ratio) for gain in mixed if gain.over is line.cell), None)
        rows.append((line, places(line, work.alike), gain))
    return FrameworkWork(work, tuple(rows), picture)


def headline(work: Work, systems: Systems) -> Headline:
    """The fastest, with what ties with it, and the first that does not."""
    first, *others = work.compared
    tied = [line for line in others if line.scaled and line.scaled.tied]
    ranges = [line.scaled and line.scaled.interval for line in work.compared]
    shown = (line for line in others if line.scaled and (line.scaled.interval or line.scaled.estimate > 1.05))
    slower = next((line for line in shown if line not in tied), None)
    return Headline(
        "frameworks",
        {
            "model": text.model_name(first.cell.key.model),
            "own": systems.of(first.cell),
            "tied": [first.name, *(line.name for line in tied)],
            "slower": {"name": slower.name, "times": quantity(slower.scaled)} if slower else None,
            "first_look": not all(line.cell.ranked for line in work.compared)
            or not all(ends and ends.blocks_assumed is None for ends in ranges),
        },
    )


def chips(work: Work) -> list[Chip]:
    """What is not ranked or no longer kept up."""
    unranked = [line.name for line in work.alike if not line.cell.ranked]
    retired = [line.name for line in work.alike if line.used and line.used.retired]
    found = [Chip("care", "not-ranked", "workloads", {"names": unranked})] if unranked else []
    found += [Chip("care", "retired", "workloads", {"count": len(retired)})] if retired else []
    return [*found, Chip("good", "one-protocol")]
