"""The expected value of a task on a card with its range, or why there is none; and all of one card."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from harness.record.published.cards import Card
from harness.record.store import write_whole
from report.expected.figures import (
    PublishedRow,
    TrainingTask,
    figures_of,
    fingerprint,
    read_tables,
    task_of,
)
from report.expected.model import (
    FEWEST_CARDS,
    SETTINGS,
    MixedModelFit,
    Vector,
    described,
    fit,
    indices_by,
    modelled,
)
from report.expected.specs import Arithmetic, CardSpecs, load_specs

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN_LEVEL = 1.0
"""The deviation of a task whose only software is left out: its level is unknown, and no range is given."""
METHOD = "6"
COVERAGE = 0.9
"""The share of new cards that a range holds."""
MOST_KEPT = 4
"""Besides a new one: one page asks several models, each without the records of some cards."""
NEW_SOFTWARE = "new"
"""The software of a figure that no table has."""
NEIGHBOURS = 2

FEWEST_OF_VENDOR = 5
BEYOND = 2.0
"""A specification may lie so many times outside those of the task's cards."""

LEAST_OF_MEMORY = 0.75
"""The share of the smallest card's memory that is needed, where the batch is fixed and not made to fit."""

WIDEST = 3.0
"""A range of more than a third to three times says nothing."""

SPECIFICATIONS = ("peak", "FP32 peak", "bandwidth", "memory", "power")
MEMORY = SPECIFICATIONS.index("memory")

CardErrors = Mapping[str, tuple[float, ...]]
"""The errors of each card, in deviations."""


def errors(fit: MixedModelFit, answered: Mapping[str, frozenset[str]], *, software_known: bool) -> CardErrors:
    """Return the errors of left-out cards in the tasks for which the card would be answered.

    A card is asked for in each software that it was measured with. Unless `software_known`, all figures of
    that software are left out with it.
    """
    figures, of_cards = fit.figures, dict[str, list[float]]()
    of_software, tasks = indices_by(figures, "software"), figures.task.to_numpy()
    for card, rows in indices_by(figures, "card").items():
        before = fit.before(rows)
        for software, own in indices_by(figures.iloc[rows], "software").items():
            left = rows if software_known else np.union1d(rows, of_software[software])
            measured = np.sort(rows[own])
            asked = measured[[task in answered.get(card, ()) for task in tasks[measured]]]
            if len(asked):
                error, deviation = before.without(left, asked)
                ratio = np.abs(error / deviation)[deviation < UNKNOWN_LEVEL]
                of_cards.setdefault(card, []).extend(ratio.round(4).tolist())
    return {card: tuple(values) for card, values in of_cards.items() if values}


def own_errors(fit: MixedModelFit) -> dict[str, CardErrors]:
    """Return the errors of left-out cards in each program's only task, where they are enough for a range.

    Such a task scatters as its one program does, which other programs' errors do not say.
    """
    figures, rows_by_card = fit.figures, indices_by(fit.figures, "card")
    found: dict[str, CardErrors] = {}
    for program, places in indices_by(figures, "program").items():
        if figures.task.iloc[places].nunique() > 1:
            continue
        of_cards = {}
        for card in figures.card.iloc[places].unique():
            rows = np.sort(rows_by_card[card])
            error, deviation = fit.before(rows).without(rows, np.intersect1d(rows, places))
            of_cards[str(card)] = tuple(np.abs(error / deviation).round(4).tolist())
        if math.isfinite(quantile(of_cards, COVERAGE)):
            found[program] = of_cards
    return found


