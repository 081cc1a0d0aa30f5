"""What the work costs: a row an offer, the price at which the order turns, and what matters most."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry, Look
from report.cost.costs import Costs
from report.cost.inputs import CardNumbers, CostInputs, Range
from report.cost.mix import MixLine, Offer
from report.cost.model import CardAnswer, Draws, RowAnswer
from report.page.filters import value
from report.page.systems import Systems
from report.page.values import Picture, Quantity, System, quantity

OLD_DAYS = 90
"""A quote that is older is marked."""

IN_MONEY = ("electricity_price", "host_price")


@dataclass(frozen=True, slots=True)
class OfferRow:
    """One offer: its answer lacks what cannot be known, or what a card that does not fit would cost."""

    system: System
    offer: Offer
    numbers: CardNumbers
    answer: CardAnswer
    cheapest: bool
    old: bool
    unit: str
    """Of its price: an hour's where it is rented."""
    alone: Range | None
    """A year's cost where no other work fills the rest of the time."""
    turns_at: Range | None
    """The price at which it costs as much as the cheapest; of that one, as much as the second."""
    watts: Range | None
    watts_measured: bool
    memory: float | None
    missing: tuple[str, ...]
    """Works with hours that it has no figure of, with the reason."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """The input that the order depends on most, and where the two cheapest cost the same.

    `name` is sharing, speed, price, watts, hours, or a key of the buyer's file; `of` is whose, or which work.
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
    currency: str = ""
    own_mix: bool = False
    hours: float = 0.0
    hours_on: str = ""
    rows: tuple[OfferRow, ...] = ()
    picture: Picture | None = None
    power_unknown: tuple[str, ...] = ()
    flip_watts: float | None = None
    assumption: Assumption | None = None
    lines: tuple[tuple[MixLine, str, RowAnswer], ...] = ()
    """Each line of the work on each offer: one unit of it."""
    base: str = ""
    ratios: tuple[tuple[str, Quantity], ...] = ()
    """Without prices: by speed alone, below how many times the base's price a card costs less."""
    caveats: tuple[str, ...] = ()
    host_fed: bool = False
    """Whether part of the work was fed by the host's loader, which ranks machines and not cards."""
    stacks_differ: bool = False


def view(analysis: Analysis, systems: Systems) -> CostsView | None:
    """The offers, or by speed alone where there are no prices; null where there is nothing to compare."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None:
        if purchase is None:
            return None
        return CostsView("nothing", purchase.currency, caveats=tuple(quote.card for quote in purchase.quote))
    if purchase is None or costs.answer is None:
        return _by_speed(costs.inputs)
    inputs, rows = costs.inputs, _rows(costs, analysis, systems)
    return CostsView(
        "priced",
        purchase.currency,
        own_mix=inputs.own_mix,
        hours=sum(line.hours for line in inputs.lines),
        hours_on=inputs.offers[inputs.numbers.hours_on].name,
        rows=rows,
        picture=_picture(rows, purchase.currency),
        power_unknown=costs.power_unknown,
        flip_watts=costs.flip_watts,
        assumption=assumption(analysis),
        lines=_lines(costs),
        **_circumstances(inputs),
    )


def _circumstances(inputs: CostInputs) -> dict[str, Any]:
    return {
        "caveats": tuple(text.clean(caveat, 300) for caveat in inputs.caveats),
        "host_fed": any(line.key.data_mode == "host" for line in inputs.lines),
        "stacks_differ": any(len({cell.stack for cell in line.cells if cell}) > 1 for line in inputs.lines),
    }


def _rows(costs: Costs, analysis: Analysis, systems: Systems) -> tuple[OfferRow, ...]:
    """Priced offers first, the cheapest at the top."""
    assert costs.answer is not None
    order = costs.answer.order
    places = [*order, *(place for place in range(len(costs.inputs.offers)) if place not in order)]
    return tuple(_row(costs, place, analysis, systems) for place in places)


def _row(costs: Costs, place: int, analysis: Analysis, systems: Systems) -> OfferRow:
    assert costs.answer is not None and costs.inputs.purchase is not None
    offer, numbers = costs.inputs.offers[place], costs.numbers.cards[place]
    currency, answer = costs.inputs.purchase.currency, costs.answer.cards[place]
    today = analysis.question.now.date()
    return OfferRow(
        system=systems.of(offer),
        offer=offer,
        numbers=numbers,
        answer=answer,
        cheapest=costs.answer.order[:1] == (place,),
        old=bool(offer.quote and (today - offer.quote.date).days > OLD_DAYS),
        unit=f"{currency}/h" if numbers.rented else currency,
        alone=costs.alone[place] if costs.alone else None,
        turns_at=_not_below_zero(answer.break_even),
        watts=None if costs.power_unknown else Draws(costs.numbers).watts(place),
        watts_measured=costs.inputs.measured_power[place],
        memory=offer.memory_bytes(analysis.trials),
        missing=_missing(costs.inputs, place),
    )


def _picture(rows: Sequence[OfferRow], currency: str) -> Picture | None:
    """A year's cost of each offer, where other work shares the machine and where none does."""
    shared = [(row, quantity(row.answer.cost, currency)) for row in rows if row.answer.cost]
    alone = [(row, quantity(row.alone, currency)) for row in rows if row.alone]
    if not shared:
        return None
    named = (("shared", shared), ("your work alone", alone))
    groups = tuple(
        Group(name, tuple(_bar(row, cost) for row, cost in costs)) for name, costs in named if costs
    )
    key = tuple(KeyEntry(row.system.name, _look(row), row.system.slot) for row, _ in shared)
    alt = "; ".join(f"{row.offer.name}: {value(cost)}" for row, cost in shared)
    return Picture("costs-a-year", Bars(groups, axis=currency, key=key, reference=None), alt)


