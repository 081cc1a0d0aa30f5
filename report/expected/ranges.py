"""How far expected values lie from published ones, card by card: what makes a deviation a range (conformal).

Every card is left out in turn, and the errors of its figures are divided by the deviation that the model
gives them. A range for a new card takes the quantile of these among cards, each card counting alike
(hierarchical conformal prediction: Lee, Barber, Willett 2023), for the figures of one card err together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from report.expected.model import Fit, Places, Vector, most_telling, places_by

MOST_WORKS = 3
"""More measured works of a card are counted as so many."""

UNTOLD = 1.0
"""The deviation of a task whose only software is left out: its level is unknown, and no range is given."""


@dataclass(frozen=True, slots=True, order=True)
class Situation:
    """What is known of the card asked for: whether tables have its software, and how many works of it."""

    software: bool
    works: int


SITUATIONS = tuple(
    Situation(software, works) for software in (True, False) for works in range(MOST_WORKS + 1)
)

Scores = Mapping[Situation, Mapping[str, tuple[float, ...]]]
"""Of each situation and card, its errors in deviations."""


def cases(fit: Fit, situation: Situation) -> Iterator[tuple[Fit, str, Places, Places]]:
    """Each card with each software that it was measured with, left out but for the most telling works.

    With the card the fit before its figures, those that are asked for, and what is left out for that.
    """
    figures = fit.figures
    of_software = places_by(figures, "software")
    for card, places in places_by(figures, "card").items():
        before = fit.before(places)
        for software, here in places_by(figures.iloc[places], "software").items():
            mine = np.sort(places[here])
            if len(mine) <= situation.works:
                continue
            gone = places if situation.software else np.union1d(places, of_software[software])
            own = np.searchsorted(gone, mine)
            joint = before.joint_without(gone)[np.ix_(own, own)]
            known = mine[most_telling(joint, situation.works)]
            yield before, card, np.setdiff1d(mine, known), np.setdiff1d(gone, known)


def scores(
    fit: Fit, answered: Mapping[str, frozenset[str]], situations: Sequence[Situation] = SITUATIONS
) -> Scores:
    """The scores of each situation, of the tasks for which a card would be answered."""
    found: dict[Situation, dict[str, tuple[float, ...]]] = {}
    for situation in situations:
        of_cards: dict[str, list[float]] = {}
        for before, card, measured, left in cases(fit, situation):
            tasks = fit.figures.task.to_numpy()[measured]
            asked = measured[[task in answered.get(card, ()) for task in tasks]]
            if len(asked):
                error, deviation = before.without(left, asked)
                ratio = np.abs(error / deviation)[deviation < UNTOLD]
                of_cards.setdefault(card, []).extend(ratio.round(4).tolist())
        found[situation] = {card: tuple(values) for card, values in of_cards.items() if values}
    return found


def quantile(of_cards: Mapping[str, tuple[float, ...]], level: float) -> float:
    """What `level` of the scores of a new card stay below; infinite where there are too few cards for it."""
    if not of_cards:
        return float("inf")
    values = np.concatenate([np.asarray(scores) for scores in of_cards.values()])
    weights: Vector = np.concatenate([np.full(len(s), 1 / len(s)) for s in of_cards.values()])
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / (len(of_cards) + 1)
    place = int(np.searchsorted(reached, level))
    return float(values[order][place]) if place < len(values) else float("inf")
