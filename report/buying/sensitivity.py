"""What decides between two cards: the uncertain input that moves their costs most, and where it turns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from report.buying.cost_inputs import INPUTS, Numbers, Range
from report.buying.cost_model import Draws
from report.buying.purchase import Use

SMALLEST_SLOPE = 1e-12
"""Of both costs: an input that moves their difference less does not matter."""

LEAST_REACH = 1e-9
"""In logarithms: an input that moves the ratio by less moves nothing."""

BOUNDS = {"utilisation": (0.0, 1.0), "residual_share": (0.0, 1.0), "pue": (1.0, math.inf)}
INVERSE = ("life_years", "utilisation")
"""A cost is a line in the reciprocal of these, and in each other input itself."""


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """One input, by its key in the file, or as `speed`, `price` or `watts` of the offer `of`."""

    name: str
    of: int | None
    values: Range
    """Low, best, high of the input; of `speed`, the first card's speed over the second's."""
    reach: float
    """How far the ratio of the two costs moves between the input's ends, in logarithms."""
    flip: float | None
    """The value at which the ranking turns, all others at best; null where none can be reached."""


def most_moving(numbers: Numbers, first: int, second: int, use: Use = "shared") -> Sensitivity | None:
    """The input of the two cards' costs that moves their ratio most; null where none is uncertain."""
    owned = not all(numbers.cards[i].rented for i in (first, second))
    keys: list[tuple[str, int | None]] = [(name, None) for name in INPUTS] if owned else []
    for i in (first, second):
        keys += [("price", i)] if numbers.cards[i].rented else [("price", i), ("watts", i)]
    pair = _Pair(numbers, first, second, use)
    found = max((pair.of_speed(), *(pair.of_input(*key) for key in keys)), key=lambda moved: moved.reach)
    return found if found.reach > LEAST_REACH else None


@dataclass(frozen=True, slots=True)
class _Pair:
    numbers: Numbers
    first: int
    second: int
    use: Use

    def costs(self, name: str = "", of: int | None = None, value: float = 0.0) -> tuple[float, float]:
        """Of both cards at best, with one input set to a value."""
        draws = Draws(with_value(self.numbers, name, of, value) if name else self.numbers, self.use)
        first, second = draws.cost(self.first), draws.cost(self.second)
        assert first is not None and second is not None
        return first.best, second.best

    def of_speed(self) -> Sensitivity:
        """The speed of the first over the second: their costs are equal where it is `ratio` times as much."""
        values, (cost, second_cost) = Draws(self.numbers).speed(self.first, self.second), self.costs()
        assert values is not None
        low, speed, high = values
        return Sensitivity("speed", None, values, math.log(high / low), speed * cost / second_cost)

    def of_input(self, name: str, of: int | None) -> Sensitivity:
        values = _values(self.numbers, name, of)
        low, high = (cost / other for cost, other in (self.costs(name, of, end) for end in values[::2]))
        return Sensitivity(name, of, values, abs(math.log(high / low)), self._flip(name, of, values[1]))

    def _flip(self, name: str, of: int | None, best: float) -> float | None:
        """Where the difference of the costs is 0."""
        another = best * 1.5 if best > 0 else 1.0
        (a, b), (c, d) = self.costs(name, of, best), self.costs(name, of, another)
        if abs((c - d) - (a - b)) <= SMALLEST_SLOPE * (a + b):
            return None
        x, y = (1 / best, 1 / another) if name in INVERSE else (best, another)
        root = x - (a - b) * (y - x) / ((c - d) - (a - b))
        if root <= 0:
            return None
        root = 1 / root if name in INVERSE else root
        low, high = BOUNDS.get(name, (0.0, math.inf))
        return root if low <= root <= high else None


def _values(numbers: Numbers, name: str, of: int | None) -> Range:
    if of is None:
        return numbers.inputs[name]
    values = numbers.cards[of].price if name == "price" else Draws(numbers).watts(of)
    assert values is not None
    return values


def with_value(numbers: Numbers, name: str, of: int | None, value: float) -> Numbers:
    """The numbers with one input, or the price or watts of a card, set to a certain value."""
    sure = (value, value, value)
    if of is None:
        return replace(numbers, inputs={**numbers.inputs, name: sure})
    card = numbers.cards[of]
    changed = replace(card, price=sure) if name == "price" else replace(card, watts=(sure,) * len(card.watts))
    return replace(numbers, cards=tuple(changed if k == of else c for k, c in enumerate(numbers.cards)))
