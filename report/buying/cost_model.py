"""What offers cost for a buyer's work: pure functions of numbers.

cards needed = hours ÷ (8760 · busy share), rounded up;
a year costs cards · (price + host price) · (1 − residual) ÷ life
           + hours · (card's watts + host's watts) · PUE · tariff ÷ 1000,
or, of a rented card, hours · price per hour. Hours are those in which the card trains: else it is off.

A range adds in squares what each input moves the result by, alone and to either of its ends. What two offers
share moves both at once, so that a dear kilowatt-hour is dear for both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

Range = tuple[float, float, float]
"""Low, best, high."""

HOURS_A_YEAR = 8760.0
MOST_WORK = 100.0
"""So many times as much work is looked at for what it turns."""
InputValues = Mapping[str, float]
CERTAIN: Range = (1.0, 1.0, 1.0)


@dataclass(frozen=True, slots=True)
class OfferNumbers:
    """One offer. `watts` is the mean over its work, `hours` what that takes in a year."""

    rented: bool
    price: Range
    watts: Range
    hours: Range


@dataclass(frozen=True, slots=True)
class OfferCost:
    """What a year of the buyer's work costs on one offer."""

    cards: tuple[int, int, int]
    """Needed by the hours at their low, best and high ends."""
    cost: Range
    power: float
    use: float
    """The share of the year for which each card trains."""


@dataclass(frozen=True, slots=True)
class TurningPoints:
    """What would turn an answer; null where nothing would."""

    another_card: Range | None
    """How many times as much work makes one more card needed."""
    other_best: tuple[float, int] | None
    """How many times as much work makes another offer cheaper, and the place of that one."""
    price: Range | None
    """The price at which the next offer costs as much."""
    rent: Range | None
    """The rent of an hour of the same card below which buying loses."""
    idle_hours: float
    idle_worth: float
    """What they would bring after power, each sold at what an hour of the buyer's own work costs."""


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


def cards_needed(hours: float, busy_share: float) -> int:
    """Return how many cards do so many hours in a year."""
    # A rounding error of a float is no card.
    return max(1, math.ceil(hours / (HOURS_A_YEAR * busy_share) - 1e-9))


