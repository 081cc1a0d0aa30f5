"""What a delivered machine must reach, and how often that rule is wrong."""

from __future__ import annotations

from report import text
from report.acceptance import clause
from report.analysis import Analysis
from report.sections.answer.memory import on

COMMAND = "invoke accept BUNDLE"


def sentences(analysis: Analysis) -> tuple[str, ...]:
    """The rule in full; empty where no cell has two valid runs."""
    return clause.lines(analysis.clause, COMMAND) if analysis.clause else ()


def in_brief(analysis: Analysis) -> tuple[str, ...]:
    """The rule as page one says it, to a buyer alone; of another machine's order, how to have that one's."""
    costs, rule, own = analysis.costs, analysis.clause, analysis.own_cells
    if analysis.evidence.purchase is None or costs is None or costs.answer is None or rule is None or not own:
        return ()
    where = on(analysis, own[0]).strip() or "here"
    said = clause.brief(rule, COMMAND, where)
    order = costs.answer.order
    best = costs.inputs.offers[order[0]] if order else None
    if best is None or best.made(own[0].machine, own[0].card):
        return said
    return (*said, f"For {text.the(best.name)}, measure and pack on that machine.")
