"""What a delivered machine must reach: each speed of the order less a margin."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.buying.clause import Clause, Demand
from report.page.systems import Systems
from report.page.values import Command, Quantity

COMMAND = "invoke accept BUNDLE"


@dataclass(frozen=True, slots=True)
class DemandRow:
    """One speed: as ordered, and the least that is accepted."""

    name: str
    ordered: Quantity
    least: Quantity
    runs: int
    unproven: bool


@dataclass(frozen=True, slots=True)
class AcceptanceView:
    """The clause for an order."""

    share: float
    """Of the ordered mean, that a delivered one must reach."""
    rows: tuple[DemandRow, ...]
    command: Command
    unproven: bool
    few_blocks: bool
    disturbed: int
    planned: int


def view(analysis: Analysis, systems: Systems) -> AcceptanceView | None:
    """Of the leading session; null where no work has two valid runs."""
    return of_clause(analysis.clause) if analysis.clause else None


def of_clause(rule: Clause, command: str = COMMAND) -> AcceptanceView:
    """A clause, and the command that answers to it."""
    return AcceptanceView(
        share=1 - rule.margin,
        rows=tuple(_row(demand, rule.margin) for demand in rule.demands),
        command=Command(command),
        unproven=rule.unproven,
        few_blocks=rule.few_blocks,
        disturbed=rule.disturbed,
        planned=sum(demand.planned for demand in rule.demands),
    )


def _row(demand: Demand, margin: float) -> DemandRow:
    unit, figure = f"{demand.unit}s/s", demand.figure
    return DemandRow(
        name=demand.what,
        ordered=Quantity(figure.estimate, unit, figure.low, figure.high),
        least=Quantity(figure.estimate * (1 - margin), unit),
        runs=demand.runs,
        unproven=demand.unproven,
    )
