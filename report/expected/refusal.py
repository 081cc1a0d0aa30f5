"""Where the model was not calibrated, and so says nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from harness.record import Precision
from report.expected.model import FEWEST_CARDS, Vector
from report.expected.specs import Arithmetic, CardSpecs, arithmetic

if TYPE_CHECKING:
    import pandas as pd

FEWEST_OF_VENDOR = 5
MOST_YEARS = 2
"""How many years after the newest card with figures a card may be."""

BEYOND = 2.0
"""A specification may lie so many times outside those of the task's cards."""

LEAST_OF_MEMORY = 0.75
"""The share of the smallest card's memory that is needed, where the batch is fixed and not made to fit."""

WIDEST = 3.0
"""A range of more than a third to three times says nothing."""

SPECIFICATIONS = ("peak", "FP32 peak", "bandwidth", "memory", "power")
MEMORY = SPECIFICATIONS.index("memory")

RefusalReason = Literal["task", "vendor", "architecture", "year", "memory", "specification", "width"]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no expected value: what was `found` against what is `needed`."""

    reason: RefusalReason
    found: str = ""
    needed: str = ""


@dataclass(frozen=True, slots=True)
class TaskCards:
    """The cards that have figures of a task, with the features that the model knows of each."""

    program: str
    precision: Precision
    batch: int
    cards: tuple[str, ...]
    features: Vector


@dataclass(frozen=True, slots=True)
class ReferenceCards:
    """The cards that have figures: of each task, of each program and vendor, of each architecture, in all."""

    tasks: Mapping[str, TaskCards]
    vendors: Mapping[tuple[str, str], frozenset[str]]
    architectures: Mapping[str, frozenset[str]]
    years: Mapping[str, int]


def reference_cards(figures: pd.DataFrame) -> ReferenceCards:
    """Return what the figures say of their cards."""
    tasks = {}
    for key, rows in figures.drop_duplicates(["task", "card"]).groupby("task"):
        first = rows.iloc[0]
        tasks[str(key)] = TaskCards(
            first.program, first.precision, int(first.batch), tuple(rows.card), np.stack(list(rows.features))
        )
    vendors = figures.groupby(["program", "vendor"]).card.agg(frozenset)
    return ReferenceCards(
        tasks,
        dict(zip(vendors.index.tolist(), vendors, strict=True)),
        {str(key): frozenset(cards) for key, cards in figures.groupby("architecture").card},
        dict(zip(figures.card, figures.year, strict=True)),
    )


def refusal(card: CardSpecs, task: str, on: ReferenceCards) -> Refusal | None:
    """Return why a card has no expected value of a task; its own figures do not count."""
    same = on.tasks.get(task)
    if same is None:
        return Refusal("task", "0", str(FEWEST_CARDS))
    of_vendor = on.vendors.get((same.program, card.vendor), frozenset())
    if refused := _stranger(card, of_vendor, on):
        return refused
    others = same.features[[name != card.name for name in same.cards]]
    return _beyond(card.features(same.precision), others, same.batch)


def refusal_of_new_work(card: CardSpecs, kind: Arithmetic, on: ReferenceCards) -> Refusal | None:
    """Return why nothing is said of a card in a work that no table has, by all works of one arithmetic."""
    of_vendor = frozenset[str]().union(*(names for (_, of), names in on.vendors.items() if of == card.vendor))
    if refused := _stranger(card, of_vendor, on):
        return refused
    tasks = [task for task in on.tasks.values() if arithmetic(task.precision) == kind]
    if not tasks:
        return Refusal("task", "0", str(FEWEST_CARDS))
    return _beyond(card.features(tasks[0].precision), np.concatenate([task.features for task in tasks]), 1)


def _stranger(card: CardSpecs, of_vendor: frozenset[str], on: ReferenceCards) -> Refusal | None:
    """Return a refusal where too few cards of its vendor, none of its kind or only old ones are known."""
    if len(of_vendor - {card.name}) < FEWEST_OF_VENDOR:
        return Refusal("vendor", f"{len(of_vendor - {card.name})} of {card.vendor}", str(FEWEST_OF_VENDOR))
    if not on.architectures.get(f"{card.vendor} {card.architecture}", frozenset()) - {card.name}:
        return Refusal("architecture", card.architecture)
    newest = max(year for name, year in on.years.items() if name != card.name) + MOST_YEARS
    return Refusal("year", str(card.year), str(newest)) if card.year > newest else None


def _beyond(own: Vector, others: Vector, batch: int) -> Refusal | None:
    """Return a refusal where a specification is outside of what the task's cards have."""
    least = others[:, MEMORY].min() + (np.log(LEAST_OF_MEMORY) if batch else 0)
    if own[MEMORY] < least - 0.01:
        return Refusal("memory", f"{np.exp(own[MEMORY]):.0f} GB", f"{np.exp(least):.0f} GB")
    room = np.log(BEYOND)
    for place, name in enumerate(SPECIFICATIONS):
        if not others[:, place].min() - room <= own[place] <= others[:, place].max() + room:
            return Refusal("specification", name)
    return None
