"""The expected value of a task on a card with its range, or why there is none, and all of one card."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import Literal

import numpy as np
import pandas as pd

from harness.record.published.cards import Card
from harness.record.store import write_whole
from report.expected.figures import Row, Task, figures_of, fingerprint, read_tables, task_of
from report.expected.model import (
    SETTINGS,
    Fit,
    Places,
    Vector,
    described,
    fit,
    modelled,
    most_telling,
    places_by,
)
from report.expected.refusal import WIDEST, Ground, Refusal, ground, refusal
from report.expected.specs import Specs, load_specs

MOST_WORKS = 3
"""More measured works of a card are counted as so many."""

UNTOLD = 1.0
"""The deviation of a task whose only software is left out: its level is unknown, and no range is given."""
METHOD = "2"
LEVELS = (0.8, 0.9)
MOST_KEPT = 4
"""Beside a new one: a page asks several, less the records of other cards."""
Standing = Literal["specifications", "published", "measured"]
HERE = "here"
"""The software of what was measured outside of the tables."""
NEIGHBOURS = 2


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


@dataclass(frozen=True, slots=True)
class Measured:
    """A task's figure that was measured on the card asked for."""

    task: Task
    value: float
    software: str = HERE


@dataclass(frozen=True, slots=True)
class Expected:
    """A figure in its task's unit, with the range that holds it in eight and in nine of ten cards."""

    card: str
    task: Task
    value: float
    low_80: float
    high_80: float
    low_90: float
    high_90: float
    factor_90: float
    """The range of nine in ten, as what the value is multiplied and divided by."""
    stands_on: Standing
    works: int
    """Measured works of the card that it stands on; with `published`, figures of the card in the tables."""


@dataclass(frozen=True)
class Model:
    """Everything that an answer needs."""

    specs: Mapping[str, Specs]
    tasks: Mapping[str, Task]
    """Those with figures of enough cards."""
    fit: Fit
    scores: Scores
    ground: Ground

    def ask(
        self, card: Specs, task: Task, *, software: str | None = None, measured: Sequence[Measured] = ()
    ) -> Expected | Refusal:
        """The expected value with a software of the tables, else with one of which nothing is known."""
        key = task.key
        refused = refusal(card, key, self.ground)
        if refused:
            return refused
        known = [one for one in measured if one.task.key in self.tasks and one.task != task]
        asked = self._rows(card, [(task, software or HERE, math.nan)])
        given = self._rows(card, [(one.task, one.software, one.task.log_speed(one.value)) for one in known])
        mean, joint = self.fit.predict(asked, given)
        situation = Situation(
            (key, software) in self._software,
            min(len(known), MOST_WORKS),
        )
        reach = [quantile(self.scores[situation], level) * math.sqrt(joint[0, 0]) for level in LEVELS]
        if not reach[1] < math.log(WIDEST):
            return Refusal("width", f"{math.exp(reach[1]):.2g}", f"{WIDEST:g}")
        ends = [sorted((task.value(mean[0] - far), task.value(mean[0] + far))) for far in reach]
        published = int((self.fit.figures.card == card.name).sum())
        return Expected(
            card=card.name,
            task=task,
            value=task.value(mean[0]),
            low_80=ends[0][0],
            high_80=ends[0][1],
            low_90=ends[1][0],
            high_90=ends[1][1],
            factor_90=math.exp(reach[1]),
            stands_on="measured" if known else "published" if published else "specifications",
            works=len(known) or published,
        )

    def to_measure(self, card: Specs, tasks: Sequence[Task], software: str | None = None) -> tuple[Task, ...]:
        """Those of these tasks that, measured on the card, tell the most of the others."""
        rows = self._rows(card, [(task, software or HERE, math.nan) for task in tasks])
        _, joint = self.fit.predict(rows, rows[:0])
        return tuple(tasks[place] for place in most_telling(joint, min(MOST_WORKS, len(tasks))))

    def _rows(self, card: Specs, wanted: Iterable[tuple[Task, str, float]]) -> pd.DataFrame:
        """What the model reads of figures that are in no table."""
        rows = [
            (task.key, task.program, task.work, task.precision, software, log_speed, self._scale[task.key])
            for task, software, log_speed in wanted
        ]
        names = ["task", "program", "work", "precision", "software", "log_speed", "scale"]
        frame = pd.DataFrame(rows, columns=names).assign(card=card.name)
        return described(frame.astype({"log_speed": float, "scale": float}), {card.name: card})

    @cached_property
    def _scale(self) -> Mapping[str, float]:
        return dict(zip(self.fit.figures.task, self.fit.figures.scale, strict=True))

    @cached_property
    def _software(self) -> frozenset[tuple[str, str]]:
        return frozenset(zip(self.fit.figures.task, self.fit.figures.software, strict=True))


def answered(figures: pd.DataFrame, specs: Mapping[str, Specs]) -> dict[str, frozenset[str]]:
    """The tasks that each card with figures would be answered, had it none."""
    on = ground(figures)
    return {
        card: frozenset(
            task for task in figures.task.iloc[places].unique() if refusal(specs[card], task, on) is None
        )
        for card, places in places_by(figures, "card").items()
    }


def model_of(
    rows: Sequence[Row],
    specs: Mapping[str, Specs],
    situations: Sequence[Situation] = SITUATIONS,
) -> Model:
    """The model of these rows."""
    figures = modelled(described(figures_of(rows), specs))
    fitted = fit(figures)
    of_cards = scores(fitted, answered(figures, specs), situations)
    return _assembled(rows, specs, fitted, of_cards)


def _assembled(rows: Sequence[Row], specs: Mapping[str, Specs], fitted: Fit, of_cards: Scores) -> Model:
    held = set(fitted.figures.task)
    tasks = {task.key: task for task in map(task_of, rows) if task.key in held}
    return Model(specs, tasks, fitted, of_cards, ground(fitted.figures))


def kept(root: Path, cards: Sequence[Card], folder: Path, more: Sequence[Row] = ()) -> Model:
    """The model of the clone's tables and of more rows; what took long is kept in a folder by their hash."""
    rows = [*(row for table in read_tables(root).values() for row in table), *more]
    specs = load_specs(root, cards)
    place = folder / f"expected-{METHOD}-{fingerprint(rows, specs, SETTINGS)[:16]}.json"
    if place.is_file():
        return _reread(json.loads(place.read_text(encoding="utf-8")), rows, specs)
    made = model_of(rows, specs)
    for old in sorted(folder.glob("expected-*.json"), key=lambda path: path.stat().st_mtime)[:-MOST_KEPT]:
        old.unlink()
    write_whole(place, json.dumps(_to_keep(made)), replace=True)
    return made


def _to_keep(made: Model) -> dict[str, object]:
    return {
        "scale": made.fit.figures.scale.tolist(),
        "loose": made.fit.figures.loose.tolist(),
        "scores": [
            {"software": situation.software, "works": situation.works, "cards": dict(of_cards)}
            for situation, of_cards in made.scores.items()
        ],
    }


def _reread(known: Mapping[str, list], rows: Sequence[Row], specs: Mapping[str, Specs]) -> Model:  # type: ignore[type-arg]
    figures = modelled(described(figures_of(rows), specs))
    fitted = Fit(figures.assign(scale=known["scale"], loose=known["loose"]), SETTINGS)
    of_cards = {Situation(one["software"], one["works"]): one["cards"] for one in known["scores"]}
    return _assembled(rows, specs, fitted, of_cards)


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
