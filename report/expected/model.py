"""The model: a figure's logarithm, as a sum of what the work, the software, the card and its family add.

    log speed = the task's own level + slopes × the card's specifications
              + software + software of this task + architecture, in this arithmetic, in this program
              + card, in this arithmetic, in this work + the figure's own scatter

Every term but the level and the common slopes is drawn around nothing with a deviation of its own (a mixed
model). So a card without figures is predicted from its specifications, one with figures from both, and a
software that no table has adds its own uncertainty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from report.expected.specs import CardSpecs, arithmetic

if TYPE_CHECKING:
    import pandas as pd

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
RowIndices = NDArray[np.intp]

FEWEST_CARDS = 8
"""A task is in the model where so many cards have a figure of it."""

COMMON_OFFSET, COMMON_SLOPE = 5.0, 1.0
"""Deviations of what is all but free: a task's level, and the slopes that tasks share."""

OUTLIER, LOOSE = 5.0, 5.0
"""A figure so many deviations from where all others put it teaches nothing: its scatter is raised."""

SHRUNK = 10
"""A task's own scatter counts against so many figures with the scatter of its program."""

PEAK_SLOPE, OTHER_SLOPE, FIGURE = 0.07, 0.042, 0.058
"""How much a task's own slopes scatter, by the card's peak and by the rest, and a figure about all terms."""


@dataclass(frozen=True, slots=True)
class SharedTerm:
    """A term that figures share which have the same in some columns."""

    columns: tuple[str, ...]
    deviation: float
    """How much it scatters, as a logarithm."""
    scaled: bool = True
    """Whether it is larger where a task scatters more."""


TERMS = (
    SharedTerm(("software", "arithmetic"), 0.146),
    SharedTerm(("software", "task"), 0.08),
    SharedTerm(("architecture",), 0.248),
    SharedTerm(("architecture", "arithmetic"), 0.336, scaled=False),
    SharedTerm(("architecture", "program"), 0.115, scaled=False),
    SharedTerm(("card",), 0.12),
    SharedTerm(("card", "arithmetic"), 0.006),
    SharedTerm(("card", "program", "work"), 0.06),
)
"""With the deviations that made left-out cards likeliest. Those of a card, and of a card in a work, were
raised with the tables of 2026. What an architecture adds in an arithmetic and in a program came in after
them, by what made all figures likeliest with the others as they were.
"""
SETTINGS = PEAK_SLOPE, OTHER_SLOPE, FIGURE, TERMS


def described(figures: pd.DataFrame, specs: Mapping[str, CardSpecs]) -> pd.DataFrame:
    """Return the figures of cards whose specifications are known, with what the model asks of each."""
    import pandas as pd

    known = figures[figures.card.isin(list(specs))].reset_index(drop=True)
    cards = [specs[name] for name in known.card]
    return known.assign(
        vendor=[card.vendor for card in cards],
        architecture=[f"{card.vendor} {card.architecture}" for card in cards],
        arithmetic=[arithmetic(label) for label in known.precision],
        features=pd.Series(
            [card.features(label) for card, label in zip(cards, known.precision, strict=True)], dtype=object
        ),
    )


def modelled(figures: pd.DataFrame) -> pd.DataFrame:
    """Return the figures of tasks that enough cards have."""
    cards = figures.groupby("task").card.nunique()
    return figures[figures.task.map(cards) >= FEWEST_CARDS].reset_index(drop=True)


def covariance(first: pd.DataFrame, second: pd.DataFrame, centre: Vector) -> Matrix:
    """Return what the figures of two frames have in common; a figure's own scatter is not in it."""
    a, b = _features(first) - centre, _features(second) - centre
    task = _same(first, second, ("task",))
    slopes = PEAK_SLOPE**2 * np.outer(a[:, 0], b[:, 0])
    slopes += OTHER_SLOPE**2 * (a[:, 1:] @ b[:, 1:].T)
    found: Matrix = COMMON_SLOPE**2 * (a @ b.T) + task * (COMMON_OFFSET**2 + slopes)
    scales = np.outer(_floats(first.scale), _floats(second.scale))
    for term in TERMS:
        scale = scales if term.scaled else 1.0
        found += term.deviation**2 * _same(first, second, term.columns) * scale
    return found


def _features(figures: pd.DataFrame) -> Matrix:
    return np.asarray(list(figures.features), dtype=np.float64)


def _floats(values: pd.Series) -> Vector:
    return np.asarray(values, dtype=np.float64)


def indices_by(figures: pd.DataFrame, column: str) -> dict[str, RowIndices]:
    """Return the row indices of each value of a column."""
    return {str(key): np.asarray(places) for key, places in figures.groupby(column).indices.items()}


