"""What cards cost for a buyer's work: pure functions of numbers.

cost of an hour = (price + host price)·(1 − residual) ÷ (life·8760·utilisation)
                + (card's watts + host's watts)·PUE·tariff ÷ 1000,
or the price per hour of a rented card. An hour is one in which the card trains, not one of the calendar. A
year's work takes H hours; its cost is that times H. Shared with other work, the utilisation is the buyer's;
of a card that does this work alone it is H ÷ 8760, so that it bears all of its year.

Ranges are Monte Carlo over DRAWS draws that are the same each time: a value with low, best and high is
triangular; a measured ratio is log-normal on each side, its two ends the 2.5 and 97.5 % points. Draws of one
quantity are shared by all cards, so that a dear kilowatt-hour is dear for every card at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy
from numpy.typing import NDArray

from report.buying.cost_inputs import HOURS_A_YEAR, INPUTS, Numbers, Range
from report.buying.purchase import Use

Z975 = 1.959963984540054

FOR_ALL = len(INPUTS)
STREAMS = 4
"""Streams of draws: one for each input, then four for each card (price, watts), then the pairs'."""

Floats = NDArray[numpy.float64]


@dataclass(frozen=True, slots=True)
class CardAnswer:
    """One card's figures; null where something that they need is unknown, or the card does not fit."""

    count: int | None
    """How many the limits allow; null without limits."""
    hours: Range | None = None
    cost: Range | None = None
    kwh: Range | None = None
    ratio: Range | None = None
    """Its cost over the cheapest card's."""
    break_even: Range | None = None
    """The price at which it costs as much as the cheapest card; of that card, as much as the second."""


@dataclass(frozen=True, slots=True)
class CostAnswer:
    """All cards, and the priced ones by cost."""

    cards: tuple[CardAnswer, ...]
    order: tuple[int, ...]

    @property
    def winner(self) -> int | None:
        """The cheapest card, where it is shown to cost less than every other."""
        ratios = [self.cards[i].ratio for i in self.order[1:]]
        return self.order[0] if self.order and all(ratio and ratio[0] > 1 for ratio in ratios) else None


def answer(numbers: Numbers, use: Use = "shared") -> CostAnswer:
    """Everything the page says of money, from the numbers alone."""
    draws = Draws(numbers, use)
    cards = range(len(numbers.cards))
    costs = {i: cost.best for i in cards if (cost := draws.cost(i)) is not None}
    order = tuple(sorted(costs, key=lambda i: (costs[i], i)))
    return CostAnswer(tuple(_card(draws, i, order) for i in cards), order)


@dataclass(frozen=True, slots=True)
class Drawn:
    """A value at best, and in all draws."""

    best: float
    all: Any

    def times(self, other: Drawn) -> Drawn:
        return Drawn(self.best * other.best, self.all * other.all)

    def over(self, other: Drawn) -> Drawn:
        return Drawn(self.best / other.best, self.all / other.all)

    @property
    def range(self) -> Range:
        """Best, with the 2.5 and 97.5 % points of the draws; the range always holds the best value."""
        low, high = numpy.quantile(numpy.asarray(self.all), (0.025, 0.975))
        return (min(float(low), self.best), self.best, max(float(high), self.best))


@dataclass(frozen=True, slots=True)
class Point:
    """The inputs at one point (scalars) or over all draws (arrays)."""

    inputs: Mapping[str, Any]
    use: Use

    def owning(self, hours: Any) -> Any:
        """What one unit of price costs per hour, of a card that does the buyer's work in `hours`."""
        used = self.inputs["utilisation"] * HOURS_A_YEAR if self.use == "shared" else hours
        return (1 - self.inputs["residual_share"]) / (self.inputs["life_years"] * used)

    def running(self, watts: Any) -> Any:
        at_the_wall = (watts + self.inputs["host_watts"]) * self.inputs["pue"]
        return at_the_wall * self.inputs["electricity_price"] / 1000

    def hourly(self, rented: bool, price: Any, watts: Any, hours: Any) -> Any:
        if rented:
            return price
        return (price + self.inputs["host_price"]) * self.owning(hours) + self.running(watts)

    def price_for(self, rented: bool, hourly: Any, watts: Any, hours: Any) -> Any:
        """The price at which an hour costs `hourly`."""
        if rented:
            return hourly
        return (hourly - self.running(watts)) / self.owning(hours) - self.inputs["host_price"]


