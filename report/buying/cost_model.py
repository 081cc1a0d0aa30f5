"""What cards cost for a buyer's work: pure functions of numbers.

cost of an hour = (price + host price)·(1 − residual) ÷ (life·8760·utilisation)
                + (card's watts + host's watts)·PUE·tariff ÷ 1000,
or the price per hour of a rented card. An hour is one in which the card trains, not one of the calendar. A
year's work takes H hours; its cost is that times H: other work is taken to fill the rest of the utilisation.
A card that does nothing else bears all of its year: (price + host price)·(1 − residual) ÷ life + power·H.

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
from numpy.typing import NDArray

from report.buying.cost_inputs import HOURS_A_YEAR, INPUTS, Numbers, Range

Z975 = 1.959963984540054

FOR_ALL = len(INPUTS)
STREAMS = 4
"""Streams of draws: one for each input, then four for each card (price, watts, own time), then the pairs'."""

Floats = NDArray[numpy.float64]


@dataclass(frozen=True, slots=True)
class RowAnswer:
    """One card on one row: money, joules of the card alone, and units a year for one card."""

    cost: Range | None
    joules: Range | None
    year: Range | None


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """One card's figures; null where something that they need is unknown, or the card does not fit."""

    count: int | None
    """How many the limits allow; null without limits."""
    hours: Range | None
    hourly: Range | None
    cost: Range | None
    kwh: Range | None
    times: Range | None
    """How many times the year's work these cards (one, without limits) train in a year."""
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


@dataclass(frozen=True, slots=True)
class Idle:
    """A year's costs of two cards that stand idle after the buyer's work."""

    first: Range
    second: Range
    ratio: Range
    """The second's over the first's."""


def answer(numbers: Numbers) -> CostAnswer:
    """Everything the page says of money, from the numbers alone."""
    draw = Draws(numbers)
    cards = range(len(numbers.cards))
    costs = {i: cost for i in cards if (cost := draw.cost_best(i)) is not None}
    order = tuple(sorted(costs, key=lambda i: (costs[i], i)))
    return CostAnswer(tuple(_card(draw, i, order) for i in cards), order)


@dataclass(frozen=True, slots=True)
class Point:
    """The inputs at one point (scalars) or over all draws (arrays)."""

    life_years: Any
    utilisation: Any
    electricity_price: Any
    pue: Any
    residual_share: Any
    host_price: Any
    host_watts: Any

    @property
    def owning(self) -> Any:
        """What one unit of price costs per hour."""
        return (1 - self.residual_share) / (self.life_years * HOURS_A_YEAR * self.utilisation)

    def alone(self, price: Any, watts: Any, hours: Any) -> Any:
        """A year's cost of a card that trains `hours` and nothing else."""
        of_a_year = self.owning * HOURS_A_YEAR * self.utilisation
        return (price + self.host_price) * of_a_year + self.running(watts) * hours

    def running(self, watts: Any) -> Any:
        return (watts + self.host_watts) * self.pue * self.electricity_price / 1000

    def hourly(self, rented: bool, price: Any, watts: Any) -> Any:
        return price if rented else (price + self.host_price) * self.owning + self.running(watts)

    def price_for(self, rented: bool, hourly: Any, watts: Any) -> Any:
        """The price at which an hour costs `hourly`."""
        return hourly if rented else (hourly - self.running(watts)) / self.owning - self.host_price