def quantile(of_cards: CardErrors, level: float) -> float:
    """Return what `level` of a new card's errors stay below; infinite where there are too few cards."""
    if not of_cards:
        return float("inf")
    values = np.concatenate([np.asarray(each) for each in of_cards.values()])
    weights: Vector = np.concatenate([np.full(len(each), 1 / len(each)) for each in of_cards.values()])
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / (len(of_cards) + 1)
    at = int(np.searchsorted(reached, level))
    return float(values[order][at]) if at < len(values) else float("inf")


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no expected value: what was `found` against what is `needed`."""

    reason: Literal["task", "vendor", "architecture", "memory", "specification", "width"]
    found: str = ""
    needed: str = ""


@dataclass(frozen=True, slots=True)
class ReferenceCards:
    """The cards that have figures: of each task, of each program and vendor, of each architecture, in all."""

    tasks: Mapping[str, pd.DataFrame]
    """By their names, a figure of each card."""
    vendors: Mapping[tuple[str, str], frozenset[str]]
    architectures: Mapping[str, frozenset[str]]


def reference_cards(figures: pd.DataFrame) -> ReferenceCards:
    """Return what the figures say of their cards."""
    of_cards = figures.drop_duplicates(["task", "card"])
    vendors = figures.groupby(["program", "vendor"]).card.agg(frozenset)
    return ReferenceCards(
        {str(key): rows for key, rows in of_cards.groupby("task")},
        dict(zip(vendors.index.tolist(), vendors, strict=True)),
        {str(key): frozenset(cards) for key, cards in figures.groupby("architecture").card},
    )


def refusal(card: CardSpecs, task: str, on: ReferenceCards) -> Refusal | None:
    """Return why a card has no expected value of a task; its own figures do not count."""
    same = on.tasks.get(task)
    if same is None:
        return Refusal("task", "0", str(FEWEST_CARDS))
    first = same.iloc[0]
    of_vendor = on.vendors.get((first.program, card.vendor), frozenset())
    if refused := _stranger(card, of_vendor, on):
        return refused
    others = np.stack(list(same.features[same.card != card.name]))
    return _beyond(card.features(first.precision), others, int(first.batch))


def refusal_of_new_work(card: CardSpecs, kind: Arithmetic, on: ReferenceCards) -> Refusal | None:
    """Return why nothing is said of a card in a work that no table has, by all works of one arithmetic."""
    of_vendor = frozenset[str]().union(*(names for (_, of), names in on.vendors.items() if of == card.vendor))
    if refused := _stranger(card, of_vendor, on):
        return refused
    tasks = [task for task in on.tasks.values() if task.arithmetic.iloc[0] == kind]
    if not tasks:
        return Refusal("task", "0", str(FEWEST_CARDS))
    others = np.stack([features for task in tasks for features in task.features])
    return _beyond(card.features(tasks[0].precision.iloc[0]), others, 1)


def _stranger(card: CardSpecs, of_vendor: frozenset[str], on: ReferenceCards) -> Refusal | None:
    """Return a refusal where too few cards of its vendor, or none of its kind, are known."""
    if len(of_vendor - {card.name}) < FEWEST_OF_VENDOR:
        return Refusal("vendor", f"{len(of_vendor - {card.name})} of {card.vendor}", str(FEWEST_OF_VENDOR))
    if not on.architectures.get(f"{card.vendor} {card.architecture}", frozenset()) - {card.name}:
        return Refusal("architecture", card.architecture)
    return None


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


@dataclass(frozen=True, slots=True)
class ExpectedValue:
    """A figure in its task's unit, with the range that holds it for nine of ten cards."""

    task: TrainingTask
    value: float
    low: float
    high: float
    factor: float
    """The range, as what the value is multiplied and divided by."""
    published: int
    """How many figures of this task this card has; with 0 the value is from the model over all cards."""
    neighbours: tuple[tuple[str, float], ...] = ()
    """The published figures of the cards whose peaks are nearest."""


@dataclass(frozen=True)
class ExpectationModel:
    """Everything that an answer needs."""

    specs: Mapping[str, CardSpecs]
    tasks: Mapping[str, TrainingTask]
    """The tasks with figures of enough cards."""
    fit: MixedModelFit
    errors: Mapping[bool, CardErrors]
    """The errors of left-out cards, by whether the tables have the software."""
    own: Mapping[str, CardErrors]
    """The same of programs with one task, by their names."""
    reference: ReferenceCards

    def ask(
        self, card: CardSpecs, task: TrainingTask, *, software: str | None = None
    ) -> ExpectedValue | Refusal:
        """Return the expected value with a software of the tables, else with a new one."""
        return self.answers(card, [task], software=software)[task]

    def answers(
        self, card: CardSpecs, tasks: Iterable[TrainingTask], *, software: str | None = None
    ) -> dict[TrainingTask, ExpectedValue | Refusal]:
        """Return each task's expected value, or why there is none; a task that the card did has one."""
        of_card = Counter(self.fit.figures.task[self.fit.figures.card == card.name])
        found: dict[TrainingTask, ExpectedValue | Refusal | None] = {
            task: None if of_card[task.key] else refusal(card, task.key, self.reference) for task in tasks
        }
        asked = [task for task, refused in found.items() if not refused]
        if asked:
            fields = [{**asdict(task), "task": task.key, "scale": self._scale[task.key]} for task in asked]
            import pandas as pd

            rows = pd.DataFrame(fields).assign(software=software or NEW_SOFTWARE, card=card.name)
            means, variances = self.fit.predict(described(rows, {card.name: card}))
            for task, mean, variance in zip(asked, means.tolist(), variances, strict=True):
                known = self.own.get(task.program) or self.errors[(task.key, software) in self._software]
                reach = quantile(known, COVERAGE) * math.sqrt(variance)
                found[task] = _said(task, mean, reach, of_card[task.key])
        return {task: said for task, said in found.items() if said}

    @cached_property
    def _scale(self) -> Mapping[str, float]:
        return dict(zip(self.fit.figures.task, self.fit.figures.scale, strict=True))

    @cached_property
    def _software(self) -> frozenset[tuple[str, str]]:
        return frozenset(zip(self.fit.figures.task, self.fit.figures.software, strict=True))