class Draws:
    """The numbers with their draws; each is made once."""

    def __init__(self, numbers: Numbers, use: Use = "shared") -> None:
        self.numbers, self.size, self.use = numbers, numbers.draws, use
        self.best = Point({name: values[1] for name, values in numbers.inputs.items()}, use)

    @cached_property
    def all(self) -> Point:
        """The inputs in draws, the same ones for every card."""
        drawn = {name: triangular(self.numbers.inputs[name], s, self.size) for s, name in enumerate(INPUTS)}
        return Point(drawn, self.use)

    def hours_by_row(self, i: int) -> list[float] | None:
        """Hours a year of each row on card i; null where one has no figure, or i does not fit."""
        hours = []
        for k, given in enumerate(self.numbers.hours):
            over = self.numbers.speed[i][self.numbers.hours_on][k]
            if given > 0 and over is None:
                return None
            hours.append(given * over[1] if over else 0.0)
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
        for k in range(len(self.numbers.hours)):
            factor = self.numbers.speed[i][j][k]
            weight = (first[k] / sum(first) + second[k] / sum(second)) / 2
            if factor and weight > 0:
                low += weight * math.log(factor[0] / factor[1])
                high += weight * math.log(factor[2] / factor[1])
        return low, high

    def speed(self, i: int, j: int) -> Range | None:
        """How many times as fast card i does the mix as card j; null where one has a row without a figure."""
        own, other = self.hours_best(i), self.hours_best(j)
        if own is None or other is None:
            return None
        (low, high), speed = self.pair_ends(i, j), other / own
        return speed * math.exp(-high), speed, speed * math.exp(-low)

    def pair(self, i: int, j: int) -> Any:
        """Card i's time over card j's for the whole mix, in draws."""
        first_hours, second_hours = self.hours_by_row(i), self.hours_by_row(j)
        if first_hours is None or second_hours is None:
            return None
        if i == j:
            return numpy.ones(self.size)
        low, high = self.pair_ends(i, j)
        first, second = min(i, j), max(i, j)
        # An offer that was not measured stands last, and leaves the others' draws as they are.
        count = sum(any(self.numbers.speed[k][k]) for k in range(len(self.numbers.cards)))
        stream = FOR_ALL + STREAMS * count + 2 * (first * count + second)
        around = spread(low, high, stream, self.size) if i < j else 1 / spread(-high, -low, stream, self.size)
        return sum(first_hours) / sum(second_hours) * around

    def of_card(self, i: int, values: Range, place: int) -> Floats:
        return triangular(values, FOR_ALL + STREAMS * i + place, self.size)

    def power(self, i: int, watts: Range | None) -> Drawn:
        """None is none at all, as of a rented card."""
        watts = watts or (0.0, 0.0, 0.0)
        return Drawn(watts[1], self.of_card(i, watts, 1))

    def hours(self, i: int) -> Drawn | None:
        """The hours of a year's work on card i. They are those of `hours_on`; else there is a range."""
        best, given = self.hours_best(i), self.hours_best(self.numbers.hours_on)
        if best is None:
            return None
        took = self.pair(i, self.numbers.hours_on)
        return Drawn(best, best * numpy.ones(self.size) if took is None else took * given)

    def hours_by(self, i: int, j: int) -> Drawn | None:
        """The same for card i, as it stands to card j's, so that what both share cancels."""
        best, other, time = self.hours_best(i), self.hours(j), self.pair(i, j)
        return None if best is None or other is None or time is None else Drawn(best, time * other.all)

    def hourly(self, i: int, watts: Range | None, hours: Drawn | None) -> Drawn | None:
        """The cost of an hour; null where price or power is unknown, or a card alone has too short a year."""
        card = self.numbers.cards[i]
        if card.price is None or (watts is None and not card.rented):
            return None
        if self._year_too_short(i, hours):
            return None
        power, price = self.power(i, watts), self.of_card(i, card.price, 0)
        year = hours or Drawn(1.0, 1.0)
        return Drawn(
            float(self.best.hourly(card.rented, card.price[1], power.best, year.best)),
            self.all.hourly(card.rented, price, power.all, year.all),
        )

    def _year_too_short(self, i: int, hours: Drawn | None) -> bool:
        alone = self.use == "alone" and not self.numbers.cards[i].rented
        return alone and (hours is None or hours.best > HOURS_A_YEAR)

    def cost(self, i: int, hours: Drawn | None = None) -> Drawn | None:
        """The cost of the year's work."""
        hours = hours or self.hours(i)
        hourly = self.hourly(i, self.watts(i), hours)
        return None if hourly is None or hours is None else hourly.times(hours)

    def ratio(self, i: int, j: int) -> Range | None:
        """Card i's cost over card j's."""
        own, other = self.cost(i, self.hours_by(i, j)), self.cost(j)
        if i == j:
            return (1.0, 1.0, 1.0)
        return None if own is None or other is None or not other.best else own.over(other).range

    def break_even(self, i: int, j: int) -> Range | None:
        """The price of card i at which the work costs the same on i and j."""
        rented, watts = self.numbers.cards[i].rented, self.watts(i)
        target, hours = self.cost(j), self.hours_by(i, j)
        if target is None or hours is None or not (watts or rented) or self._year_too_short(i, hours):
            return None
        hourly, power = target.over(hours), self.power(i, watts)
        return Drawn(
            self.best.price_for(rented, hourly.best, power.best, hours.best),
            self.all.price_for(rented, hourly.all, power.all, hours.all),
        ).range