class Draws:
    """The numbers with their draws; each is made once."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.size = numbers.draws
        self.best = Point(**{name: values[1] for name, values in numbers.inputs.items()})

    @cached_property
    def all(self) -> Point:
        """The inputs in draws, the same ones for every card."""
        drawn = {name: triangular(self.numbers.inputs[name], s, self.size) for s, name in enumerate(INPUTS)}
        return Point(**drawn)

    def hours_by_row(self, i: int) -> list[float] | None:
        """Hours a year of each row on card i; null where one has no figure, or i does not fit."""
        hours = []
        for k, row in enumerate(self.numbers.rows):
            over = self.numbers.speed[i][self.numbers.hours_on][k]
            if row.hours > 0 and over is None:
                return None
            hours.append(row.hours * over[1] if over else 0.0)
        return hours if self.numbers.cards[i].fits and sum(hours) > 0 else None

    def hours_best(self, i: int) -> float | None:
        hours = self.hours_by_row(i)
        return None if hours is None else sum(hours)

    def watts(self, i: int) -> Range | None:
        """Mean power over the mix, by hours; null where it is unknown for a row that has hours."""
        hours = self.hours_by_row(i)
        if hours is None:
            return None
        total, mean = sum(hours), [0.0, 0.0, 0.0]
        for k, share in enumerate(hours):
            power = self.numbers.cards[i].watts[k]
            if share > 0 and power is None:
                return None
            for at in range(3):
                mean[at] += share / total * power[at] if power and share > 0 else 0.0
        return (mean[0], mean[1], mean[2])

    def pair_ends(self, i: int, j: int) -> tuple[float, float]:
        """The ends of card i's time over card j's, in logarithms around the best value."""
        first, second = self.hours_by_row(i), self.hours_by_row(j)
        low = high = 0.0
        if first is None or second is None:
            return low, high
        for k, _ in enumerate(self.numbers.rows):
            factor = self.numbers.speed[i][j][k]
            weight = (first[k] / sum(first) + second[k] / sum(second)) / 2
            if factor and weight > 0:
                low += weight * math.log(factor[0] / factor[1])
                high += weight * math.log(factor[2] / factor[1])
        return low, high

    def pair(self, i: int, j: int) -> Any:
        """Card i's time over card j's for the whole mix, in draws."""
        first_hours, second_hours = self.hours_by_row(i), self.hours_by_row(j)
        if first_hours is None or second_hours is None:
            return None
        if i == j:
            return numpy.ones(self.size)
        low, high = self.pair_ends(i, j)
        first, second = min(i, j), max(i, j)
        stream = FOR_ALL + STREAMS * len(self.numbers.cards) + 2 * (first * len(self.numbers.cards) + second)
        around = spread(low, high, stream, self.size) if i < j else 1 / spread(-high, -low, stream, self.size)
        return sum(first_hours) / sum(second_hours) * around

    def of_card(self, i: int, values: Range, place: int) -> Floats:
        return triangular(values, FOR_ALL + STREAMS * i + place, self.size)

    def own_time(self, i: int, seconds: Range) -> Floats:
        low, best, high = seconds
        stream = FOR_ALL + STREAMS * i + 2
        return best * spread(math.log(low / best), math.log(high / best), stream, self.size)

    def hourly_best(self, i: int, watts: Range | None) -> float | None:
        """The cost of an hour at best values; null where price or power is unknown."""
        card = self.numbers.cards[i]
        if card.price is None or (watts is None and not card.rented):
            return None
        return float(self.best.hourly(card.rented, card.price[1], watts[1] if watts else 0.0))

    def hourly(self, i: int, watts: Range | None) -> tuple[float, Any] | None:
        """The cost of an hour, at best and in draws."""
        card, best = self.numbers.cards[i], self.hourly_best(i, watts)
        if best is None or card.price is None:
            return None
        power = self.of_card(i, watts or (0.0, 0.0, 0.0), 1)
        return best, self.all.hourly(card.rented, self.of_card(i, card.price, 0), power)

    def alone(self, i: int) -> tuple[float, Any] | None:
        """A year's cost of card i that does nothing but the buyer's work, at best and in draws.

        Null where it is rented, its price or power is unknown, or one card's year is too short.
        """
        card, hours, watts = self.numbers.cards[i], self.hours_best(i), self.watts(i)
        given, took = self.hours_best(self.numbers.hours_on), self.pair(i, self.numbers.hours_on)
        if card.rented or card.price is None or watts is None or hours is None or hours > HOURS_A_YEAR:
            return None
        drawn_hours = hours if took is None or given is None else took * given
        power, price = self.of_card(i, watts, 1), self.of_card(i, card.price, 0)
        best = float(self.best.alone(card.price[1], watts[1], hours))
        return best, self.all.alone(price, power, drawn_hours)

    def cost_best(self, i: int) -> float | None:
        """The cost of the year's work at best values."""
        hourly, hours = self.hourly_best(i, self.watts(i)), self.hours_best(i)
        return None if hourly is None or hours is None else hourly * hours


