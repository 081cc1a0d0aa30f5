"""What each offer costs for the buyer's work, measured or expected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record.published.cards import Card
from report.buying.cost_inputs import NOTHING, CostInputs, CostNumbers, cost_inputs
from report.buying.cost_model import NO_WATTS, CostModel, CostRanking, rank_costs
from report.buying.on_paper import CardsOnPaper
from report.buying.purchase import Purchase
from report.compare.groups import ComparisonGroup
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class Costs:
    """The inputs, and what they make of each offer."""

    inputs: CostInputs
    numbers: CostNumbers
    """What the ranking is by: the inputs', without the cards' power where that of one is not known."""
    ranking: CostRanking
    power_unknown: tuple[str, ...] = ()
    """The offers whose power is unknown, for which that of all cards is left out of the costs."""


def costs(
    groups: Sequence[ComparisonGroup],
    trials: Sequence[TrialResult],
    cards: Sequence[Card],
    purchase: Purchase | None,
    paper: CardsOnPaper = NOTHING,
) -> Costs | None:
    """Return the costs of all offers for the buyer's work; null without a buyer's file.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    if purchase is None:
        return None
    inputs = cost_inputs(groups, trials, cards, purchase, paper)
    unknown, numbers = _power_unknown(inputs.numbers), inputs.numbers
    if unknown:
        # As if the cards drew nothing, all alike; the host's share stays.
        unpowered = (replace(offer, watts=(NO_WATTS,) * len(offer.watts)) for offer in numbers.offers)
        numbers = replace(numbers, offers=tuple(unpowered))
    return Costs(inputs, numbers, rank_costs(numbers), unknown)


def _power_unknown(numbers: CostNumbers) -> tuple[str, ...]:
    """Return the cards that are bought, and whose power is unknown on a line with hours."""
    model = CostModel(numbers)
    return tuple(
        offer.name
        for i, offer in enumerate(numbers.offers)
        if offer.price is not None
        and not offer.rented
        and model.best_hours(i) is not None
        and model.watts(i) is None
    )
