"""What a delivered machine must reach, and how many of sound ones do not."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.buying.clause import AcceptanceClause
from report.compare.spread import Shortfall, UnitSpread, shortfalls


@dataclass(frozen=True, slots=True)
class Acceptance:
    """The clause, and how far units of the ordered card lie apart."""

    rule: AcceptanceClause
    spread: UnitSpread
    shortfalls: tuple[Shortfall, ...]


@dataclass(frozen=True, slots=True)
class Order:
    """What an order quotes: a bundle by its file's hash, a challenge, the plan to run, and the clause."""

    acceptance: Acceptance
    bundle: str
    sha256: str
    challenge: str
    plan: str


def view(analysis: Analysis) -> Acceptance | None:
    """Null where the leading session supports no clause."""
    rule = analysis.clause
    if rule is None:
        return None
    spread = analysis.spreads.of(rule.demands[0].card)
    return Acceptance(rule, spread, shortfalls(spread, rule.margin))