def _card(draws: Draws, i: int, order: tuple[int, ...]) -> CardAnswer:
    hours, hourly, watts = draws.hours_best(i), draws.hourly(i, draws.watts(i)), draws.watts(i)
    count = _count(draws.numbers, i)
    rows = tuple(_row(draws, i, k) for k in range(len(draws.numbers.rows)))
    if hours is None:
        return CardAnswer(count, *(None,) * 8, rows=rows)
    took = draws.pair(i, draws.numbers.hours_on)
    # A mix's hours are those of `hours_on`; only where that card has them all is there a range.
    drawn = (
        hours * numpy.ones(draws.size) if took is None else took * draws.hours_best(draws.numbers.hours_on)
    )
    each = HOURS_A_YEAR * (1 if count is None else count)
    against = next((j for j in order if j != i), None) if order[:1] == (i,) else (order or (None,))[0]
    return CardAnswer(
        count=count,
        hours=summary(drawn, hours),
        hourly=summary(hourly[1], hourly[0]) if hourly else None,
        cost=summary(hourly[1] * drawn, hourly[0] * hours) if hourly else None,
        kwh=_kwh(draws, i, watts, hours, drawn),
        times=summary(each * draws.all.utilisation / drawn, each * draws.best.utilisation / hours),
        ratio=_ratio(draws, i, order),
        energy=_energy(draws, i, order),
        break_even=None if against is None else _break_even(draws, i, against),
        rows=rows,
    )


