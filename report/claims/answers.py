"""The one answer that a published figure gets: a verdict, its distance from here, a way to it, or a reason.

For an absolute figure the work has to be the same; the card, the software and the loader may be others, and
are named. Figures of other kinds have a verdict, a way, or a reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from harness.record import Claim
from harness.record.published.cards import Card
from report.claims.claimed_work import figure_of, side_terms
from report.claims.judge import Judged, obstacles
from report.compare.cells import Cell
from report.expected.software_effect import SoftwareEffect
from report.metrics import CLAIMED
from report.stats.equivalence import VerdictState
from report.trials.key import Term

AnswerState = Literal[
    "reproduced",
    "not reproduced",
    "holds here",
    "does not hold here",
    "inconclusive",
    "on other software",
    "on another card",
    "not measured yet",
    "cannot be measured here",
]
LADDER: tuple[AnswerState, ...] = (
    *("reproduced", "not reproduced", "inconclusive"),
    *("on other software", "on another card", "not measured yet", "cannot be measured here"),
)
"""What an absolute figure may get, the most first."""
VERDICTS: Mapping[VerdictState, tuple[AnswerState, ...]] = {
    "holds": ("reproduced", "holds here"),
    "fails": ("not reproduced", "does not hold here"),
    "open": ("inconclusive",),
}
"""What a verdict is called of an absolute figure, and of the others."""
WAYS: tuple[AnswerState, ...] = ("not measured yet", "cannot be measured here")

AnswerTerm = Literal["card", "software", "loader"]


@dataclass(frozen=True, slots=True)
class JudgingPlan:
    """A plan that would judge a claim here, and how long each of the trials takes that its verdict needs."""

    plan: str
    seconds_by_trial: Mapping[str, float]
    image: str | None = None
    """The image that has to be asked for by name; null where the device's own serves."""
    at_most: bool = False
    """Whether a trial of unknown time counts with its time-out."""

    @property
    def line(self) -> str:
        """Return the value of `--plan`, with the option that has to follow it."""
        return f"{self.plan} --image {self.image}" if self.image else self.plan

    @property
    def seconds(self) -> float:
        """Return the seconds of all its trials."""
        return sum(self.seconds_by_trial.values())


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why nothing here can answer a figure."""

    kind: Literal["figure", "trend", "metric", "gpu", "devices", "card", "cards", "framework", "plan"]
    need: str | int | None = None


@dataclass(frozen=True, slots=True)
class Prospects:
    """For each figure that met no record, by its id, the plan that judges it or the one obstacle."""

    ways: Mapping[str, JudgingPlan] = field(default_factory=dict)
    barred: Mapping[str, Obstacle] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """`times` is how many times as fast as published a cell is (of memory, how many times as much it takes).

    `low` and `high` are its range, null where its windows are unproven or it has one run.
    """

    claim: Claim
    state: AnswerState
    cell: Cell | None = None
    here: float | None = None
    times: float | None = None
    low: float | None = None
    high: float | None = None
    differs: tuple[AnswerTerm, ...] = ()
    software: SoftwareEffect | None = None
    """What software alone is known to change, where nothing but that differs."""
    way: JudgingPlan | None = None
    obstacle: Obstacle | None = None
    nearest: tuple[Term, ...] = ()
    """What the nearest cell has otherwise, where none did the same work."""

    @property
    def without_range(self) -> bool:
        """Whether it has a ratio of times or speeds without a range; bytes need none."""
        return self.times is not None and self.low is None and CLAIMED[self.claim.metric].kind == "duration"

    @property
    def within_software(self) -> bool | None:
        """Whether software alone is known to change as much; null where something else differs, too."""
        if self.software is None or self.times is None:
            return None
        return abs(math.log(self.times)) <= math.log1p(self.software.high)


def answers(
    claims: Iterable[Claim],
    verdicts: Iterable[Judged],
    cells: Sequence[Cell],
    cards: Sequence[Card],
    prospects: Prospects,
    software: SoftwareEffect | None = None,
) -> tuple[Answer, ...]:
    """Each figure's answer on the leading machine's cells, in the order of the claims."""
    judged = {one.claim.id: one for one in verdicts}
    found = []
    for claim in claims:
        met = judged.get(claim.id)
        answered = _verdict_answer(met) if met else _nearest_answer(claim, cells, cards, software)
        way = prospects.ways.get(claim.id)
        if answered is None:
            barrier = None if way else prospects.barred.get(claim.id) or own_obstacle(claim)
            nearest = _nearest_differences(claim, cells)
            state = WAYS[0] if way else WAYS[1]
            answered = Answer(claim, state, way=way, obstacle=barrier, nearest=nearest)
        found.append(answered)
    return tuple(found)


def own_obstacle(claim: Claim) -> Obstacle:
    """Why a figure has no answer whatever the device: else that no plan has its work."""
    if not claim.can_be_judged:
        return Obstacle("trend" if claim.kind == "trend" else "figure")
    metric = CLAIMED[claim.metric]
    measured = metric.path or claim.target is not None or claim.metric == "batch_ratio"
    return Obstacle("plan" if measured else "metric")


def _verdict_answer(judged: Judged) -> Answer:
    cell, absolute = judged.cells[0], judged.claim.kind == "absolute"
    state = VERDICTS[judged.verdict.state][0 if absolute else -1]
    if not absolute:
        return Answer(judged.claim, state, cell, judged.measured)
    return _measured_answer(judged.claim, state, cell)


def _nearest_answer(
    claim: Claim, cells: Sequence[Cell], cards: Sequence[Card], software: SoftwareEffect | None
) -> Answer | None:
    """The answer of the nearest cell that did the same work; null where none did."""
    if claim.kind != "absolute" or not claim.value:
        return None
    found = [(cell, terms) for cell in cells if (terms := terms_beside(claim, cell, cards)) is not None]
    if not found:
        return None

    def rank(each: tuple[Cell, tuple[AnswerTerm, ...]]) -> tuple[int, ...]:
        """The same card first, then a loader as published, proven windows, the same software, most runs."""
        cell, terms = each
        card, loader, software = (-int(term in terms) for term in ("card", "loader", "software"))
        runs = getattr(figure_of(claim, cell), "n", 0)
        return card, loader, int(cell.verdict != "unproven"), software, runs, cell.turn[0]

    best, differs = max(found, key=rank)
    state: AnswerState = "inconclusive"
    if differs:
        state = "on another card" if "card" in differs else "on other software"
    return _measured_answer(claim, state, best, differs, software if differs == ("software",) else None)


def terms_beside(claim: Claim, cell: Cell, cards: Sequence[Card]) -> tuple[AnswerTerm, ...] | None:
    """Return in what a cell differs that did a claim's work; null where it did another or has no figure."""
    if cell.key.workload != claim.workload:
        return None
    figure = figure_of(claim, cell)
    if figure is None or not figure.mean:
        return None
    work = {difference.field for difference in side_terms(claim, cell)}
    if not work <= {"data_mode"}:
        return None
    lacking = obstacles(claim, cell, cards)
    if not lacking <= {"card", "software", "settled window"}:
        return None
    found: dict[AnswerTerm, bool] = {
        "card": "card" in lacking,
        "software": "software" in lacking,
        "loader": bool(work),
    }
    return tuple(term for term, differs in found.items() if differs)


