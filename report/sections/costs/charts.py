"""Charts of money: cost against time, what matters, and the price at which the answer turns."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.charts.costs import BreakEven, CardCost, CostAgainstTime, Input, Tornado
from report.cost.inputs import Numbers, Range
from report.cost.model import CostAnswer, Draws
from report.cost.sensitivity import Sensitivity, with_value
from report.sections.costs.wording import input_name, spread, written
from report.sections.view import Panel

MOST_INPUTS = 8


def cost_and_time(answer: CostAnswer, numbers: Numbers, currency: str) -> Panel | None:
    """Every priced card: hours for the mix across, its cost upwards, with the ranges of both."""
    priced = [
        (numbers.cards[i].name, hours, cost)
        for i in answer.order
        if (hours := answer.cards[i].hours) and (cost := answer.cards[i].cost)
    ]
    if not priced:
        return None
    alt = "; ".join(f"{name}: {_full(hours)} hours, {_full(cost)} {currency}" for name, hours, cost in priced)
    cards = tuple(CardCost(f"{name}: {_full(cost)} {currency}", hours, cost) for name, hours, cost in priced)
    chart = CostAgainstTime(cards, "hours for a week's mix", f"cost, {currency}")
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
        f"What moves the cost of the {numbers.cards[second].name} over the {numbers.cards[first].name}",
        "hollow: at the low end of the input, full: at its high end; across 1.00 the ranking turns",
        Tornado(1 / _ratio(numbers, pair), tuple(inputs)),
        "; ".join(f"{label}: {text.times(low)} to {text.times(high)}" for label, (low, high) in ends),
    )


def _ratio(numbers: Numbers, pair: tuple[int, int]) -> float:
    drawn = Draws(numbers)
    first, other = drawn.cost_best(pair[0]), drawn.cost_best(pair[1])
    assert first is not None and other
    return first / other


def break_even(answer: CostAnswer, numbers: Numbers, pair: tuple[int, int], currency: str) -> Panel | None:
    """The first card's cost as its price grows, and the second's: they meet at the break-even price."""
    first, second = pair
    turn, price = answer.cards[first].break_even, numbers.cards[first].price
    if turn is None or price is None or turn[1] <= 0:
        return None
    most = 1.15 * max(turn[2], price[2])
    ends = [
        (at, cost)
        for at in (0.0, most)
        if (cost := Draws(with_value(numbers, f"price:{first}", at)).cost_best(first)) is not None
    ]
    level, own = answer.cards[second].cost, answer.cards[first].cost
    if level is None or own is None or len(ends) < 2:
        return None
    names = [numbers.cards[i].name for i in pair]
    chart = BreakEven(
        card=names[0],
        other=names[1],
        price=price[1],
        cost=own[1],
        other_cost=level[1],
        line=(ends[0], ends[1]),
        turn=turn,
        across=f"price of the {names[0]}, {currency}",
        up=f"cost of a week's mix, {currency}",
    )
    alt = (
        f"The {names[0]} costs as much as the {names[1]} at {written(turn[1], 'price')} {currency} "
        f"({spread(turn, 'price')})"
    )
    unit = f"cost of a week's mix in {currency}; circle: as quoted, diamond: break-even, bar: its range"
    return Panel("money-turn", "Where the answer turns", unit, chart, alt)
