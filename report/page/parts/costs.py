"""What the work costs: a row an offer, the price at which the order turns, and what matters most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from report import text
from report.analysis import Analysis
from report.buying.cost_inputs import CostInputs, Range
from report.buying.cost_model import Draws
from report.buying.costs import Costs
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.page.filters import value
from report.page.values import NamedSystem, Picture, Quantity, Systems, quantity

OLD_DAYS = 90
"""An offer that is older is marked."""

IN_MONEY = ("price", "electricity_price", "host_price")


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer. A cost is not known where that of something it needs is not, or the card does not fit."""

    system: NamedSystem | None
    """Null where no record is of the card."""
    name: str
    units: int
    offered: date | None
    source: str
    old: bool
    price: Quantity
    shared: Quantity
    """A year's cost where other work fills the rest of the time."""
    alone: Quantity
    """The same where nothing does."""
    ratio: Quantity | None
    """By the buyer's use its cost over the cheapest's; null for that one."""
    hours: Quantity
    turns_at: Quantity
    """The price at which it costs as much as the cheapest; of that one, as much as the second."""
    watts: Quantity
    watts_measured: bool
    kwh: Quantity
    memory: Quantity
    fits: bool
    count: int | None
    """How many the limits allow; null without limits."""
    missing: tuple[str, ...]
    """Works with hours that it has no figure of, with the reason."""
    expected: bool
    """Whether `hours` and `turns_at` are by what others' figures make one expect, each at its worse end."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """The input that the order depends on most, and where the two cheapest cost the same.

    `name` is use, speed, price, watts, or a key of the buyer's file; `of` is whose, `over` the use in which
    it costs least.
    """

    name: str
    of: str = ""
    over: str = ""
    value: Quantity | None = None
    turns_at: Quantity | None = None


@dataclass(frozen=True, slots=True)
class CostsView:
    """`state` is priced, ratios (no prices), or nothing (no ranked run to price)."""

    state: str
    rows: tuple[OfferRow, ...] = ()
    picture: Picture | None = None
    assumption: Assumption | None = None
    ratios: tuple[tuple[str, Quantity], ...] = ()
    """Without prices: below how many times that of the card whose hours are given a card costs less."""


def view(analysis: Analysis, systems: Systems) -> CostsView | None:
    """The offers, or by speed alone where there are no prices; null where there is nothing to compare."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None:
        return CostsView("nothing") if purchase else None
    if purchase is None or costs.answer is None:
        return _by_speed(costs.inputs)
    order = costs.answer.order
    # Priced offers first, the cheapest at the top.
    places = [*order, *(place for place in range(len(costs.inputs.offers)) if place not in order)]
    rows = tuple(_row(costs, place, analysis, systems) for place in places)
    return CostsView("priced", rows, _picture(rows, purchase.currency), assumption(analysis))


def _row(costs: Costs, place: int, analysis: Analysis, systems: Systems) -> OfferRow:
    assert costs.answer is not None and costs.inputs.purchase is not None
    candidate, numbers = costs.inputs.offers[place], costs.numbers.cards[place]
    card, currency = costs.answer.cards[place], costs.inputs.purchase.currency
    offer, today = candidate.offer, analysis.question.now.date()
    unit = f"{currency}/h" if numbers.rented else currency
    cheapest = costs.answer.order[:1] == (place,)
    by_use = {use: found.cards[place].cost for use, found in costs.answers.items()}
    said = analysis.question.offers.get(candidate.name)
    turns_at: Range | float | None = said.wins_below if said else _not_below_zero(card.break_even)
    watts = None if costs.power_unknown else Draws(costs.numbers).watts(place)
    lines = (line for line in costs.inputs.lines if line.hours > 0 and line.reasons[place])
    missing = (f"{line.name}: {line.reasons[place]}" for line in lines)
    return OfferRow(
        system=systems.of(candidate) if candidate.measured else None,
        name=candidate.name,
        units=numbers.units,
        offered=offer.date if offer else None,
        source=text.clean(offer.source, 160) if offer else "",
        old=bool(offer and (today - offer.date).days > OLD_DAYS),
        price=quantity(offer.cost if offer else None, unit),
        shared=quantity(by_use["shared"], currency, best=cheapest and costs.use == "shared"),
        alone=quantity(by_use.get("alone"), currency, best=cheapest and costs.use == "alone"),
        ratio=None if cheapest else quantity(card.ratio, "ratio"),
        hours=quantity(said.hours if said else card.hours, "h"),
        turns_at=quantity(turns_at, unit),
        watts=quantity(watts, "W"),
        watts_measured=costs.inputs.measured_power[place],
        kwh=quantity(card.kwh, "kWh"),
        memory=Quantity(candidate.memory_bytes(analysis.trials), "bytes"),
        fits=numbers.fits,
        count=card.count,
        missing=tuple(missing) if candidate.measured else (),
        expected=said is not None,
    )


