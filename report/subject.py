"""What a page is about: the first of these that its analysis has something to say on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from report.comparisons.ranking.frameworks import works
from report.comparisons.ranking.standings import standings

if TYPE_CHECKING:
    from report.analysis import Analysis

Subject = Literal[
    "nothing", "failed", "costs", "verdicts", "class", "pair", "frameworks", "first-look", "self"
]

CLASS_MACHINES = 5
"""Machines that did the same work: so many are a class, which a table sorts, and no longer pairs."""


def subject_of(analysis: Analysis) -> Subject:
    """Costs, else a first look, else published numbers, other machines, frameworks, or this machine itself.

    `nothing` has no record of its own, `failed` no figure; of a `first-look` fewer than half of the leading
    session's figures may be ranked.
    """
    if not analysis.own:
        return "nothing"
    if not analysis.groups:
        return "failed"
    if _priced(analysis):
        return "costs"
    own = [cell for cell in analysis.measured_here if cell.session == analysis.lead]
    own = own or analysis.measured_here
    if sum(cell.ranked for cell in own) * 2 < len(own):
        return "first-look"
    if analysis.evidence.purchase is None and any(judged.compared for judged in analysis.verdicts):
        return "verdicts"
    found = standings(analysis.own_cells, analysis.cells)
    if found is not None and len(found.rows) >= CLASS_MACHINES:
        return "class"
    if analysis.expectations and analysis.expectations[0].units is not None:
        return "pair"
    return "frameworks" if _frameworks(analysis) else "self"


def _priced(analysis: Analysis) -> bool:
    """Whether two offers have a price, hours and a ratio of their costs."""
    costs = analysis.costs
    if costs is None or costs.answer is None or costs.pair is None:
        return False
    first, second = (costs.answer.cards[place] for place in costs.pair)
    return None not in (second.ratio, first.hours, second.hours)


def _frameworks(analysis: Analysis) -> bool:
    """Whether the leading session ranks two frameworks under the same terms."""
    return any(
        any(line.cell.session == analysis.lead for line in work.alike)
        and len({line.framework for line in work.ranked}) > 1
        for work in works(analysis.measured_here, analysis.lead)
    )
