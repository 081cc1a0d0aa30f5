"""Page one of one network in several frameworks: which is the fastest, and which cannot be told apart."""

from __future__ import annotations

from dataclasses import dataclass, replace

from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.ranking import Work, works
from report.page.systems import Systems
from report.page.values import Chip, Headline, quantity
from report.page.workloads.frameworks import FrameworkWork, frameworks


@dataclass(frozen=True, slots=True)
class Frameworks:
    """The work that the leading session is of, and its picture and rows."""

    work: FrameworkWork
    cells: tuple[Cell, ...]
    headline: Headline
    chips: tuple[Chip, ...]


def leading_work(analysis: Analysis) -> int | None:
    """The place of the first work of the leading session that ranks two frameworks; null where none does."""
    for place, work in enumerate(works(analysis.measured_here, analysis.lead)):
        leads = any(line.cell.session == analysis.lead for line in work.alike)
        if leads and len({line.framework for line in work.ranked}) > 1:
            return place
    return None


def framework_page(analysis: Analysis, systems: Systems) -> Frameworks | None:
    """Null where the leading session ranks no two frameworks."""
    place, found = leading_work(analysis), frameworks(analysis)
    if place is None or found is None:
        return None
    work = works(analysis.measured_here, analysis.lead)[place]
    shown = found.works[place]
    cells = tuple(line.cell for line in work.ranked)
    return Frameworks(
        replace(shown, picture=replace(shown.picture, name="lead", paper=True)),
        cells,
        _headline(work, systems),
        tuple(_chips(work)),
    )


def _headline(work: Work, systems: Systems) -> Headline:
    first, *others = work.ranked
    tied = [line for line in others if line.scaled is None or line.scaled.tied is not False]
    slower = next((line for line in others if line not in tied), None)
    return Headline(
        "frameworks",
        {
            "model": text.model_name(first.cell.key.model),
            "own": systems.of(first.cell),
            "tied": [first.name, *(line.name for line in tied)],
            "slower": {"name": slower.name, "times": quantity(slower.scaled)} if slower else None,
        },
    )


def _chips(work: Work) -> list[Chip]:
    unranked = [line.name for line in work.alike if not line.cell.ranked]
    retired = [line.name for line in work.alike if line.used and line.used.retired]
    found = [Chip("care", "not-ranked", "workloads", {"names": unranked})] if unranked else []
    found += [Chip("care", "retired", "workloads", {"count": len(retired)})] if retired else []
    return [*found, Chip("good", "one-protocol")]
