"""What a card costs for the buyer's work: the numbers, the answer by them, and what would turn it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.record.published.cards import Card
from report.buying.cost_inputs import CostInputs, Numbers, Range, cost_inputs
from report.buying.cost_model import CostAnswer, Draws, answer
from report.buying.purchase import Purchase, Use
from report.buying.sensitivity import Sensitivity, most_moving
from report.compare.groups import ComparisonGroup
from report.trials.trial import TrialResult

NO_WATTS: Range = (0.0, 0.0, 0.0)


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