def _said(task: TrainingTask, mean: float, reach: float, published: int) -> ExpectedValue | Refusal:
    if not reach < math.log(WIDEST):
        return Refusal("width", f"{math.exp(reach):.2g}", f"{WIDEST:g}")
    low, high = sorted((task.value(mean - reach), task.value(mean + reach)))
    return ExpectedValue(task, task.value(mean), low, high, math.exp(reach), published)


def answered(figures: pd.DataFrame, specs: Mapping[str, CardSpecs]) -> dict[str, frozenset[str]]:
    """Return the tasks in which each card with figures would be answered, had it none."""
    on = reference_cards(figures)
    return {
        card: frozenset(
            task for task in figures.task.iloc[rows].unique() if refusal(specs[card], task, on) is None
        )
        for card, rows in indices_by(figures, "card").items()
    }


def model_of(
    rows: Sequence[PublishedRow], specs: Mapping[str, CardSpecs], cached: Mapping[str, Any] | None = None
) -> ExpectationModel:
    """Return the model of these rows, its slow part as it was `cached`."""
    figures = modelled(described(figures_of(rows), specs))
    if cached:
        fitted = MixedModelFit(figures.assign(scale=cached["scale"], loose=cached["loose"]))
        found, own = {True: cached["known"], False: cached["new"]}, cached["own"]
    else:
        fitted, of = fit(figures), answered(figures, specs)
        found = {known: errors(fitted, of, software_known=known) for known in (True, False)}
        own = own_errors(fitted)
    held = set(figures.task)
    tasks = {task.key: task for task in map(task_of, rows) if task.key in held}
    return ExpectationModel(specs, tasks, fitted, found, own, reference_cards(fitted.figures))


def kept(
    root: Path, cards: Sequence[Card], folder: Path, more: Sequence[PublishedRow] = ()
) -> ExpectationModel:
    """Return the model of the clone's tables and of more rows; its slow part is cached in `folder`."""
    rows = [*(row for table in read_tables(root).values() for row in table), *more]
    specs = load_specs(root, cards)
    path = folder / f"expected-{METHOD}-{fingerprint(rows, specs, SETTINGS)[:16]}.json"
    if path.is_file():
        return model_of(rows, specs, json.loads(path.read_text(encoding="utf-8")))
    made = model_of(rows, specs)
    for old in sorted(folder.glob("expected-*.json"), key=lambda path: path.stat().st_mtime)[:-MOST_KEPT]:
        old.unlink()
    columns = {name: made.fit.figures[name].tolist() for name in ("scale", "loose")}
    slow = {**columns, "known": made.errors[True], "new": made.errors[False], "own": made.own}
    write_whole(path, json.dumps(slow), replace=True)
    return made


@dataclass(frozen=True, slots=True)
class CardExpectation:
    """What is expected of a card. `refused` counts the tasks by the reason why nothing is said of them."""

    card: str
    rows: tuple[ExpectedValue, ...]
    refused: tuple[tuple[Refusal, int], ...]


def expectation_of(model: ExpectationModel, card: CardSpecs) -> CardExpectation:
    """Return what is said of a card in every task: where it has figures first, then the narrowest range."""
    found = model.answers(card, model.tasks.values())
    figures = dict(tuple(model.fit.figures.groupby("task")))
    rows = [
        replace(one, neighbours=_neighbours(model, card, task, figures[task.key]))
        for task, one in found.items()
        if isinstance(one, ExpectedValue)
    ]
    refused = Counter(one for one in found.values() if isinstance(one, Refusal))
    rows.sort(key=lambda row: (not row.published, row.factor))
    return CardExpectation(card.name, tuple(rows), tuple(refused.most_common()))


def _neighbours(
    model: ExpectationModel, card: CardSpecs, task: TrainingTask, figures: pd.DataFrame
) -> tuple[tuple[str, float], ...]:
    """Return the cards whose peaks are nearest to the card's, itself among them, with their figures."""
    speeds, own = figures.groupby("card").log_speed.median(), card.peak_tflops(task.precision)
    far = {
        str(name): abs(math.log(model.specs[str(name)].peak_tflops(task.precision) / own))
        for name in speeds.index
    }
    return tuple(
        (name, task.value(speeds[name])) for name in sorted(far, key=lambda name: far[name])[:NEIGHBOURS]
    )
