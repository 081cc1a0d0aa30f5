"""What a card costs for the buyer's work: the numbers, the answer by them, and what would turn it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record.published.cards import Card
from report.buying.cost_inputs import CostInputs, Numbers, Range, cost_inputs
from report.buying.cost_model import CostAnswer, Draws, Idle, alone, answer, idle
from report.buying.purchase import Purchase
from report.buying.sensitivity import LEAST_REACH, Sensitivity, sensitivities
from report.compare.groups import ComparisonGroup
from report.trials.trial import TrialResult

NO_WATTS: Range = (0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Costs:
    """Null for `answer` without prices; `pair` are the two cheapest offers, by their place."""

    inputs: CostInputs
    numbers: Numbers
    """What the answer stands on: the inputs', without the cards' power where that of one is not known."""
    answer: CostAnswer | None = None
    pair: tuple[int, int] | None = None
    most: Sensitivity | None = None
    """The input that moves the ratio of the pair's costs most."""
    power_unknown: tuple[str, ...] = ()
    """The offers whose power nobody told, for which that of all cards is left out of the costs."""
    flip_watts: float | None = None
    """Where power is left out: how many watts more the cheapest must draw to cost as much as the second."""
    alone: tuple[Range | None, ...] = ()
    """Of each offer a year's cost if it did nothing else; empty without the buyer's hours."""
    idle: Idle | None = None
    """The pair's costs if each did nothing else; null without the buyer's hours, or where one is rented."""

    @property
    def tied(self) -> bool:
        """Whether nothing shows that the cheapest costs less than the second."""
        ratio = self.answer.cards[self.pair[1]].ratio if self.answer and self.pair else None
        return ratio is not None and ratio[0] <= 1

    @property
    def cheaper_idle(self) -> int | None:
        """Which of the pair, 0 or 1, costs less if it does nothing else; null where neither is shown to."""
        ratio = self.idle.ratio if self.idle else None
        if ratio is None or ratio[0] <= 1 <= ratio[2]:
            return None
        return 0 if ratio[0] > 1 else 1

    @property
    def idle_turns(self) -> bool:
        """Whether a machine that does nothing else has another answer than one that is kept busy."""
        return self.cheaper_idle == 1 or (self.cheaper_idle == 0 and self.tied)


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
        return None if inputs is None else Costs(inputs, inputs.numbers)
    unknown = _power_unknown(inputs.numbers)
    numbers = _without_power(inputs.numbers) if unknown else inputs.numbers
    result = answer(numbers)
    pair = (result.order[0], result.order[1]) if len(result.order) > 1 else None
    moved = sensitivities(numbers, *pair) if pair else ()
    flip = next((one.flip for one in moved if pair and one.key == f"watts:{pair[0]}"), None)
    if unknown:
        moved, result = (
            tuple(one for one in moved if not one.key.startswith("watts:")),
            _without_energy(result),
        )
    return Costs(
        inputs,
        numbers,
        result,
        pair,
        most=moved[0] if moved and moved[0].reach > LEAST_REACH else None,
        power_unknown=unknown,
        flip_watts=flip if unknown else None,
        alone=alone(numbers) if inputs.own_mix else (),
        idle=idle(numbers, *pair) if pair and inputs.own_mix else None,
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


def _without_power(numbers: Numbers) -> Numbers:
    """As if the cards drew nothing, all alike; the host's share stays."""
    cards = tuple(replace(card, watts=(NO_WATTS,) * len(card.watts)) for card in numbers.cards)
    return replace(numbers, cards=cards)


def _without_energy(result: CostAnswer) -> CostAnswer:
    cards = (
        replace(card, kwh=None, energy=None, rows=tuple(replace(row, joules=None) for row in card.rows))
        for card in result.cards
    )
    return replace(result, cards=tuple(cards))