def _count(numbers: Numbers, i: int) -> int | None:
    """How many of a card budget, slots, watts and the wish allow together."""
    card, limits = numbers.cards[i], numbers.limits
    if not card.fits:
        return 0
    at = Point(**{name: values[1] for name, values in numbers.inputs.items()})
    most = [value for name in ("cards", "slots") if (value := limits[name]) is not None]
    if limits["budget"] is not None and card.price is not None:
        each = card.price[1] * at.life_years * HOURS_A_YEAR * at.utilisation
        most.append(limits["budget"] // (each if card.rented else card.price[1] + at.host_price))
    if limits["watts"] is not None and card.board_watts is not None and not card.rented:
        most.append(limits["watts"] // (card.board_watts + at.host_watts))
    return int(min(most)) if most else None


def _kwh(draws: Draws, i: int, watts: Range | None, hours: float, drawn_hours: Any) -> Range | None:
    """At the wall: card and host share, times PUE."""
    if watts is None:
        return None
    best = (watts[1] + draws.best.host_watts) * draws.best.pue * hours / 1000
    drawn_watts = draws.of_card(i, watts, 1) + draws.all.host_watts
    return summary(drawn_watts * draws.all.pue * drawn_hours / 1000, best)


def _row(draws: Draws, i: int, k: int) -> RowAnswer:
    card = draws.numbers.cards[i]
    seconds, watts = card.seconds[k], card.watts[k]
    if seconds is None or not card.fits:
        return RowAnswer(None, None, None)
    own, hourly = draws.own_time(i, seconds), draws.hourly(i, watts)
    a_year = HOURS_A_YEAR * 3600
    return RowAnswer(
        cost=summary(hourly[1] * own / 3600, hourly[0] * seconds[1] / 3600) if hourly else None,
        joules=summary(draws.of_card(i, watts, 1) * own, watts[1] * seconds[1]) if watts else None,
        year=summary(a_year * draws.all.utilisation / own, a_year * draws.best.utilisation / seconds[1]),
    )


def _ratio(draws: Draws, i: int, order: tuple[int, ...]) -> Range | None:
    if i not in order:
        return None
    cheapest = order[0]
    if cheapest == i:
        return (1.0, 1.0, 1.0)
    own, least = (draws.hourly(card, draws.watts(card)) for card in (i, cheapest))
    own_cost, least_cost, time = draws.cost_best(i), draws.cost_best(cheapest), draws.pair(i, cheapest)
    if own is None or least is None or time is None or own_cost is None or not least_cost:
        return None
    return summary(own[1] / least[1] * time, own_cost / least_cost)


def _energy(draws: Draws, i: int, order: tuple[int, ...]) -> Range | None:
    """Joules of the cards alone for the same work, over the cheapest card's."""
    if not order or order[0] == i:
        return None
    cheapest = order[0]
    own_watts, least_watts, time = draws.watts(i), draws.watts(cheapest), draws.pair(i, cheapest)
    own_hours, least_hours = draws.hours_best(i), draws.hours_best(cheapest)
    if own_watts is None or least_watts is None or time is None or own_hours is None or not least_hours:
        return None
    if not least_watts[1]:
        return None
    drawn = draws.of_card(i, own_watts, 1) / draws.of_card(cheapest, least_watts, 1) * time
    return summary(drawn, own_watts[1] / least_watts[1] * own_hours / least_hours)


def _break_even(draws: Draws, i: int, j: int) -> Range | None:
    """The price of card i at which the mix costs the same on i and j."""
    rented, watts = draws.numbers.cards[i].rented, draws.watts(i)
    target, time = draws.hourly(j, draws.watts(j)), draws.pair(i, j)
    own_hours, other_hours = draws.hours_best(i), draws.hours_best(j)
    if target is None or time is None or not own_hours or not other_hours or not (watts or rented):
        return None
    power = watts or (0.0, 0.0, 0.0)
    best = draws.best.price_for(rented, target[0] * other_hours / own_hours, power[1])
    return summary(draws.all.price_for(rented, target[1] / time, draws.of_card(i, power, 1)), best)


def alone(numbers: Numbers) -> tuple[Range | None, ...]:
    """A year's cost of each card that does nothing but the buyer's work; null as `Draws.alone` says."""
    draws = Draws(numbers)
    found = (draws.alone(i) for i in range(len(numbers.cards)))
    return tuple(summary(each[1], each[0]) if each else None for each in found)


def idle(numbers: Numbers, first: int, second: int) -> Idle | None:
    """What two cards cost that do nothing but the buyer's work; null as `Draws.alone` says."""
    draws = Draws(numbers)
    one, other = draws.alone(first), draws.alone(second)
    if one is None or other is None:
        return None
    ratio = summary(other[1] / one[1], other[0] / one[0])
    return Idle(summary(one[1], one[0]), summary(other[1], other[0]), ratio)


def uniform(stream: int, draws: int) -> Floats:
    """Numbers between 0 and 1, by a hash of draw and stream: no version of a library draws others."""
    at = numpy.arange(1, draws + 1, dtype=numpy.uint32) * numpy.uint32(0x9E3779B1)
    bits = at ^ numpy.full(draws, (stream + 1) * 0x85EBCA77 & 0xFFFFFFFF, dtype=numpy.uint32)
    bits = (bits ^ bits >> numpy.uint32(16)) * numpy.uint32(0x21F0AAAD)
    bits = (bits ^ bits >> numpy.uint32(15)) * numpy.uint32(0x735A2D97)
    return (numpy.asarray(bits ^ bits >> numpy.uint32(15), dtype=numpy.float64) + 0.5) / 4294967296


def triangular(values: Range, stream: int, draws: int) -> Floats:
    """Draws between low and high with the peak at best."""
    low, best, high = values
    if high == low:
        return numpy.full(draws, best)
    u, span = uniform(stream, draws), high - low
    rising = low + numpy.sqrt(u * span * (best - low))
    falling = high - numpy.sqrt((1 - u) * span * (high - best))
    return numpy.where(u * span < best - low, rising, falling)


def spread(low: float, high: float, stream: int, draws: int) -> Floats:
    """Factors around 1 whose logarithm is normal on each side: `low` and `high` are its 95 % limits."""
    if low == 0 and high == 0:
        return numpy.ones(draws)
    u, v = uniform(stream, draws), uniform(stream + 1, draws)
    z = numpy.sqrt(-2 * numpy.log(u)) * numpy.cos(2 * numpy.pi * v)
    return numpy.asarray(numpy.exp(numpy.where(z < 0, -low, high) * z / Z975))


def summary(draws: Any, best: float) -> Range:
    """Best, with the 2.5 and 97.5 % points of the draws; the range always holds the best value."""
    low, high = numpy.quantile(numpy.asarray(draws), (0.025, 0.975))
    return (min(float(low), best), best, max(float(high), best))