def _look(row: OfferRow) -> Look:
    return "own" if row.system.own else "other"


def _bar(row: OfferRow, cost: Quantity) -> Bar:
    slot = row.system.slot
    return Bar(row.system.name, _look(row), cost.value, cost.low, cost.high, text=value(cost), slot=slot)


def _missing(inputs: CostInputs, place: int) -> tuple[str, ...]:
    lines = (line for line in inputs.lines if line.hours > 0 and line.reasons[place])
    return tuple(f"{line.name}: {line.reasons[place]}" for line in lines)


def _not_below_zero(price: Range | None) -> Range | None:
    """Where even no price would do, there is none to show."""
    if price is None or price[1] <= 0:
        return None
    return max(price[0], 0.0), price[1], price[2]


def assumption(analysis: Analysis) -> Assumption | None:
    """Whether other work shares the machine where that turns the order, else the input that moves it most."""
    costs, purchase = analysis.costs, analysis.evidence.purchase
    if costs is None or costs.pair is None or purchase is None:
        return None
    currency = purchase.currency
    first, second = (costs.inputs.offers[place].name for place in costs.pair)
    if costs.idle_turns:
        return Assumption("sharing", first, second)
    most = costs.most
    if most is None:
        return None
    name, _, place = most.key.partition(":")
    of, over = {"speed": (first, second)}.get(name, ("", ""))
    if name == "hours":
        of = costs.numbers.rows[int(place)].name
    elif place:
        of = costs.inputs.offers[int(place)].name
    rented = name == "price" and costs.numbers.cards[int(place)].rented
    unit = {"speed": "ratio", "hours": "h", "watts": "W", "host_watts": "W"}.get(name, "")
    unit = currency if name in ("price", *IN_MONEY) else unit
    unit = f"{currency}/h" if rented else unit
    turns_at = Quantity(most.flip, unit) if most.flip is not None else None
    return Assumption(name, of, over, quantity(most.values, unit), turns_at)


def _lines(costs: Costs) -> tuple[tuple[MixLine, str, RowAnswer], ...]:
    assert costs.answer is not None
    return tuple(
        (line, offer.name, costs.answer.cards[i].rows[k])
        for k, line in enumerate(costs.inputs.lines)
        for i, offer in enumerate(costs.inputs.offers)
    )


def _by_speed(inputs: CostInputs) -> CostsView | None:
    """How many times the price of the offer whose hours are given each other may cost."""
    drawn, base = Draws(inputs.numbers), inputs.numbers.hours_on
    rows = [
        (inputs.offers[i].name, _price_ratio(drawn, i, base))
        for i in range(len(inputs.offers))
        if i != base and drawn.hours_best(i) is not None and drawn.hours_best(base) is not None
    ]
    if not rows:
        return None
    return CostsView(
        "ratios",
        base=inputs.offers[base].name,
        ratios=tuple(sorted(rows, key=lambda row: -(row[1].value or 0.0))),
        **_circumstances(inputs),
    )


def _price_ratio(drawn: Draws, i: int, base: int) -> Quantity:
    hours, other = drawn.hours_best(i), drawn.hours_best(base)
    assert hours and other
    low, high = drawn.pair_ends(i, base)
    speed = other / hours
    return quantity((speed * math.exp(-high), speed, speed * math.exp(-low)))
