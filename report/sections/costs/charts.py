"""Charts of money: cost against time, what matters, and the price at which the answer turns."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.charts.costs import CardCost, CostAgainstTime, Input, OfferPrice, PriceLine, Tornado
from report.cost.costs import Costs
from report.cost.inputs import Numbers, Range
from report.cost.model import CostAnswer, Draws
from report.cost.purchase import Quote
from report.cost.sensitivity import Sensitivity
from report.sections.costs.wording import (
    about_price,
    input_name,
    less_or_least,
    price_of,
    price_unit,
    spread,
    written,
)
from report.sections.view import Panel

MOST_INPUTS = 8


def cost_and_time(answer: CostAnswer, numbers: Numbers, currency: str) -> Panel | None:
    """Every priced card: hours a year across, its cost upwards, with the ranges of both."""
    priced = [
        (numbers.cards[i].name, hours, cost)
        for i in answer.order
        if (hours := answer.cards[i].hours) and (cost := answer.cards[i].cost)
    ]
    if not priced:
        return None
    alt = "; ".join(f"{name}: {_full(hours)} hours, {_full(cost)} {currency}" for name, hours, cost in priced)
    cards = tuple(CardCost(f"{name}: {_full(cost)} {currency}", hours, cost) for name, hours, cost in priced)
    chart = CostAgainstTime(cards, "hours a year for your work", f"cost a year, {currency}")
    return Panel("money-cost", "Cost against time", "left and low is better", chart, alt)


def _full(values: Range) -> str:
    between = spread(values, "number")
    return f"{written(values[1], 'number')}{f' ({between})' if between else ''}"


def tornado(
    sensitivities: Sequence[Sensitivity], numbers: Numbers, pair: tuple[int, int], currency: str
) -> Panel | None:
    """How far each input, over its range, moves the cost of the second card over the first."""
    shown = [sensitivity for sensitivity in sensitivities if sensitivity.reach > 1e-9][:MOST_INPUTS]
    if not shown:
        return None
    first, second = pair
    inputs = []
    for sensitivity in shown:
        name, unit = input_name(sensitivity, numbers, first, second, currency)
        inputs.append(
            Input(
                f"{name}, {spread(sensitivity.values, 'number')}{unit}",
                1 / sensitivity.at_low,
                1 / sensitivity.at_high,
            )
        )
    ends = [(each.label, sorted((each.at_low, each.at_high))) for each in inputs]
    return Panel(
        "money-sensitivities",
        f"What moves the cost of {text.the(numbers.cards[second].name)} over "
        f"{text.the(numbers.cards[first].name)}",
        "hollow: at the low end of the input, full: at its high end; across 1.00 the ranking turns",
        Tornado(1 / _ratio(numbers, pair), tuple(inputs)),
        "; ".join(f"{label}: {text.times(low)} to {text.times(high)}" for label, (low, high) in ends),
    )


def _ratio(numbers: Numbers, pair: tuple[int, int]) -> float:
    drawn = Draws(numbers)
    first, other = drawn.cost_best(pair[0]), drawn.cost_best(pair[1])
    assert first is not None and other
    return first / other


def _offered(quote: Quote) -> str:
    """An offer's price with its range."""
    between = spread(quote.cost, "number")
    return f"{price_of(quote)}{f' ({between})' if between else ''}"


def price_line(costs: Costs, currency: str) -> Panel | None:
    """Every offer on its line of prices, and where on it the answer turns."""
    if costs.answer is None or costs.pair is None:
        return None
    first, second = costs.pair
    names = [text.the(offer.name) for offer in costs.inputs.offers]
    turn, rented = costs.answer.cards[first].break_even, costs.numbers.cards[first].rented
    offered = [
        (place, offer.quote)
        for place, offer in enumerate(costs.inputs.offers)
        if offer.quote is not None and offer.quote.rented == rented
    ]
    if turn is None or turn[1] <= 0 or not offered:
        return None
    unit, less = price_unit(currency, costs.numbers.cards[first]), less_or_least(costs.answer)
    order = {first: 0, second: 1}
    offers = []
    for place, quote in offered:
        turns = costs.answer.cards[place].break_even if place in order else None
        label = f"{text.sentence(names[place])}: {_offered(quote)}, {text.day(quote.date)}"
        at = "" if turns is None else _turns_at(turns, unit, less)
        offers.append(OfferPrice(label, quote.cost, order.get(place, 2), turns, at))
    chart = PriceLine(
        sides=(f"{names[first]} costs {less}", f"{names[second]} costs {less}"),
        between="no difference shown",
        offers=tuple(offers),
        across=f"price{' of an hour' if rented else ''}, {currency}",
    )
    alt = "; ".join(f"{offer.label}{f', {offer.turns_at}' if offer.turns_at else ''}" for offer in offers)
    shared = "if other work shares the machine; " if costs.idle_turns else ""
    what = f"{shared}on each line that offer's price alone changes"
    return Panel("money-price", f"Your offers, and which costs {less} at which price", what, chart, alt)


def _turns_at(turn: Range, unit: str, less: str) -> str:
    """'turns at 1,050 EUR (902 to 1,210)'"""
    return f"turns at {about_price(turn, unit)}" if turn[1] > 0 else f"costs {less} at no price"
