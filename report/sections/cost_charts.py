"""Drawings of money: cost against time, what matters, and the price at which the answer turns."""

from __future__ import annotations

from collections.abc import Sequence

from report import svg, text
from report.charts import WIDTH, fit
from report.cost.model import CostAnswer, Draws
from report.cost.numbers import Numbers, Range
from report.cost.sensitivity import Sensitivity, with_value
from report.sections.cost_text import lever_name, spread, written
from report.sections.view import Panel

LOOKS = (("full", "circle"), ("mixed", "square"), ("tf32", "triangle"), ("pure", "diamond"))
LEFT, RIGHT, TOP, FOOT = 52.0, WIDTH - 16.0, 12.0, 196.0
MOST_LEVERS = 8


def cost_and_time(answer: CostAnswer, numbers: Numbers, currency: str) -> Panel | None:
    """Every priced card: hours for the mix across, its cost upwards, with the ranges of both."""
    found = [
        (numbers.cards[i].name, hours, cost)
        for i in answer.order
        if (hours := answer.cards[i].hours) and (cost := answer.cards[i].cost)
    ]
    if not found:
        return None
    alt = "; ".join(f"{name}: {_full(hours)} hours, {_full(cost)} {currency}" for name, hours, cost in found)
    xs = [value for _, hours, _ in found for value in hours]
    ys = [value for _, _, cost in found for value in cost]
    across, up, parts = _axes(xs, ys, f"hours for a week's mix; cost in {currency}")
    for place, (name, hours, cost) in enumerate(found):
        tone, shape = LOOKS[place % len(LOOKS)]
        x, y = across(hours[1]), up(cost[1])
        parts.append(svg.line(across(hours[0]), y, across(hours[2]), y, f"{tone} whisker"))
        parts.append(svg.line(x, up(cost[0]), x, up(cost[2]), f"{tone} whisker"))
        parts.append(svg.marker(shape, x, y, 5.0, tone))
        y = FOOT + 52 + 18 * place
        parts.append(svg.marker(shape, 8, y - 4, 4.6, tone))
        parts.append(svg.text(20, y, fit(f"{name}: {_full(cost)} {currency}", 46), kind="n"))
    title, unit = "Cost against time", "left and low is better"
    return Panel(
        "money-cost",
        title,
        unit,
        _document("money-cost", title, alt, FOOT + 44 + 18 * len(found), parts),
        alt,
    )


def _full(values: Range) -> str:
    between = spread(values, "number")
    return f"{written(values[1], 'number')}{f' ({between})' if between else ''}"


def _axes(xs: Sequence[float], ys: Sequence[float], across: str) -> tuple[svg.Scale, svg.Scale, list[str]]:
    xscale, xticks = svg.linear_axis(xs, LEFT, RIGHT, zero=True, most=5)
    yscale, yticks = svg.linear_axis(ys, FOOT, TOP, zero=True, most=5)
    parts = [svg.line(LEFT, yscale(tick), RIGHT, yscale(tick), "grid") for tick in yticks]
    parts += [
        svg.text(LEFT - 5, yscale(t) + 4, text.number(t) if t else "0", kind="n", anchor="end")
        for t in yticks
    ]
    parts += [svg.text(xscale(t), FOOT + 16, f"{t:,g}", kind="n", anchor="middle") for t in xticks]
    parts.append(svg.text((LEFT + RIGHT) / 2, FOOT + 31, across, kind="n", anchor="middle"))
    return xscale, yscale, parts


def _document(name: str, title: str, alt: str, height: float, parts: Sequence[str]) -> str:
    return svg.document(name, title, alt, WIDTH, height, parts)


