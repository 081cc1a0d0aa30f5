"""What the work costs: its lines, a year's cost of each offer, where prices are from; else speed alone."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.buying.cost_inputs import CostInputs
from report.buying.cost_model import CostModel
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.page.filters import value
from report.page.one.offers import OffersView, offers
from report.page.values import Picture, Quantity, Systems, quantity


@dataclass(frozen=True, slots=True)
class CostsView:
    """The offers; without prices below how many times that of the card of the hours a card costs less."""

    offers: OffersView | None = None
    picture: Picture | None = None
    ratios: tuple[tuple[str, Quantity], ...] = ()


def view(analysis: Analysis, systems: Systems) -> CostsView | None:
    """The offers, or by speed alone where there are no prices; null where there is nothing to compare."""
    costs = analysis.costs
    if costs is None:
        return None
    if costs.ranking is None:
        return _by_speed(costs.inputs)
    found = offers(analysis, systems)
    return CostsView(found, _picture(found))


def _picture(found: OffersView) -> Picture | None:
    """Return the bars of a year's cost, one for each offer that has one; null where none has."""
    if not found.priced:
        return None
    bars = tuple(
        Bar(
            row.system.name,
            row.system.look if row.measured else "expected",
            row.cost.value,
            row.cost.low,
            row.cost.high,
            text=value(row.cost),
            slot=row.system.slot,
        )
        for row in found.priced
    )
    looks = {bar.look for bar in bars}
    key = (KeyEntry("expected", "expected", bars[0].slot),) if "expected" in looks and len(looks) > 1 else ()
    alt = "; ".join(f"{bar.label}: {bar.text}" for bar in bars)
    chart = Bars((Group("", bars),), axis=found.currency, key=key, reference=None)
    return Picture("costs-a-year", chart, alt)


def _by_speed(inputs: CostInputs) -> CostsView | None:
    """How many times the price of the offer whose hours are given each other may cost."""
    model, base = CostModel(inputs.numbers), inputs.numbers.hours_on
    rows = [
        (offer.name, quantity(times))
        for i, offer in enumerate(inputs.offers)
        if i != base and (times := model.speed(i, base))
    ]
    rows.sort(key=lambda row: -(row[1].value or 0.0))
    return CostsView(ratios=tuple(rows)) if rows else None
