"""What a card costs for the buyer's work: the numbers, the answer by them, and what would turn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.cards import Card
from report.comparisons.groups import ComparisonGroup
from report.cost.inputs import CostInputs, cost_inputs
from report.cost.model import CostAnswer, answer
from report.cost.purchase import Purchase
from report.cost.sensitivity import Sensitivity, sensitivities
from report.trials.trial import Trial


@dataclass(frozen=True, slots=True)
class Costs:
    """Null for `answer` without prices; `pair` are the two cheapest offers, by their place."""

    inputs: CostInputs
    answer: CostAnswer | None = None
    pair: tuple[int, int] | None = None
    sensitivities: tuple[Sensitivity, ...] = ()


def costs(
    groups: Sequence[ComparisonGroup],
    trials: Sequence[Trial],
    cards: Sequence[Card],
    purchase: Purchase | None,
) -> Costs | None:
    """The costs of all offers on the buyer's mix; null where no ranked figure is at hand.

    Raises UserError where a name in the buyer's file fits several cards or lines.
    """
    inputs = cost_inputs(groups, trials, cards, purchase)
    if inputs is None or purchase is None:
        return None if inputs is None else Costs(inputs)
    result = answer(inputs.numbers)
    pair = (result.order[0], result.order[1]) if len(result.order) > 1 else None
    return Costs(inputs, result, pair, sensitivities(inputs.numbers, *pair) if pair else ())