@dataclass(frozen=True, slots=True)
class CostModel:
    """The costs of some offers, by their places; `time_over[i, j]` is the time of offer i over that of j."""

    site: Mapping[str, Range]
    offers: Mapping[int, OfferNumbers]
    time_over: Mapping[tuple[int, int], Range]

    def cost(self, i: int, hours: Range | None = None) -> OfferCost:
        """Return what offer i costs for its hours, else for others."""
        hours = hours or self.offers[i].hours
        inputs = {**self._inputs(i), f"hours {i}": hours}
        best = {name: values[1] for name, values in inputs.items()}
        low, middle, high = (cards_needed(end, best["busy_share"]) for end in hours)
        return OfferCost(
            cards=(low, middle, high),
            cost=positive_range(lambda at: self._year(i, at), inputs),
            power=0.0 if self.offers[i].rented else hours[1] * self._power_of_hour(i, best),
            use=hours[1] / middle / HOURS_A_YEAR,
        )

    def order(self) -> tuple[int, ...]:
        """Return the places of all offers, the cheapest first."""
        return tuple(sorted(self.offers, key=lambda i: (self.cost(i).cost[1], i)))

    def ratio(self, i: int, j: int) -> Range:
        """Return offer i's cost over offer j's."""
        return positive_range(lambda at: self._year(i, at) / self._year(j, at), self._shared_inputs(i, j))

    def turning(self, first: int, others: Sequence[int]) -> TurningPoints:
        """Return what would turn it that `first` is cheaper than the others, which are in their order."""
        offer, inputs = self.offers[first], self._inputs(first)
        busy = self.site["busy_share"][1] * HOURS_A_YEAR
        found, (low, hours, high) = self.cost(first), offer.hours
        capacity = found.cards[1] * busy
        hourly = positive_range(lambda at: self._year(first, at) / at[f"hours {first}"], inputs)
        idle = 0.0 if offer.rented else capacity - hours
        return TurningPoints(
            another_card=None if offer.rented else (capacity / high, capacity / hours, capacity / low),
            other_best=self._overtaking(first, others),
            price=self._turning_price(first, others[0]) if others else None,
            rent=None if offer.rented else hourly,
            idle_hours=idle,
            idle_worth=idle * (hourly[1] - found.power / hours),
        )

    def _turning_price(self, i: int, j: int) -> Range | None:
        """Return the price of offer i at which the work costs the same on i and j; null at none above 0."""

        def price(at: InputValues) -> float:
            hours, other = at["both"] * at[f"hours {i}"], self._year(j, at)
            if self.offers[i].rented:
                return other / hours
            owned = (other - hours * self._power_of_hour(i, at)) * at["life_years"]
            return (
                owned / cards_needed(hours, at["busy_share"]) / (1 - at["residual_share"]) - at["host_price"]
            )

        low, best, high = ranged(price, self._shared_inputs(i, j))
        return (max(low, 0.0), best, high) if best > 0 else None

    def _overtaking(self, first: int, others: Sequence[int]) -> tuple[float, int] | None:
        """Return the least multiple of the work at which another offer costs less than `first`."""
        best = {name: values[1] for i in (first, *others) for name, values in self._inputs(i).items()}
        busy = best["busy_share"] * HOURS_A_YEAR

        def year(i: int, times: float, between: float) -> float:
            """At some times the work, with the cards that are needed `between` two steps."""
            return self._year(
                i, {**best, "both": times}, cards_needed(between * best[f"hours {i}"], busy / HOURS_A_YEAR)
            )

        bought = [i for i in (first, *others) if not self.offers[i].rented]
        each = (busy / best[f"hours {i}"] for i in bought)
        steps = {
            n * one for one in each for n in range(1, min(int(MOST_WORK / one), 1000) + 1) if n * one > 1
        }
        for low, high in pairwise([1.0, *sorted(steps), MOST_WORK]):
            middle = (low + high) / 2
            crossings = []
            for i in others:
                start, end = (year(i, at, middle) - year(first, at, middle) for at in (low, high))
                if min(start, end) < 0:
                    crossings.append((low if start < 0 else low + (high - low) * start / (start - end), i))
            if crossings:
                return min(crossings)
        return None

    def _inputs(self, i: int) -> dict[str, Range]:
        offer = self.offers[i]
        own = {f"price {i}": offer.price, f"watts {i}": offer.watts, f"hours {i}": offer.hours}
        return {**self.site, **own, "both": CERTAIN}

    def _shared_inputs(self, i: int, j: int) -> dict[str, Range]:
        """Return the inputs of two offers; their hours move together by what both do not know of the base."""
        spans = self.offers[i].hours, self.offers[j].hours, self.time_over[i, j]
        first, second, apart = (math.log(high / low) / 2 for low, _, high in spans)
        together = min(max((first**2 + second**2 - apart**2) / 2, 0.0), first**2, second**2)
        inputs = {**self._inputs(i), **self._inputs(j), "both": _around(1.0, math.sqrt(together))}
        for k, reach in ((i, first), (j, second)):
            alone = math.sqrt(reach**2 - together)
            inputs[f"hours {k}"] = _around(self.offers[k].hours[1], alone)
        return inputs

    def _year(self, i: int, at: InputValues, cards: int | None = None) -> float:
        hours = at["both"] * at[f"hours {i}"]
        if self.offers[i].rented:
            return hours * at[f"price {i}"]
        cards = cards or cards_needed(hours, at["busy_share"])
        owning = cards * (at[f"price {i}"] + at["host_price"]) * (1 - at["residual_share"]) / at["life_years"]
        return owning + hours * self._power_of_hour(i, at)

    def _power_of_hour(self, i: int, at: InputValues) -> float:
        return (at[f"watts {i}"] + at["host_watts"]) * at["pue"] * at["electricity_price"] / 1000


def _around(best: float, reach: float) -> Range:
    return best * math.exp(-reach), best, best * math.exp(reach)
