"""What cards cost for a buyer's work: pure functions of numbers.

cost of an hour = (price + host price)·(1 − residual) ÷ (life·8760·utilisation)
                + (card's watts + host's watts)·PUE·tariff ÷ 1000,
or the price per hour of a rented card. An hour is one in which the card trains, not one of the calendar. A
year's work takes H hours; its cost is that times H.

A range adds in squares what each input moves the result by, alone and to either of its ends. What two cards
share moves both at once, so that a dear kilowatt-hour is dear for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

Range = tuple[float, float, float]
"""Low, best, high."""

HOURS_A_YEAR = 8760.0
InputValues = Mapping[str, float]
NO_WATTS: Range = (0.0, 0.0, 0.0)
CERTAIN: Range = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class OfferNumbers:
    """One offer. Null is unknown; `watts` has an entry for each row of the mix."""

    name: str
    rented: bool
    price: Range | None
    watts: tuple[Range | None, ...]


@dataclass(frozen=True, slots=True)
class CostNumbers:
    """All that a cost depends on. `speed[i][j][k]` is card i's time over card j's on row k."""

    inputs: dict[str, Range]
    offers: tuple[OfferNumbers, ...]
    hours: tuple[float, ...]
    """The hours of a year, for each line of the mix, on the card `hours_on`."""
    hours_on: int
    speed: tuple[tuple[tuple[Range | None, ...], ...], ...]


@dataclass(frozen=True, slots=True)
class OfferCost:
    """The figures of one offer; null where something that they need is unknown."""

    hours: Range | None = None
    cost: Range | None = None
    """What a year's work costs."""
    ratio: Range | None = None
    """Its cost over the cheapest offer's."""
    turning_price: Range | None = None
    """The price at which it costs as much as the cheapest offer; of that one, as much as the second."""


@dataclass(frozen=True, slots=True)
class CostRanking:
    """All offers, and the places of those with a cost, the cheapest first."""

    offers: tuple[OfferCost, ...]
    order: tuple[int, ...]


def rank_costs(numbers: CostNumbers) -> CostRanking:
    """Return everything the page says of money, from the numbers alone."""
    model = CostModel(numbers)
    places = range(len(numbers.offers))
    costs = {i: cost[1] for i in places if (cost := model.cost(i)) is not None}
    order = tuple(sorted(costs, key=lambda i: (costs[i], i)))
    return CostRanking(tuple(_offer_cost(model, i, order) for i in places), order)


def _offer_cost(model: CostModel, i: int, order: tuple[int, ...]) -> OfferCost:
    against = next((j for j in order if j != i), None) if order[:1] == (i,) else (order or (None,))[0]
    return OfferCost(
        hours=model.hours(i),
        cost=model.cost(i),
        ratio=model.ratio(i, order[0]) if i in order else None,
        turning_price=None if against is None else model.turning_price(i, against),
    )


def ranged(function: Callable[[InputValues], float], inputs: Mapping[str, Range]) -> Range:
    """Return the value at the best inputs, with what each input moves it by added in squares, either way."""
    best = {name: values[1] for name, values in inputs.items()}
    middle = function(best)
    down = up = 0.0
    for name, (low, _, high) in inputs.items():
        moves = [function({**best, name: end}) - middle for end in (low, high) if end != best[name]]
        down, up = math.hypot(down, min([0.0, *moves])), math.hypot(up, max([0.0, *moves]))
    return middle - down, middle, middle + up


def positive_range(function: Callable[[InputValues], float], inputs: Mapping[str, Range]) -> Range:
    """Return the same for a value that is never 0 or less: in logarithms, so that its range is neither."""
    low, best, high = ranged(lambda at: math.log(function(at)), inputs)
    return math.exp(low), math.exp(best), math.exp(high)


