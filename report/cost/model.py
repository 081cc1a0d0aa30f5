"""What cards cost for a buyer's work: pure functions of numbers.

cost of an hour = (price + host price)·(1 − residual) ÷ (life·8760·utilisation)
                + (card's watts + host's watts)·PUE·tariff ÷ 1000,
or the price per hour of a rented card. An hour is one in which the card trains, not one of the calendar. A
mix of work takes H hours a week; its cost is that times H.

Ranges are Monte Carlo over DRAWS draws that are the same each time: a value with low, best and high is
triangular; a measured ratio is log-normal on each side, its two ends the 2.5 and 97.5 % points. Draws of one
quantity are shared by all cards, so that a dear kilowatt-hour is dear for every card at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy

from report.cost.numbers import (
    FOR_ALL,
    HOURS_A_WEEK,
    HOURS_A_YEAR,
    INPUTS,
    STREAMS,
    Floats,
    Numbers,
    Point,
    Range,
    spread,
    summary,
    triangular,
)


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """One card on one row: money, joules of the card alone, and units a week for one card."""

    cost: Range | None
    joules: Range | None
    week: Range | None


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """One card's figures; null where something that they need is unknown, or the card does not fit."""

    count: int | None
    """How many the limits allow; null without limits."""
    hours: Range | None
    hourly: Range | None
    cost: Range | None
    kwh: Range | None
    week: Range | None
    """Weeks' mixes that these cards (one, without limits) train in a week."""
    ratio: Range | None
    """Its cost over the cheapest card's."""
    energy: Range | None
    """Its energy, of cards alone, over the cheapest card's."""
    break_even: Range | None
    """The price at which it costs as much as the cheapest card; of that card, as much as the second."""
    rows: tuple[RowAnswer, ...]


@dataclass(frozen=True, slots=True)
class CostAnswer:
    """All cards, and the priced ones by cost."""

    cards: tuple[CardAnswer, ...]
    order: tuple[int, ...]


def answer(numbers: Numbers) -> CostAnswer:
    """Everything the page says of money, from the numbers alone."""
    draw = Draws(numbers)
    cards = range(len(numbers.cards))
    costs = {i: cost for i in cards if (cost := draw.cost_best(i)) is not None}
    order = tuple(sorted(costs, key=lambda i: (costs[i], i)))
    return CostAnswer(tuple(_card(draw, i, order) for i in cards), order)


class Draws:
    """The numbers with their draws; each is made once."""

    def __init__(self, numbers: Numbers) -> None:
        self.n = numbers
        self.size = numbers.draws
        self.best = Point(**{name: values[1] for name, values in numbers.inputs.items()})

    @cached_property
    def all(self) -> Point:
        """The inputs in draws, the same ones for every card."""
        drawn = {name: triangular(self.n.inputs[name], s, self.size) for s, name in enumerate(INPUTS)}
        return Point(**drawn)

    def hours_by_row(self, i: int) -> list[float] | None:
        """Hours a week of each row on card i; null where one has no figure, or i does not fit."""
        found = []
        for k, row in enumerate(self.n.rows):
            over = self.n.speed[i][self.n.hours_on][k]
            if row.hours > 0 and over is None:
                return None
            found.append(row.hours * over[1] if over else 0.0)
        return found if self.n.cards[i].fits and sum(found) > 0 else None

    def hours_best(self, i: int) -> float | None:
        found = self.hours_by_row(i)
        return None if found is None else sum(found)

    def watts(self, i: int) -> Range | None:
        """Mean power over the mix, by hours; null where it is unknown for a row that has hours."""
        hours = self.hours_by_row(i)
        if hours is None:
            return None
        total, found = sum(hours), [0.0, 0.0, 0.0]
        for k, share in enumerate(hours):
            one = self.n.cards[i].watts[k]
            if share > 0 and one is None:
                return None
            for at in range(3):
                found[at] += share / total * one[at] if one and share > 0 else 0.0
        return (found[0], found[1], found[2])

    def pair_ends(self, i: int, j: int) -> tuple[float, float]:
        """The ends of card i's time over card j's, in logarithms around the best value."""
        one, other = self.hours_by_row(i), self.hours_by_row(j)
        low = high = 0.0
        if one is None or other is None:
            return low, high
        for k, _ in enumerate(self.n.rows):
            factor = self.n.speed[i][j][k]
            weight = (one[k] / sum(one) + other[k] / sum(other)) / 2
            if factor and weight > 0:
                low += weight * math.log(factor[0] / factor[1])
                high += weight * math.log(factor[2] / factor[1])
        return low, high

    def pair(self, i: int, j: int) -> Any:
        """Card i's time over card j's for the whole mix, in draws."""
        one, other = self.hours_by_row(i), self.hours_by_row(j)
        if one is None or other is None:
            return None
        if i == j:
            return numpy.ones(self.size)
        low, high = self.pair_ends(i, j)
        first, second = min(i, j), max(i, j)
        stream = FOR_ALL + STREAMS * len(self.n.cards) + 2 * (first * len(self.n.cards) + second)
        around = spread(low, high, stream, self.size) if i < j else 1 / spread(-high, -low, stream, self.size)
        return sum(one) / sum(other) * around

    def of_card(self, i: int, values: Range, place: int) -> Floats:
        return triangular(values, FOR_ALL + STREAMS * i + place, self.size)

    def own_time(self, i: int, seconds: Range) -> Floats:
        low, best, high = seconds
        stream = FOR_ALL + STREAMS * i + 2
        return best * spread(math.log(low / best), math.log(high / best), stream, self.size)

    def hourly_best(self, i: int, watts: Range | None) -> float | None:
        """The cost of an hour at best values; null where price or power is unknown."""
        card = self.n.cards[i]
        if card.price is None or (watts is None and not card.rented):
            return None
        return float(self.best.hourly(card.rented, card.price[1], watts[1] if watts else 0.0))

    def hourly(self, i: int, watts: Range | None) -> tuple[float, Any] | None:
        """The cost of an hour, at best and in draws."""
        card, best = self.n.cards[i], self.hourly_best(i, watts)
        if best is None or card.price is None:
            return None
        power = self.of_card(i, watts or (0.0, 0.0, 0.0), 1)
        return best, self.all.hourly(card.rented, self.of_card(i, card.price, 0), power)

    def cost_best(self, i: int) -> float | None:
        """The cost of the week's mix at best values."""
        hourly, hours = self.hourly_best(i, self.watts(i)), self.hours_best(i)
        return None if hourly is None or hours is None else hourly * hours


