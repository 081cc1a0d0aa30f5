"""A card asked for by its name: what is expected of it in each task, beside cards that others measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from report.expected.expected import Expected, Measured, Model
from report.expected.figures import Task
from report.expected.refusal import Refusal
from report.expected.specs import Specs

NEIGHBOURS = 2


@dataclass(frozen=True, slots=True)
class AskedRow:
    """One task; `beside` are the figures of the cards in the tables whose peaks are nearest."""

    expected: Expected
    beside: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """All that is said of the card. `refused` counts the tasks by the reason why nothing is said of them."""

    card: str
    rows: tuple[AskedRow, ...]
    refused: tuple[tuple[Refusal, int], ...]
    to_measure: tuple[Task, ...]
    """The works that would tell the most of the others, once measured on it."""
    by_plan: bool
    """Whether they are of a plan here."""
    factors: tuple[float, float] | None
    """The typical range of nine in ten now, and after these works."""


def asked_of(
    model: Model, card: Specs, measured: Sequence[Measured] = (), runnable: Collection[Task] = ()
) -> Asked:
    """What the model says of a card in every task; `runnable` are those that a plan runs."""
    said = {task: model.ask(card, task, measured=measured) for task in model.tasks.values()}
    rows = [
        AskedRow(one, _beside(model, card, task)) for task, one in said.items() if isinstance(one, Expected)
    ]
    refused = Counter(one for one in said.values() if isinstance(one, Refusal))
    rows.sort(key=lambda row: row.expected.factor_90)
    here = [row.expected.task for row in rows if row.expected.task in runnable]
    narrow = here or [row.expected.task for row in rows[: (len(rows) + 1) // 2]]
    tell = model.to_measure(card, narrow) if narrow else ()
    return Asked(
        card.name,
        tuple(rows),
        tuple(refused.most_common()),
        tell,
        bool(here),
        _factors(model, card, rows, tell),
    )


def _beside(model: Model, card: Specs, task: Task) -> tuple[tuple[str, float], ...]:
    """The cards whose peaks are nearest to the card's, and its own figures."""
    figures = model.fit.figures
    rows = figures[figures.task == task.key]
    far = [
        abs(np.log(model.specs[name].peak_tflops(task.precision) / card.peak_tflops(task.precision)))
        for name in rows.card
    ]
    nearest = rows.assign(far=far).groupby("card").agg(far=("far", "first"), speed=("log_speed", "median"))
    return tuple(
        (str(name), task.value(speed)) for name, speed in nearest.nsmallest(NEIGHBOURS, "far").speed.items()
    )


def _factors(
    model: Model, card: Specs, rows: Sequence[AskedRow], tell: Sequence[Task]
) -> tuple[float, float] | None:
    """The typical factor of the other tasks before and after; what is measured is taken to be as expected."""
    known = [Measured(row.expected.task, row.expected.value) for row in rows if row.expected.task in tell]
    others = [row.expected for row in rows if row.expected.task not in tell]
    if not others:
        return None
    after = [model.ask(card, one.task, measured=known) for one in others]
    return median(one.factor_90 for one in others), median(
        one.factor_90 for one in after if isinstance(one, Expected)
    )
