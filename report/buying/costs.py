"""What each offer costs for the buyer's work, measured or expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record.published.cards import Card
from report.buying.cost_inputs import CostInputs, CostNumbers, Range, cost_inputs
from report.buying.cost_model import NO_WATTS, CostModel, CostRanking, rank_costs
from report.buying.purchase import Purchase
from report.compare.groups import ComparisonGroup
from report.expected.expected import ExpectedValue
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class Costs:
    """`ranking` is null without prices."""

    inputs: CostInputs
    numbers: CostNumbers
    """What the ranking is by: the inputs', without the cards' power where that of one is not known."""
    ranking: CostRanking | None = None
    power_unknown: tuple[str, ...] = ()
    """The offers whose power is unknown, for which that of all cards is left out of the costs."""

    @property
    def pair(self) -> tuple[int, int] | None:
        """The places of the two cheapest offers."""
        order = self.ranking.order if self.ranking else ()
        return (order[0], order[1]) if len(order) > 1 else None

    @property
    def ratio(self) -> Range | None:
        """The cost of the pair's second offer over its first's."""
        return self.ranking.offers[self.pair[1]].ratio if self.ranking and self.pair else None

    @property
    def tied(self) -> bool:
        """Whether nothing shows that the cheapest costs less than the second."""
        return self.ratio is not None and self.ratio[0] <= 1


def costs(
    groups: Sequence[ComparisonGroup],
    trials: Sequence[TrialResult],
    cards: Sequence[Card],
    purchase: Purchase | None,
) -> Costs | None:
    """Return the costs of all offers for the buyer's work; null where no ranked figure is at hand.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    inputs = cost_inputs(groups, trials, cards, purchase)
    if inputs is None or purchase is None:
        return None if inputs is None else Costs(inputs, inputs.numbers)
    unknown, numbers = _power_unknown(inputs.numbers), inputs.numbers
    if unknown:
        # As if the cards drew nothing, all alike; the host's share stays.
        unpowered = (replace(offer, watts=(NO_WATTS,) * len(offer.watts)) for offer in numbers.offers)
        numbers = replace(numbers, offers=tuple(unpowered))
    return Costs(inputs, numbers, rank_costs(numbers), unknown)


def _power_unknown(numbers: CostNumbers) -> tuple[str, ...]:
    """Return the cards that are bought and measured, and whose power is unknown on a line with hours."""
    model = CostModel(numbers)
    return tuple(
        offer.name
        for i, offer in enumerate(numbers.offers)
        if offer.price is not None
        and not offer.rented
        and model.best_hours(i) is not None
        and model.watts(i) is None
    )


@dataclass(frozen=True, slots=True)
class ExpectedCost:
    """An offer that nobody measured, by the ends of what is expected of its card.

    `hours` hold nine of ten cards, each work at its own end at once; `cost` is that of a year by them.
    """

    hours: Range
    cost: Range
    wins_below: float | None
    """The price below which it costs less than the cheapest, wherever in the ranges the truth is; null
    where no price does."""


def expected_cost(
    costs: Costs, place: int, expected: Sequence[ExpectedValue | None], watts: float
) -> ExpectedCost | None:
    """Return null where nothing is expected of a line with hours, or nothing measured has a price.

    `expected` is in samples per second, one for each line of the work; `watts` are the card's on paper.
    """
    ranking, on = costs.ranking, costs.numbers.hours_on
    worked = [(line, one) for line, one in zip(costs.inputs.lines, expected, strict=True) if line.hours > 0]
    cheapest = ranking.offers[ranking.order[0]].cost if ranking and ranking.order else None
    if cheapest is None or not worked:
        return None
    slow = best = fast = 0.0
    for line, one in worked:
        cell = line.cells[on]
        speed = cell.throughput.mean if cell else None
        if one is None or speed is None:
            return None
        samples = line.hours * speed
        slow, best, fast = slow + samples / one.low, best + samples / one.value, fast + samples / one.high
    known = [power[2] for power in costs.numbers.offers[place].watts if power]
    drawn = 0.0 if costs.power_unknown else max(known, default=watts)
    hours = (fast, best, slow)
    return ExpectedCost(hours, *CostModel(costs.numbers).unmeasured(place, hours, drawn, cheapest))
