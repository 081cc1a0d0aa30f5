"""What a card costs for the buyer's work: the numbers, the answer by them, and what would turn it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.record.published.cards import Card
from report.buying.cost_inputs import INPUTS, CostInputs, Numbers, Range, cost_inputs
from report.buying.cost_model import CostAnswer, Draws, answer
from report.buying.purchase import Purchase, Use
from report.compare.groups import ComparisonGroup
from report.expected.expected import ExpectedValue
from report.trials.trial import TrialResult

SMALLEST_SLOPE = 1e-12
"""Of both costs: an input that moves their difference less does not matter."""

LEAST_REACH = 1e-9
"""In logarithms: an input that moves the ratio by less moves nothing."""

BOUNDS = {"utilisation": (0.0, 1.0), "residual_share": (0.0, 1.0), "pue": (1.0, math.inf)}
INVERSE = ("life_years", "utilisation")
"""A cost is a line in the reciprocal of these, and in each other input itself."""
NO_WATTS: Range = (0.0, 0.0, 0.0)


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


@dataclass(frozen=True, slots=True)
class Costs:
    """Null for `answer` without prices; `pair` are the two cheapest offers, by their place."""

    inputs: CostInputs
    numbers: Numbers
    """What the answers stand on: the inputs', without the cards' power where that of one is not known."""
    use: Use
    """The buyer's choice; shared where nothing is known of a card alone."""
    answers: Mapping[Use, CostAnswer]
    """By use; alone only with work of the buyer's own."""
    pair: tuple[int, int] | None = None
    over: Mapping[Use, Range | None] | None = None
    """By use, the cost of the pair's second over its first's."""
    most: Sensitivity | None = None
    """The input that moves the ratio of the pair's costs most."""
    power_unknown: tuple[str, ...] = ()
    """The offers whose power nobody told, for which that of all cards is left out of the costs."""

    @property
    def answer(self) -> CostAnswer | None:
        """By the use that the buyer chose."""
        return self.answers.get(self.use)

    @property
    def tied(self) -> bool:
        """Whether nothing shows that the cheapest costs less than the second."""
        ratio = self.over.get(self.use) if self.over else None
        return ratio is not None and ratio[0] <= 1

    @property
    def other_winner(self) -> int | None:
        """The offer that costs least by the other use, and by the chosen one is not shown to."""
        others = [found.winner for use, found in self.answers.items() if use != self.use]
        chosen = self.answer.winner if self.answer else None
        return next((winner for winner in others if winner != chosen), None)


def costs(
    groups: Sequence[ComparisonGroup],
    trials: Sequence[TrialResult],
    cards: Sequence[Card],
    purchase: Purchase | None,
) -> Costs | None:
    """The costs of all offers on the buyer's mix; null where no ranked figure is at hand.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    inputs = cost_inputs(groups, trials, cards, purchase)
    if inputs is None or purchase is None:
        return None if inputs is None else Costs(inputs, inputs.numbers, "shared", {})
    unknown, numbers = _power_unknown(inputs.numbers), inputs.numbers
    if unknown:
        # As if the cards drew nothing, all alike; the host's share stays.
        unpowered = (replace(card, watts=(NO_WATTS,) * len(card.watts)) for card in numbers.cards)
        numbers = replace(numbers, cards=tuple(unpowered))
    uses: tuple[Use, ...] = ("shared", "alone") if inputs.own_mix else ("shared",)
    answers = {use: answer(numbers, use) for use in uses}
    use = purchase.use if purchase.use in answers and answers[purchase.use].order else "shared"
    order = answers[use].order
    pair = (order[0], order[1]) if len(order) > 1 else None
    for each, answered in answers.items() if unknown else ():
        unmetered = tuple(replace(card, kwh=None) for card in answered.cards)
        answers[each] = replace(answered, cards=unmetered)
    found = Costs(inputs, numbers, use, answers, power_unknown=unknown)
    if pair is None:
        return found
    return replace(
        found,
        pair=pair,
        over={use: Draws(numbers, use).ratio(pair[1], pair[0]) for use in answers},
        most=most_moving(numbers, *pair, use),
    )


def _power_unknown(numbers: Numbers) -> tuple[str, ...]:
    """The cards that are bought and measured, and whose power is unknown on a row that has hours."""
    draws = Draws(numbers)
    return tuple(
        card.name
        for place, card in enumerate(numbers.cards)
        if card.price is not None
        and not card.rented
        and draws.hours_best(place) is not None
        and draws.watts(place) is None
    )


@dataclass(frozen=True, slots=True)
class OfferExpected:
    """`hours` a year of the buyer's work hold nine of ten cards, each work at its own end at once."""

    hours: Range
    wins_below: float | None
    """The price below which it costs less than the cheapest, wherever in the ranges the truth is; null
    where no price does."""


def by_expected(
    costs: Costs, place: int, said: Sequence[ExpectedValue | None], watts: float
) -> OfferExpected | None:
    """Null where something that has hours is expected of no such card, or nothing measured has a price.

    `said` is in samples per second, one for each line of the mix; `watts` are the card's on paper.
    """
    answer, on = costs.answer, costs.numbers.hours_on
    worked = [(line, one) for line, one in zip(costs.inputs.lines, said, strict=True) if line.hours > 0]
    if not answer or not answer.order or not worked:
        return None
    slow = best = fast = 0.0
    for line, one in worked:
        cell = line.cells[on]
        speed = cell.throughput.mean if cell else None
        if one is None or speed is None:
            return None
        samples = line.hours * speed
        slow, best, fast = (
            slow + samples / one.low,
            best + samples / one.value,
            fast + samples / one.high,
        )
    return OfferExpected((fast, best, slow), _wins_below(costs, place, slow, watts))


def _wins_below(costs: Costs, place: int, hours: float, watts: float) -> float | None:
    """At the slow end of its hours, against the low end of what the cheapest offer costs."""
    assert costs.answer is not None
    cheapest, card = costs.answer.cards[costs.answer.order[0]].cost, costs.numbers.cards[place]
    if cheapest is None or not card.fits:
        return None
    known = [power[2] for power in card.watts if power]
    drawn = 0.0 if costs.power_unknown else max(known, default=watts)
    price = Draws(costs.numbers, costs.use).best.price_for(card.rented, cheapest[0] / hours, drawn, hours)
    return float(price) if price > 0 else None
