"""What a delivered machine must reach, and how many of sound ones do not."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.buying.clause import AcceptanceClause
from report.compare.spread import UnitSpread, missing_share


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The clause, and how far units of the ordered card lie apart."""

    rule: AcceptanceClause
    spread: UnitSpread
    missing_share: float
    """The share of sound machines that miss a figure by their unit alone."""


def view(analysis: Analysis) -> Acceptance | None:
    """Null where the leading session supports no clause."""
    rule = analysis.clause
    if rule is None:
        return None
    spread = analysis.spreads.get(rule.demands[0].card, UnitSpread())
    return Acceptance(rule, spread, missing_share(spread, rule.margin))
