"""What the work costs: a row for each offer, and the price at which the order turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from report import text
from report.analysis import Analysis
from report.buying.cost_inputs import CostInputs, Range
from report.buying.cost_model import CostModel
from report.buying.costs import Costs
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.page.filters import value
from report.page.values import NamedSystem, Picture, Quantity, Systems, quantity

OLD_DAYS = 90
"""An offer that is older is marked."""


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer. A cost is not known where that of something it needs is not."""

    system: NamedSystem | None
    """Null where no record is of the card."""
    name: str
    offered: date | None
    source: str
    old: bool
    price: Quantity
    cost: Quantity
    """Of a year's work."""
    ratio: Quantity | None
    """Its cost over the cheapest's; null for that one."""
    hours: Quantity
    turns_at: Quantity
    """The price at which it costs as much as the cheapest; of that one, as much as the second."""
    watts: Quantity
    watts_measured: bool
    memory: Quantity
    missing: tuple[str, ...]
    """Works with hours that it has no figure of, with the reason."""
    expected: bool
    """Whether `cost`, `hours` and `turns_at` are by what others' figures make one expect of the card."""


@dataclass(frozen=True, slots=True)
class CostsView:
    """`state` is priced, ratios (no prices), or nothing (no ranked run to price)."""

    state: str
    rows: tuple[OfferRow, ...] = ()
    picture: Picture | None = None
    ratios: tuple[tuple[str, Quantity], ...] = ()
    """Without prices: below how many times that of the card whose hours are given a card costs less."""


def view(analysis: Analysis, systems: Systems) -> CostsView | None:
    """The offers, or by speed alone where there are no prices; null where there is nothing to compare."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None:
        return CostsView("nothing") if purchase else None
    if purchase is None or costs.ranking is None:
        return _by_speed(costs.inputs)
    order = costs.ranking.order
    # Priced offers first, the cheapest at the top.
    places = [*order, *(place for place in range(len(costs.inputs.offers)) if place not in order)]
    rows = tuple(_row(costs, place, analysis, systems) for place in places)
    return CostsView("priced", rows, _picture(rows, purchase.currency))


def _row(costs: Costs, place: int, analysis: Analysis, systems: Systems) -> OfferRow:
    assert costs.ranking is not None and costs.inputs.purchase is not None
    candidate, rented = costs.inputs.offers[place], costs.numbers.offers[place].rented
    found, currency = costs.ranking.offers[place], costs.inputs.purchase.currency
    offer, today = candidate.offer, analysis.question.now.date()
    unit = f"{currency}/h" if rented else currency
    cheapest = costs.ranking.order[:1] == (place,)
    said = analysis.question.offers.get(candidate.name)
    turns_at: Range | float | None = said.wins_below if said else _not_below_zero(found.turning_price)
    watts = None if costs.power_unknown else CostModel(costs.numbers).watts(place)
    lines = (line for line in costs.inputs.lines if line.hours > 0 and line.reasons[place])
    missing = (f"{line.name}: {line.reasons[place]}" for line in lines)
    return OfferRow(
        system=systems.of(candidate) if candidate.measured else None,
        name=candidate.name,
        offered=offer.date if offer else None,
        source=text.clean(offer.source, 160) if offer else "",
        old=bool(offer and (today - offer.date).days > OLD_DAYS),
        price=quantity(offer.cost if offer else None, unit),
        cost=quantity(said.cost if said else found.cost, currency, best=cheapest),
        ratio=None if cheapest else quantity(found.ratio, "ratio"),
        hours=quantity(said.hours if said else found.hours, "h"),
        turns_at=quantity(turns_at, unit),
        watts=quantity(watts, "W"),
        watts_measured=costs.inputs.measured_power[place],
        memory=Quantity(candidate.memory_bytes(analysis.trials), "bytes"),
        missing=tuple(missing) if candidate.measured else (),
        expected=said is not None,
    )


def _picture(rows: Sequence[OfferRow], currency: str) -> Picture | None:
    """Return the bars of a year's cost, one for each offer that was measured; null where there is none."""
    shown = [(row.system, row.cost) for row in rows if row.system and row.cost]
    if not shown:
        return None
    systems = {system.slot: system for system, _ in shown}
    key = tuple(KeyEntry(system.name, system.look, system.slot) for system in systems.values())
    bars = tuple(
        Bar(system.name, system.look, cost.value, cost.low, cost.high, text=value(cost), slot=system.slot)
        for system, cost in shown
    )
    alt = "; ".join(f"{system.name}: {value(cost)}" for system, cost in shown)
    return Picture("costs-a-year", Bars((Group("", bars),), axis=currency, key=key, reference=None), alt)


def _not_below_zero(price: Range | None) -> Range | None:
    """Where even no price would do, there is none to show."""
    if price is None or price[1] <= 0:
        return None
    return max(price[0], 0.0), price[1], price[2]


def _by_speed(inputs: CostInputs) -> CostsView | None:
    """How many times the price of the offer whose hours are given each other may cost."""
    model, base = CostModel(inputs.numbers), inputs.numbers.hours_on
    rows = [
        (offer.name, quantity(times))
        for i, offer in enumerate(inputs.offers)
        if i != base and (times := model.speed(i, base))
    ]
    rows.sort(key=lambda row: -(row[1].value or 0.0))
    return CostsView("ratios", ratios=tuple(rows)) if rows else None
