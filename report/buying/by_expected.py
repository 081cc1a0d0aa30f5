"""An offer whose card nobody measured: its hours and price by what others' figures make one expect of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.buying.cost_inputs import Range
from report.buying.cost_model import Draws
from report.buying.costs import Costs
from report.expected.expected import Expected


@dataclass(frozen=True, slots=True)
class OfferExpected:
    """`hours` a year of the buyer's work hold nine of ten cards, each work at its own end at once."""

    hours: Range
    wins_below: float | None
    """The price below which it costs less than the cheapest, wherever in the ranges the truth is; null
    where no price does."""


def by_expected(
    costs: Costs, place: int, said: Sequence[Expected | None], watts: float
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
            slow + samples / one.low_90,
            best + samples / one.value,
            fast + samples / one.high_90,
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