def tornado(
    levers: Sequence[Sensitivity], numbers: Numbers, pair: tuple[int, int], currency: str
) -> Panel | None:
    """How far each input, over its range, moves the cost of the second card over the first."""
    shown = [lever for lever in levers if lever.reach > 1e-9][:MOST_LEVERS]
    if not shown:
        return None
    first, second = pair
    ends = [(lever, 1 / lever.at_low, 1 / lever.at_high) for lever in shown]
    scale, ticks = svg.ratio_axis([end for _, *both in ends for end in both], 8.0, WIDTH - 12.0)
    foot = 44.0 * len(shown)
    parts = []
    said = []
    for place, (lever, low, high) in enumerate(ends):
        name, unit = lever_name(lever, numbers, first, second, currency)
        y = 44.0 * place + 30
        label = f"{name}, {spread(lever.values, 'number')}{unit}"
        said.append(f"{label}: {text.times(min(low, high))} to {text.times(max(low, high))}")
        parts.append(svg.text(0, y - 14, fit(label, 48), kind="n"))
        parts += [svg.line(scale(tick), y - 8, scale(tick), y + 8, "grid") for tick in ticks]
        parts.append(svg.line(scale(1.0), y - 8, scale(1.0), y + 8, "one"))
        tone = "mixed" if min(low, high) <= 1 <= max(low, high) else "full"
        for end, look in ((low, f"{tone} hollow"), (high, tone)):
            parts.append(svg.line(scale(1 / _ratio(numbers, pair)), y, scale(end), y, f"{tone} whisker"))
            parts.append(svg.marker("circle", scale(end), y, 4.0, look))
    ends_at = [(t, "start" if scale(t) < 20 else "middle") for t in ticks]
    parts += [
        svg.text(0 if anchor == "start" else scale(t), foot + 14, text.times(t), kind="n", anchor=anchor)
        for t, anchor in ends_at
    ]
    title = f"What moves the cost of the {numbers.cards[second].name} over the {numbers.cards[first].name}"
    unit = "hollow: at the low end of the input, full: at its high end; across 1.00 the ranking turns"
    alt = "; ".join(said)
    return Panel("money-levers", title, unit, _document("money-levers", title, alt, foot + 20, parts), alt)


def _ratio(numbers: Numbers, pair: tuple[int, int]) -> float:
    drawn = Draws(numbers)
    one, other = drawn.cost_best(pair[0]), drawn.cost_best(pair[1])
    assert one is not None and other
    return one / other


def break_even(answer: CostAnswer, numbers: Numbers, pair: tuple[int, int], currency: str) -> Panel | None:
    """The first card's cost as its price grows, and the second's: they meet at the break-even price."""
    first, second = pair
    turn, price = answer.cards[first].break_even, numbers.cards[first].price
    if turn is None or price is None or turn[1] <= 0:
        return None
    most = 1.15 * max(turn[2], price[2])
    ends = [
        cost
        for at in (0.0, most)
        if (cost := Draws(with_value(numbers, f"price:{first}", at)).cost_best(first)) is not None
    ]
    level, own = answer.cards[second].cost, answer.cards[first].cost
    if level is None or own is None or len(ends) < 2:
        return None
    across, up, parts = _axes(
        [0.0, most], [0.0, *ends, level[1]], f"price of the {fit(numbers.cards[first].name, 24)}, {currency}"
    )
    parts.append(svg.line(LEFT, up(level[1]), RIGHT, up(level[1]), "mixed whisker"))
    parts.append(svg.path([(across(0.0), up(ends[0])), (across(most), up(ends[1]))], "full curve"))
    parts.append(svg.line(across(turn[0]), FOOT, across(turn[2]), FOOT, "full reach"))
    parts.append(svg.marker("diamond", across(turn[1]), up(level[1]), 4.6, "pure"))
    parts.append(svg.marker("circle", across(price[1]), up(own[1]), 4.6, "full"))
    parts.append(svg.text(LEFT + 4, up(level[1]) - 6, fit(numbers.cards[second].name, 24), kind="n"))
    title = "Where the answer turns"
    unit = f"cost of a week's mix in {currency}; circle: as quoted, diamond: break-even, bar: its range"
    alt = (
        f"The {numbers.cards[first].name} costs as much as the {numbers.cards[second].name} "
        f"at {written(turn[1], 'price')} {currency} ({spread(turn, 'price')})"
    )
    return Panel("money-turn", title, unit, _document("money-turn", title, alt, FOOT + 38, parts), alt)