def _picture(rows: Sequence[OfferRow], currency: str) -> Picture | None:
    """A year's cost of each offer, where other work shares the machine and where none does."""
    groups: list[Group] = []
    systems: dict[int, NamedSystem] = {}
    for name, costs in (
        ("shared", [(row.system, row.shared) for row in rows]),
        ("your work alone", [(row.system, row.alone) for row in rows]),
    ):
        shown = [(system, cost) for system, cost in costs if system and cost]
        systems |= {system.slot: system for system, _ in shown}
        groups += [Group(name, tuple(_bar(*each) for each in shown))] if shown else []
    if not groups:
        return None
    key = tuple(KeyEntry(system.name, system.look, system.slot) for system in systems.values())
    alt = "; ".join(
        f"{row.name}: {value(row.shared or row.alone)}" for row in rows if row.shared or row.alone
    )
    return Picture("costs-a-year", Bars(tuple(groups), axis=currency, key=key, reference=None), alt)


def _bar(system: NamedSystem, cost: Quantity) -> Bar:
    ends = cost.value, cost.low, cost.high
    return Bar(system.name, system.look, *ends, text=value(cost), slot=system.slot)


def _not_below_zero(price: Range | None) -> Range | None:
    """Where even no price would do, there is none to show."""
    if price is None or price[1] <= 0:
        return None
    return max(price[0], 0.0), price[1], price[2]


def assumption(analysis: Analysis) -> Assumption | None:
    """Whether other work shares the machine where that turns the order, else the input that moves it most."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or purchase is None:
        return None
    names, currency = [offer.name for offer in costs.inputs.offers], purchase.currency
    if costs.other_winner is not None:
        return Assumption("use", names[costs.other_winner], "alone" if costs.use == "shared" else "shared")
    most = costs.most
    if most is None or costs.pair is None:
        return None
    of, over = (names[place] for place in costs.pair) if most.name == "speed" else ("", "")
    of = of if most.of is None else names[most.of]
    unit = {"speed": "ratio", "watts": "W", "host_watts": "W"}.get(most.name, "")
    unit = currency if most.name in IN_MONEY else unit
    unit = f"{unit}/h" if most.of is not None and costs.numbers.cards[most.of].rented else unit
    turns_at = None if most.flip is None else Quantity(most.flip, unit)
    return Assumption(most.name, of, over, quantity(most.values, unit), turns_at)


def _by_speed(inputs: CostInputs) -> CostsView | None:
    """How many times the price of the offer whose hours are given each other may cost."""
    drawn, base = Draws(inputs.numbers), inputs.numbers.hours_on
    rows = [
        (offer.name, quantity(times))
        for i, offer in enumerate(inputs.offers)
        if i != base and (times := drawn.speed(i, base))
    ]
    rows.sort(key=lambda row: -(row[1].value or 0.0))
    return CostsView("ratios", ratios=tuple(rows)) if rows else None
