"""Adapters for what is bought: what cards cost for the buyer's work, and what a delivered one must reach."""

from __future__ import annotations

from typing import Any

from report.analysis import Analysis
from report.buying.clause import AcceptanceClause, RequirementResult, SpeedRequirement, judge
from report.buying.cost_model import OfferCost
from report.buying.costs import Costs
from report.buying.workload_mix import MixLine
from tests.helpers.figures_read import first_trial, key, length


def costs(analysis: Analysis) -> dict[str, Any] | None:
    """Where there is a buyer's file, every number of the costs."""
    found = analysis.costs
    if found is None:
        return None
    return {
        "inputs": found.numbers.inputs,
        "offers": [_offer(found, i) for i in range(len(found.offers))],
        "ranking": [found.offers[i].name for i in found.ranking.order],
        "mix": [_line(line) for line in found.lines],
        "hours_are_on": found.offers[found.numbers.hours_on].name,
        "time_over": _time_over(found),
    }


def _offer(found: Costs, i: int) -> dict[str, Any]:
    offer, card = found.offers[i], found.numbers.offers[i]
    return {
        "name": offer.name,
        "machine": offer.machine,
        "card": offer.card,
        "quoted": offer.offer is not None,
        "rented": card.rented,
        "price": card.price,
        "watts": card.watts,
        "power_measured": found.power_measured_on(i),
        "costs": _costs(found.ranking.offers[i]),
    }


def _costs(found: OfferCost) -> dict[str, Any]:
    """Each a range of low, best and high."""
    return {
        "hours": found.hours,
        "year": found.cost,
        "over_cheapest": found.ratio,
        "break_even_price": found.turning_price,
    }


def _line(line: MixLine) -> dict[str, Any]:
    return {
        "name": line.name,
        "key": key(line.key),
        "protocol_length": length(line.length),
        "hours": line.hours,
        "stands_on": [cell and first_trial(cell) for cell in line.cells],
    }


def _time_over(found: Costs) -> dict[str, Any]:
    """Each offer's time over each other's, line by line."""
    names = [offer.name for offer in found.offers]
    return {
        f"{one} over {other}": found.numbers.speed[i][j]
        for i, one in enumerate(names)
        for j, other in enumerate(names)
        if i != j
    }


def acceptance(analysis: Analysis) -> dict[str, Any] | None:
    """The clause of the leading session, and what each session beside it would answer to it."""
    wanted = analysis.clause
    if wanted is None:
        return None
    others = [one for one in dict.fromkeys(row.session for row in analysis.shown) if one != analysis.lead]
    return {
        "margin": wanted.margin,
        "demands": [_demand(one) for one in wanted.demands],
        "disturbed": wanted.disturbed,
        "delivered": {name: [_finding(one) for one in _delivered(analysis, wanted, name)] for name in others},
    }


def _delivered(analysis: Analysis, wanted: AcceptanceClause, session: str) -> tuple[RequirementResult, ...]:
    failed = [row for row in analysis.trials if row.session == session and row.failure is not None]
    delivered = [cell for cell in analysis.cells if cell.session == session]
    return judge(wanted, delivered, failed)


def _demand(found: SpeedRequirement) -> dict[str, Any]:
    return {
        "figure": found.figure.estimate,
        "runs": found.runs,
        "planned": found.planned,
        "range": [found.figure.low, found.figure.high],
        "unproven": found.unproven,
        "blocks": len(set(found.measured.blocks)),
    }


def _finding(found: RequirementResult) -> dict[str, Any]:
    return {"passed": found.passed, "ratio": [found.ratio, found.low, found.high]}