@dataclass(frozen=True, slots=True)
class CostModel:
    """The costs of some offers, by their places."""

    numbers: CostNumbers

    def hours_by_line(self, i: int) -> list[float] | None:
        """Return the hours a year of each line of work on offer i; null where one has no figure."""
        hours = []
        for k, given in enumerate(self.numbers.hours):
            over = self.numbers.speed[i][self.numbers.hours_on][k]
            if given > 0 and over is None:
                return None
            hours.append(given * over[1] if over else 0.0)
        return hours if sum(hours) > 0 else None

    def best_hours(self, i: int) -> float | None:
        """Return the hours of a year's work on offer i, without their range."""
        hours = self.hours_by_line(i)
        return None if hours is None else sum(hours)

    def hours(self, i: int) -> Range | None:
        """Return the hours of a year's work on offer i; on `hours_on` they are given, else measured."""
        best = self.best_hours(i)
        if best is None:
            return None
        low, _, high = self._time(i, self.numbers.hours_on)
        return best * low, best, best * high

    def watts(self, i: int) -> Range | None:
        """Return mean power over the work, by hours; null where it is unknown for a line with hours."""
        hours = self.hours_by_line(i)
        if hours is None:
            return None
        total, mean = sum(hours), [0.0, 0.0, 0.0]
        for share, power in zip(hours, self.numbers.offers[i].watts, strict=True):
            if share > 0 and power is None:
                return None
            for at in range(3):
                mean[at] += share / total * power[at] if power and share > 0 else 0.0
        return (mean[0], mean[1], mean[2])

    def _time(self, i: int, j: int) -> Range:
        """Return the range of offer i's time over offer j's around their best value, for the whole work."""
        first, second = self.hours_by_line(i), self.hours_by_line(j)
        low = high = 0.0
        if first is None or second is None or i == j:
            return CERTAIN
        for k in range(len(self.numbers.hours)):
            factor = self.numbers.speed[i][j][k]
            weight = (first[k] / sum(first) + second[k] / sum(second)) / 2
            if factor and weight > 0:
                low += weight * math.log(factor[0] / factor[1])
                high += weight * math.log(factor[2] / factor[1])
        return math.exp(low), 1.0, math.exp(high)

    def speed(self, i: int, j: int) -> Range | None:
        """Return how many times as fast offer i does the work as j; null where one has no figure."""
        own, other = self.best_hours(i), self.best_hours(j)
        if own is None or other is None:
            return None
        low, _, high = self._time(i, j)
        return other / own / high, other / own, other / own / low

    def cost(self, i: int) -> Range | None:
        """Return the cost of the year's work; null where price, power or hours are unknown."""
        hours = self._costed_hours(i)
        if hours is None:
            return None
        inputs = self._inputs(i) | {"time": self._time(i, self.numbers.hours_on)}
        return positive_range(lambda at: self._hourly(i, at) * hours * at["time"], inputs)

    def ratio(self, i: int, j: int) -> Range | None:
        """Return offer i's cost over offer j's."""
        own, other = self._costed_hours(i), self._costed_hours(j)
        if i == j:
            return CERTAIN
        if own is None or other is None:
            return None
        inputs = self._inputs(i, j) | {"time": self._time(i, j)}
        return positive_range(
            lambda at: self._hourly(i, at) * own * at["time"] / (self._hourly(j, at) * other), inputs
        )

    def turning_price(self, i: int, j: int) -> Range | None:
        """Return the price of offer i at which the work costs the same on i and j."""
        own, other = self.best_hours(i), self._costed_hours(j)
        if own is None or other is None or not (self.watts(i) or self.numbers.offers[i].rented):
            return None
        inputs = self._inputs(i, j) | {"time": self._time(i, j)}
        return ranged(
            lambda at: self._price_for(i, self._hourly(j, at) * other / (own * at["time"]), at), inputs
        )

    def _costed_hours(self, i: int) -> float | None:
        """Return the hours of an offer whose price and power are known."""
        offer = self.numbers.offers[i]
        known = offer.price is not None and (offer.rented or self.watts(i) is not None)
        return self.best_hours(i) if known else None

    def _inputs(self, *places: int) -> dict[str, Range]:
        """Return the site's inputs, and each offer's price and power."""
        found = dict(self.numbers.inputs)
        for i in places:
            price = self.numbers.offers[i].price
            found |= {f"watts {i}": self.watts(i) or NO_WATTS} | ({f"price {i}": price} if price else {})
        return found

    def _hourly(self, i: int, at: InputValues) -> float:
        if self.numbers.offers[i].rented:
            return at[f"price {i}"]
        return (at[f"price {i}"] + at["host_price"]) * _owning(at) + self._running(i, at)

    def _price_for(self, i: int, hourly: float, at: InputValues) -> float:
        """Return the price at which an hour costs `hourly`."""
        if self.numbers.offers[i].rented:
            return hourly
        return (hourly - self._running(i, at)) / _owning(at) - at["host_price"]

    def _running(self, i: int, at: InputValues) -> float:
        return (at[f"watts {i}"] + at["host_watts"]) * at["pue"] * at["electricity_price"] / 1000


def _owning(at: InputValues) -> float:
    """Return what one unit of price costs per hour."""
    return (1 - at["residual_share"]) / (at["life_years"] * at["utilisation"] * HOURS_A_YEAR)