def _same(first: pd.DataFrame, second: pd.DataFrame, columns: tuple[str, ...]) -> NDArray[np.bool_]:
    import pandas as pd

    keys = pd.concat([first[list(columns)], second[list(columns)]])
    codes = keys.groupby(list(columns), sort=False).ngroup().to_numpy()
    return np.equal.outer(codes[: len(first)], codes[len(first) :])


@dataclass(frozen=True)
class MixedModelFit:
    """The figures with their `scale` and `loose`, and the inverse of their covariance."""

    figures: pd.DataFrame

    @cached_property
    def centre(self) -> Vector:
        """The features' means."""
        return np.asarray(_features(self.figures).mean(axis=0))

    @cached_property
    def levels(self) -> pd.Series:
        """The mean of each task."""
        return self.figures.groupby("task").log_speed.mean()

    @cached_property
    def y(self) -> Vector:
        """The figures about their task's mean."""
        return _floats(self.figures.log_speed - self.figures.task.map(self.levels))

    @cached_property
    def precision(self) -> Matrix:
        """The inverse of the figures' covariance."""
        whole = covariance(self.figures, self.figures, self.centre)
        own = (FIGURE * self.figures.scale) ** 2 + self.figures.loose
        whole[np.diag_indices(len(whole))] += own
        return np.asarray(np.linalg.inv(whole), dtype=np.float64)

    @cached_property
    def weights(self) -> Vector:
        """What each figure counts."""
        return self.precision @ self.y

    def without(self, left: RowIndices, asked: RowIndices | None = None) -> tuple[Vector, Vector]:
        """Return the errors and deviations of figures, had those at `left` not been there."""
        chosen = np.arange(len(left)) if asked is None else np.searchsorted(left, asked)
        wanted = np.zeros((len(left), 1 + len(chosen)))
        wanted[:, 0], wanted[chosen, np.arange(len(chosen)) + 1] = self.weights[left], 1.0
        solved = np.linalg.solve(self.precision[np.ix_(left, left)], wanted)
        found: Matrix = np.asarray(solved[chosen], dtype=np.float64)
        return found[:, 0], np.sqrt(np.diag(found[:, 1:]))

    def before(self, places: RowIndices) -> MixedModelFit:
        """Return the fit before any of these figures is known to be an outlier, as of a new card's."""
        loose = _floats(self.figures.loose)
        at = places[loose[places] > 0]
        if not len(at):
            return self
        remaining = np.where(np.isin(range(len(loose)), at), 0, loose)
        found = MixedModelFit(self.figures.assign(loose=remaining))
        # The inverse less a few entries of the diagonal (Woodbury), for a new one takes a second.
        core = np.linalg.inv(np.diag(1 / loose[at]) - self.precision[np.ix_(at, at)])
        vars(found)["precision"] = self.precision + self.precision[:, at] @ core @ self.precision[at]
        return found

    def predict(self, asked: pd.DataFrame) -> tuple[Vector, Vector]:
        """Return the expected logarithms of rows that are in no table, and their variances."""
        means, shared = self._about_level(asked)
        return means + _floats(asked.task.map(self.levels)), np.diag(shared)

    def difference(self, asked: pd.DataFrame) -> tuple[float, float]:
        """Return how far the first of two rows of one task should be from the second, and its variance."""
        (first, second), shared = self._about_level(asked)
        return float(first - second), float(shared[0, 0] + shared[1, 1] - 2 * shared[0, 1])

    def _about_level(self, asked: pd.DataFrame) -> tuple[Vector, Matrix]:
        """Return the rows' expected logarithms about the level of their tasks, and their covariance."""
        cross = covariance(asked, self.figures, self.centre)
        own = covariance(asked, asked, self.centre) - cross @ self.precision @ cross.T
        own[np.diag_indices(len(asked))] += (FIGURE * _floats(asked.scale)) ** 2
        return cross @ self.weights, own


def fit(figures: pd.DataFrame) -> MixedModelFit:
    """Return the model of these figures; a first fit finds each task's own scatter, and the outliers."""
    import pandas as pd

    first = MixedModelFit(figures.assign(scale=1.0, loose=0.0))
    errors, deviations = np.empty(len(figures)), np.empty(len(figures))
    for places in indices_by(figures, "card").values():
        errors[places], deviations[places] = first.without(places)
    ratio = pd.Series(np.abs(errors / deviations), index=figures.index)
    tasks = pd.Series(ratio.to_numpy(), figures.task.to_numpy()).groupby(level=0).agg(["median", "size"])
    programs = ratio.groupby(figures.program).median()
    common = figures.groupby("task").program.first().map(programs)
    scale = (tasks["median"] * tasks["size"] + SHRUNK * common) / (tasks["size"] + SHRUNK) / ratio.median()
    alone = np.abs(first.weights) / np.sqrt(np.diag(first.precision))
    loose = np.where(alone > OUTLIER, LOOSE**2, 0.0)
    return MixedModelFit(figures.assign(scale=figures.task.map(scale), loose=loose))
