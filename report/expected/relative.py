"""How many times as fast one card should train as another: any work whose arithmetic is known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.record import PRECISIONS, Precision
from report.expected.expected import NEW_SOFTWARE, WIDEST, ExpectationModel, Refusal, refusal_of_new_work
from report.expected.figures import TrainingTask
from report.expected.model import described
from report.expected.specs import CardSpecs, arithmetic

TRAINED = frozenset(label for label in PRECISIONS if PRECISIONS[label].arithmetic)
"""The labels whose arithmetic is known."""
NEW_WORK = "new"
"""A work that no table has."""
DEVIATIONS = 1.9
"""With a work left out of the tables, nine of ten ratios of its cards lay within so many deviations (3,162
pairs in 53 works)."""


Times = tuple[float, float, float]
"""Low, best, high: times as long."""


def relative_time(
    model: ExpectationModel,
    card: CardSpecs,
    over: CardSpecs,
    precision: Precision,
    task: TrainingTask | None = None,
) -> Times | Refusal:
    """Return how many times as long a card should take as another, or why nothing is said of one of them.

    Its range holds nine of ten works and cards. By a `task` of the tables where the work is one.
    """
    import pandas as pd

    kind = arithmetic(precision)
    for one in (card, over):
        has_figures = ((model.fit.figures.card == one.name) & (model.fit.figures.arithmetic == kind)).any()
        if not has_figures and (refused := refusal_of_new_work(one, kind, model.reference)):
            return refused
    known = task is not None and task.key in model.tasks
    names = (task.key, task.program, task.work) if task and known else (NEW_WORK,) * 3
    asked = pd.DataFrame({"card": [card.name, over.name], "software": NEW_SOFTWARE, "scale": 1.0})
    asked = asked.assign(precision=precision, task=names[0], program=names[1], work=names[2])
    mean, variance = model.fit.difference(described(asked, {one.name: one for one in (card, over)}))
    reach = DEVIATIONS * math.sqrt(variance)
    if not reach < math.log(WIDEST):
        return Refusal("width", f"{math.exp(reach):.2g}", f"{WIDEST:g}")
    return math.exp(-mean - reach), math.exp(-mean), math.exp(reach - mean)


@dataclass(frozen=True, slots=True)
class CardsOnPaper:
    """By the names of offers' cards; a time also by the card that it is over, and by the line of work."""

    specs: Mapping[str, CardSpecs] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    """What to write instead of a card's name that is in no table."""
    times: Mapping[tuple[str, str, str], Times | Refusal] = field(default_factory=dict)
    figures: int = 0
    """How many published figures the times are by, and of how many cards."""
    cards: int = 0

    def time_over(self, card: str, over: str, line: str) -> Times | None:
        """Return the expected time of a card over another's; null where none is known."""
        first, second = self.specs.get(card), self.specs.get(over)
        if card == over or (first and first is second):
            return (1.0, 1.0, 1.0)
        said = self.times.get((card, over, line))
        return None if isinstance(said, Refusal) else said