def _measured_answer(
    claim: Claim,
    state: AnswerState,
    cell: Cell,
    differs: tuple[AnswerTerm, ...] = (),
    software: SoftwareEffect | None = None,
) -> Answer:
    figure = figure_of(claim, cell)
    if figure is None or not figure.mean or not claim.value:
        return Answer(claim, state, cell, differs=differs)
    metric = CLAIMED[claim.metric]
    direct = metric.more_is_better or metric.kind != "duration"
    times = _times_published(figure.mean, claim.value, direct)
    ends: tuple[float | None, float | None] = (None, None)
    interval = figure.interval if cell.verdict != "unproven" else None
    if interval is not None and interval.low > 0:
        low, high = (_times_published(end, claim.value, direct) for end in (interval.low, interval.high))
        ends = (min(low, high), max(low, high))
    return Answer(claim, state, cell, figure.mean, times, *ends, differs, software)


def _times_published(here: float, published: float, direct: bool) -> float:
    return here / published if direct else published / here


def _nearest_differences(claim: Claim, cells: Sequence[Cell]) -> tuple[Term, ...]:
    """What the nearest cell of the same model has otherwise; empty where no cell is of it."""
    work = claim.workload, claim.of.model.casefold()
    alike = (cell for cell in cells if (cell.key.workload, cell.key.model.casefold()) == work)
    return min((side_terms(claim, cell) for cell in alike), key=len, default=())