def _card(draws: Draws, i: int, order: tuple[int, ...]) -> CardAnswer:
    hours, watts = draws.hours(i), draws.watts(i)
    count = _count(draws.numbers, i)
    if hours is None:
        return CardAnswer(count)
    cost = draws.cost(i)
    against = next((j for j in order if j != i), None) if order[:1] == (i,) else (order or (None,))[0]
    return CardAnswer(
        count=count,
        hours=hours.range,
        cost=cost.range if cost else None,
        kwh=_kwh(draws, i, watts, hours),
        ratio=draws.ratio(i, order[0]) if i in order else None,
        break_even=None if against is None else draws.break_even(i, against),
    )


def _count(numbers: Numbers, i: int) -> int | None:
    """How many of a card budget, slots, watts and the wish allow together, in whole offers."""
    card, limits = numbers.cards[i], numbers.limits
    if not card.fits:
        return 0
    at = {name: values[1] for name, values in numbers.inputs.items()}
    most = [value for name in ("cards", "slots") if (value := limits[name]) is not None]
    if limits["budget"] is not None and card.price is not None:
        hours = at["life_years"] * HOURS_A_YEAR * at["utilisation"]
        each = card.price[1] * hours if card.rented else card.price[1] + at["host_price"]
        most.append(limits["budget"] // each)
    if limits["watts"] is not None and card.board_watts is not None and not card.rented:
        most.append(limits["watts"] // (card.board_watts + at["host_watts"]))
    return int(min(most)) // card.units * card.units if most else None


def _kwh(draws: Draws, i: int, watts: Range | None, hours: Drawn) -> Range | None:
    """At the wall: card and host share, times PUE."""
    if watts is None:
        return None
    power, best, drawn = draws.power(i, watts), draws.best.inputs, draws.all.inputs
    return Drawn(
        (power.best + best["host_watts"]) * best["pue"] * hours.best / 1000,
        (power.all + drawn["host_watts"]) * drawn["pue"] * hours.all / 1000,
    ).range


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
