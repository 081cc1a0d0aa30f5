"""Claims that met a record: what was published, what is here, and the verdict, as numbers and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from harness.record import Claim, Side
from report import text
from report.analysis import Analysis
from report.claims.answers import LADDER, Answer
from report.claims.judge import Judged
from report.claims.matching import figure_of
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.page.values import Quantity, quantity
from report.stats.equivalence import Verdict
from report.trials.key import Pairs, Value

VerdictState = Literal["holds", "fails", "open"]
VerdictReason = Literal[
    "within",
    "outside",
    "across",
    "few runs",
    "other unit",
    "bound met",
    "bound missed",
    "equal",
    "unequal",
]

STATES: Mapping[str, VerdictState] = {
    "reproduced": "holds",
    "holds here": "holds",
    "not reproduced": "fails",
    "does not hold here": "fails",
    "inconclusive": "open",
}
ORDER = ("fails", "holds", "open")
UNITS = {"s": "seconds", "B": "bytes", "fraction": "accuracy", "parameters": "count"}
WITHOUT_NAME = ("perplexity", "loss", "AUC", "epochs", "images", "tokens")
"""Units that the metric says already."""


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim with what it was held against; `common` is what both of its sides name, by name and value."""

    claim: Claim
    study: str
    common: Pairs
    of: Pairs
    over: Pairs
    published: Quantity
    here: Quantity
    state: VerdictState
    reason: VerdictReason
    verdict: Verdict
    runs: int
    cells: tuple[Cell, ...]
    """What it was held against."""


@dataclass(frozen=True, slots=True)
class AnswerRow:
    """An absolute figure of the same work as a cell of this machine, on another card or other software."""

    answer: Answer
    study: str
    common: Pairs
    published: Quantity
    here: Quantity
    times: Quantity

    @property
    def claim(self) -> Claim:
        """The figure."""
        return self.answer.claim


@dataclass(frozen=True, slots=True)
class VerdictCounts:
    """How many claims have each outcome. `software` and `another` did the same work, compared by a ratio.

    `ways` need one more command here, `cards` another card.
    """

    holds: int
    fails: int
    open: int
    software: int
    another: int
    ways: int
    cards: int
    others: int

    @property
    def met(self) -> int:
        """Claims that met a record."""
        return self.holds + self.fails + self.open


def claim_rows(analysis: Analysis) -> tuple[ClaimRow, ...]:
    """The claims that met a record: failed ones first, then confirmed, then open."""
    rows = [_claim_row(judged, analysis) for judged in analysis.verdicts if judged.compared]
    return tuple(sorted(rows, key=lambda row: (ORDER.index(row.state), not row.claim.is_relative)))


def answer_rows(analysis: Analysis) -> tuple[AnswerRow, ...]:
    """The figures whose work this machine did on other terms: of its own card first, then by study."""
    found = [
        answer for answer in analysis.answers if answer.state in LADDER and answer.times and answer.differs
    ]
    return tuple(
        _answer_row(answer, analysis) for answer in sorted(found, key=lambda one: LADDER.index(one.state))
    )


def _answer_row(answer: Answer, analysis: Analysis) -> AnswerRow:
    claim, unit = answer.claim, unit_of(answer.claim)
    return AnswerRow(
        answer=answer,
        study=analysis.evidence.claims.study_name(claim.study),
        common=_side_parts(claim.of),
        published=Quantity(claim.value, unit),
        here=Quantity(answer.here, unit),
        times=Quantity(answer.times, "ratio", answer.low, answer.high),
    )


def count_verdicts(analysis: Analysis) -> VerdictCounts:
    """How many claims came to which answer, and what the others need."""
    of_states = Counter(STATES.get(one.state, one.state) for one in analysis.answers)
    barriers = Counter(one.obstacle.kind for one in analysis.answers if one.obstacle)
    cards = barriers["card"] + barriers["cards"] + barriers["gpu"]
    return VerdictCounts(
        of_states["holds"],
        of_states["fails"],
        of_states["open"],
        of_states["on other software"],
        of_states["on another card"],
        of_states["not measured yet"],
        cards,
        of_states["cannot be measured here"] - cards,
    )


def _claim_row(judged: Judged, analysis: Analysis) -> ClaimRow:
    claim = judged.claim
    of = _side_parts(claim.of)
    over = _side_parts(claim.over) if claim.over else ()
    common = tuple(part for part in of if part in over) if over else of
    unit = unit_of(claim)
    return ClaimRow(
        claim=claim,
        study=analysis.evidence.claims.study_name(claim.study),
        common=common,
        of=tuple(part for part in of if part not in common),
        over=tuple(part for part in over if part not in common),
        published=Quantity(claim.value, unit),
        here=quantity(judged.interval or judged.measured, unit),
        state=STATES[judged.verdict.word],
        reason=_verdict_reason(judged),
        verdict=judged.verdict,
        runs=min(((figure_of(claim, cell) or cell.throughput).n for cell in judged.cells), default=0),
        cells=judged.cells,
    )


def _side_parts(side: Side) -> Pairs:
    named: list[tuple[str, Value]] = [
        ("card", side.card),
        ("model", side.model),
        ("precision", side.precision),
        ("batch_size", side.batch_size),
        ("gpus", side.gpus if side.gpus > 1 else None),
        ("data_mode", side.data_mode),
        ("layout", side.layout),
        ("image_size", side.image_size),
        *side.options.items(),
    ]
    return tuple((name, value) for name, value in named if value is not None)


def unit_of(claim: Claim) -> str:
    """The unit in which a claim's figures are written."""
    if claim.is_relative or claim.metric == "batch_ratio":
        return "ratio"
    return UNITS.get(claim.unit, "" if claim.unit in WITHOUT_NAME else text.clean(claim.unit, 20))


def _verdict_reason(judged: Judged) -> VerdictReason:
    """Why the verdict is what it is, by what it rests on."""
    claim, verdict = judged.claim, judged.verdict
    state = STATES[verdict.word]
    if state == "open":
        if verdict.other_unit is not None:
            return "other unit"
        return "few runs" if verdict.interval is None and verdict.bounds is None else "across"
    if claim.kind == "structure" or CLAIMED[claim.metric].kind == "count":
        return "equal" if state == "holds" else "unequal"
    if claim.relation == "equal":
        return "within" if state == "holds" else "outside"
    return "bound met" if state == "holds" else "bound missed"