def _card(d: Draws, i: int, order: tuple[int, ...]) -> CardAnswer:
    hours, hourly, watts = d.hours_best(i), d.hourly(i, d.watts(i)), d.watts(i)
    count = _count(d.n, i)
    rows = tuple(_row(d, i, k) for k in range(len(d.n.rows)))
    if hours is None:
        return CardAnswer(count, *(None,) * 8, rows=rows)
    took = d.pair(i, d.n.hours_on)
    # A mix's hours are those of `hours_on`; only where that card has them all is there a range.
    drawn = hours * numpy.ones(d.size) if took is None else took * d.hours_best(d.n.hours_on)
    each = HOURS_A_WEEK * (1 if count is None else count)
    against = next((j for j in order if j != i), None) if order[:1] == (i,) else (order or (None,))[0]
    return CardAnswer(
        count=count,
        hours=summary(drawn, hours),
        hourly=summary(hourly[1], hourly[0]) if hourly else None,
        cost=summary(hourly[1] * drawn, hourly[0] * hours) if hourly else None,
        kwh=_kwh(d, i, watts, hours, drawn),
        week=summary(each * d.all.utilisation / drawn, each * d.best.utilisation / hours),
        ratio=_ratio(d, i, order),
        energy=_energy(d, i, order),
        break_even=None if against is None else _break_even(d, i, against),
        rows=rows,
    )


def _count(n: Numbers, i: int) -> int | None:
    """How many of a card budget, slots, watts and the wish allow together."""
    card, limits = n.cards[i], n.limits
    if not card.fits:
        return 0
    at = Point(**{name: values[1] for name, values in n.inputs.items()})
    most = [value for name in ("cards", "slots") if (value := limits[name]) is not None]
    if limits["budget"] is not None and card.price is not None:
        each = card.price[1] * at.life_years * HOURS_A_YEAR * at.utilisation
        most.append(limits["budget"] // (each if card.rented else card.price[1] + at.host_price))
    if limits["watts"] is not None and card.board_watts is not None and not card.rented:
        most.append(limits["watts"] // (card.board_watts + at.host_watts))
    return int(min(most)) if most else None


def _kwh(d: Draws, i: int, watts: Range | None, hours: float, drawn: Any) -> Range | None:
    """At the wall: card and host share, times PUE."""
    if watts is None:
        return None
    best = (watts[1] + d.best.host_watts) * d.best.pue * hours / 1000
    return summary((d.of_card(i, watts, 1) + d.all.host_watts) * d.all.pue * drawn / 1000, best)


def _row(d: Draws, i: int, k: int) -> RowAnswer:
    card = d.n.cards[i]
    seconds, watts = card.seconds[k], card.watts[k]
    if seconds is None or not card.fits:
        return RowAnswer(None, None, None)
    own, hourly = d.own_time(i, seconds), d.hourly(i, watts)
    a_week = HOURS_A_WEEK * 3600
    return RowAnswer(
        cost=summary(hourly[1] * own / 3600, hourly[0] * seconds[1] / 3600) if hourly else None,
        joules=summary(d.of_card(i, watts, 1) * own, watts[1] * seconds[1]) if watts else None,
        week=summary(a_week * d.all.utilisation / own, a_week * d.best.utilisation / seconds[1]),
    )


def _ratio(d: Draws, i: int, order: tuple[int, ...]) -> Range | None:
    if i not in order:
        return None
    first = order[0]
    if first == i:
        return (1.0, 1.0, 1.0)
    one, other, time = d.hourly(i, d.watts(i)), d.hourly(first, d.watts(first)), d.pair(i, first)
    mine, least = d.cost_best(i), d.cost_best(first)
    if one is None or other is None or time is None or mine is None or not least:
        return None
    return summary(one[1] / other[1] * time, mine / least)


def _energy(d: Draws, i: int, order: tuple[int, ...]) -> Range | None:
    """Joules of the cards alone for the same work, over the cheapest card's."""
    if not order or order[0] == i:
        return None
    first = order[0]
    mine, least, time = d.watts(i), d.watts(first), d.pair(i, first)
    one, other = d.hours_best(i), d.hours_best(first)
    if mine is None or least is None or time is None or one is None or not other:
        return None
    drawn = d.of_card(i, mine, 1) / d.of_card(first, least, 1) * time
    return summary(drawn, mine[1] / least[1] * one / other)


def _break_even(d: Draws, i: int, j: int) -> Range | None:
    """The price of card i at which the mix costs the same on i and j."""
    card, watts, target, time = d.n.cards[i], d.watts(i), d.hourly(j, d.watts(j)), d.pair(i, j)
    mine, other = d.hours_best(i), d.hours_best(j)
    if target is None or time is None or not mine or not other or (watts is None and not card.rented):
        return None
    power = watts or (0.0, 0.0, 0.0)
    best = d.best.price_for(card.rented, target[0] * other / mine, power[1])
    return summary(d.all.price_for(card.rented, target[1] / time, d.of_card(i, power, 1)), best)
