"""What decides between two cards: how far each input moves their costs, and where the ranking turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from report.buying.cost_inputs import INPUTS, Numbers, Range
from report.buying.cost_model import Draws

SMALLEST_SLOPE = 1e-12
"""Of both costs: an input that moves their difference less does not matter."""

LEAST_REACH = 1e-9
"""In logarithms: an input that moves the ratio by less moves nothing."""

BOUNDS = {
    "utilisation": (0.0, 1.0),
    "residual_share": (0.0, 1.0),
    "pue": (1.0, math.inf),
}


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One input: the ratio of the two costs at its low and high end, and where both cost the same."""

    key: str
    values: Range
    """Low, best, high of the input; of `speed`, the first card's speed over the second's."""
    at_low: float
    at_high: float
    flip: float | None
    """The value at which the ranking turns, all others at best; null where none can be reached."""

    @property
    def reach(self) -> float:
        """How far the ratio moves, in logarithms."""
        return abs(math.log(self.at_high / self.at_low))

    @property
    def within(self) -> bool:
        """Whether the ranking turns inside the range given."""
        return self.flip is not None and self.values[0] <= self.flip <= self.values[2]


def sensitivities(numbers: Numbers, first: int, second: int) -> tuple[Sensitivity, ...]:
    """All inputs of the two cards' costs, those that move the ratio first over second most at the top."""
    owned = not all(numbers.cards[i].rented for i in (first, second))
    keys = list(INPUTS) if owned else []
    for i in (first, second):
        keys += [f"price:{i}"] if numbers.cards[i].rented else [f"price:{i}", f"watts:{i}"]
    keys += [f"hours:{k}" for k in _rows_of_both(numbers, first, second)]
    all_inputs = [_of_speed(numbers, first, second)]
    all_inputs += [_of_input(numbers, first, second, key) for key in keys]
    moving = [moved for moved in all_inputs if moved.reach > LEAST_REACH or moved.flip is not None]
    return tuple(sorted(moving, key=lambda moved: -moved.reach))


def _rows_of_both(numbers: Numbers, first: int, second: int) -> list[int]:
    """The rows whose hours decide between the two: several, on which time and power of both are known."""
    both = [numbers.cards[i] for i in (first, second)]
    rows = [
        k
        for k in range(len(numbers.rows))
        if numbers.speed[first][numbers.hours_on][k]
        and numbers.speed[second][numbers.hours_on][k]
        and all(card.rented or card.watts[k] for card in both)
    ]
    return rows if len(rows) > 1 else []


def _of_input(numbers: Numbers, first: int, second: int, key: str) -> Sensitivity:
    values = _values(numbers, key)
    low, high = (_ratio(with_value(numbers, key, end), first, second) for end in (values[0], values[2]))
    return Sensitivity(key, values, low, high, _flip(numbers, first, second, key, values[1]))


def _of_speed(numbers: Numbers, first: int, second: int) -> Sensitivity:
    """The speed of the first over the second: their costs are equal where it is `ratio` times as much."""
    draws = Draws(numbers)
    first_hours, second_hours = draws.hours_best(first), draws.hours_best(second)
    assert first_hours and second_hours
    ratio, speed = _ratio(numbers, first, second), second_hours / first_hours
    low, high = draws.pair_ends(first, second)
    ends = (speed / math.exp(high), speed, speed / math.exp(low))
    return Sensitivity("speed", ends, ratio * math.exp(high), ratio * math.exp(low), speed * ratio)


def _values(numbers: Numbers, key: str) -> Range:
    name, _, place = key.partition(":")
    if not place:
        return numbers.inputs[name]
    at = int(place)
    if name == "hours":
        hours = numbers.rows[at].hours
        return (hours, hours, hours)
    values = numbers.cards[at].price if name == "price" else Draws(numbers).watts(at)
    assert values is not None
    return values


def _costs(numbers: Numbers, first: int, second: int) -> tuple[float, float]:
    draws = Draws(numbers)
    first_cost, second_cost = draws.cost_best(first), draws.cost_best(second)
    assert first_cost is not None and second_cost is not None
    return first_cost, second_cost


def _ratio(numbers: Numbers, first: int, second: int) -> float:
    first_cost, second_cost = _costs(numbers, first, second)
    return first_cost / second_cost


def _flip(numbers: Numbers, first: int, second: int, key: str, best: float) -> float | None:
    """Where the difference of the costs is 0: it is a line in each input, or in its reciprocal."""
    inverse = key in ("life_years", "utilisation")
    second_value = best * 1.5 if best > 0 else 1.0

    def difference(value: float) -> float:
        first_cost, second_cost = _costs(with_value(numbers, key, value), first, second)
        return first_cost - second_cost

    at_best, at_second = difference(best), difference(second_value)
    x, y = (1 / best, 1 / second_value) if inverse else (best, second_value)
    if abs(at_second - at_best) <= SMALLEST_SLOPE * sum(_costs(numbers, first, second)):
        return None
    root = x - at_best * (y - x) / (at_second - at_best)
    if inverse:
        root = 1 / root if root > 0 else -1.0
    low, high = BOUNDS.get(key, (0.0, math.inf))
    return root if low <= root <= high and root > 0 else None


def with_value(numbers: Numbers, key: str, value: float) -> Numbers:
    """The numbers with one input, `price:1`, `watts:1` or `hours:0` set to a certain value."""
    sure = (value, value, value)
    name, _, place = key.partition(":")
    if not place:
        return replace(numbers, inputs={**numbers.inputs, name: sure})
    at = int(place)
    if name == "hours":
        rows = [replace(r, hours=value) if k == at else r for k, r in enumerate(numbers.rows)]
        return replace(numbers, rows=tuple(rows))
    card = numbers.cards[at]
    changed = replace(card, price=sure) if name == "price" else replace(card, watts=(sure,) * len(card.watts))
    return replace(numbers, cards=tuple(changed if k == at else c for k, c in enumerate(numbers.cards)))
