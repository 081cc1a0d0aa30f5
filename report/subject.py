"""What a page is about: the first of these that its analysis has something to say on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from report.comparisons.cells import Cell
from report.trials.key import FRAMEWORK
from report.trials.pairs import grouped_by

if TYPE_CHECKING:
    from report.analysis import Analysis

Subject = Literal[
    "nothing", "failed", "costs", "verdicts", "class", "pair", "frameworks", "first-look", "self"
]

CLASS_MACHINES = 5
"""Machines that did the same work: so many are a class, which a table sorts, and no longer pairs."""

FAIR = "fair/"
"""How protocols begin that all frameworks keep alike."""


def subject_of(analysis: Analysis) -> Subject:
    """Costs, else published numbers, else other machines, else frameworks, else this machine itself.

    `nothing` has no record of its own, `failed` no figure, and a `first-look` no figure that is ranked.
    """
    if not analysis.own:
        return "nothing"
    if not analysis.groups:
        return "failed"
    if _priced(analysis):
        return "costs"
    if analysis.evidence.purchase is None and any(judged.compared for judged in analysis.verdicts):
        return "verdicts"
    machines = [{entry.cell.machine for entry in group.entries} for group in analysis.groups]
    if max(map(len, machines)) >= CLASS_MACHINES:
        return "class"
    if analysis.expectations and analysis.expectations[0].units is not None:
        return "pair"
    own = [cell for cell in analysis.measured_here if cell.session == analysis.lead and cell.ranked]
    if _frameworks(own):
        return "frameworks"
    return "self" if own else "first-look"


def _priced(analysis: Analysis) -> bool:
    """Whether two offers have a price, hours and a ratio of their costs."""
    costs = analysis.costs
    if costs is None or costs.answer is None or costs.pair is None:
        return False
    first, second = (costs.answer.cards[place] for place in costs.pair)
    return None not in (second.ratio, first.hours, second.hours)


def _frameworks(cells: Sequence[Cell]) -> bool:
    """Whether two frameworks did one work under the same terms."""
    fair = [cell for cell in cells if cell.key.protocol.startswith(FAIR)]
    works = grouped_by(fair, lambda cell: (cell.key.workload, cell.key.protocol, cell.key.model))
    return any(
        len({dict(cell.key.options).get(FRAMEWORK) for cell in members}) > 1 for members in works.values()
    )
