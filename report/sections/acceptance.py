"""What a delivered machine must reach, and how often that rule is wrong."""

from __future__ import annotations

from report.acceptance import clause
from report.analysis import Analysis

COMMAND = "invoke accept BUNDLE"


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """The rule in full; empty where no cell has two valid runs."""
    return clause.lines(analysis.clause, COMMAND) if analysis.clause else ()


def in_brief(analysis: Analysis) -> tuple[str, ...]:
    """The rule as page one says it, to a buyer alone."""
    costs = analysis.costs
    bought = analysis.evidence.purchase is not None and costs is not None and costs.answer is not None
    return tuple(clause.brief(analysis.clause, COMMAND)) if analysis.clause and bought else ()
