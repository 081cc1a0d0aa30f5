"""Claims that met a record: what was published, what is here, and the verdict, as numbers and names."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.record import Claim, Side
from report import text
from report.analysis import Analysis
from report.claims.answers import LADDER, Answer
from report.claims.claimed_work import figure_of
from report.claims.judge import Judged
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.page.values import Quantity, quantity
from report.stats.equivalence import Verdict, VerdictState
from report.trials.key import Pairs, Value

VerdictReason = Literal["margin", "bound", "number", "few runs", "other unit"]

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


def claim_rows(analysis: Analysis) -> tuple[ClaimRow, ...]:
    """The claims that met what was measured on this page, counts of parameters last.

    Failed ones come first, then confirmed, then open.
    """
    shown = _page_sessions(analysis)
    rows = [
        _claim_row(judged, analysis)
        for judged in analysis.verdicts
        if any(cell.session in shown for cell in judged.cells)
    ]

    def place(row: ClaimRow) -> tuple[bool, int, bool]:
        return row.claim.metric == "parameters", ORDER.index(row.state), not row.claim.is_relative

    return tuple(sorted(rows, key=place))


def answer_rows(analysis: Analysis) -> tuple[AnswerRow, ...]:
    """The figures whose work this machine did on other terms: of its own card first, then by study."""
    shown = _page_sessions(analysis)
    found = [one for one in analysis.answers if one.state in LADDER and one.times and one.differs]
    found = [one for one in found if one.cell and one.cell.session in shown]
    return tuple(_answer_row(one, analysis) for one in sorted(found, key=lambda one: LADDER.index(one.state)))


def _page_sessions(analysis: Analysis) -> frozenset[str | None]:
    """The leading session and those named with it: what others judged is on their own pages."""
    return frozenset((analysis.lead, *analysis.request.named))


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


def count_verdicts(
    analysis: Analysis, rows: Sequence[ClaimRow], answers: Sequence[AnswerRow]
) -> Mapping[str, int]:
    """Return how many claims have which answer on this page, and what the others need.

    `met` have a verdict: they hold, fail, or are open. `ways` need one more command, `cards` another card.
    """
    states: Counter[str] = Counter(row.state for row in rows)
    beside = Counter(row.answer.state for row in answers)
    needs = Counter(one.obstacle.kind for one in analysis.answers if one.obstacle)
    cards = needs["card"] + needs["cards"] + needs["gpu"]
    ways = sum(one.state == "not measured yet" for one in analysis.answers)
    return {
        **{state: states[state] for state in ORDER},
        "met": len(rows),
        "software": beside["on other software"],
        "another": beside["on another card"],
        "ways": ways,
        "cards": cards,
        "others": len(analysis.answers) - len(rows) - len(answers) - ways - cards,
    }


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
        here=_told_apart(
            quantity(judged.interval or judged.measured, unit), claim.value, judged.verdict.margin
        ),
        state=judged.verdict.state,
        reason=_verdict_reason(judged),
        verdict=judged.verdict,
        runs=min(((figure_of(claim, cell) or cell.throughput).n for cell in judged.cells), default=0),
        cells=judged.cells,
    )


def _told_apart(here: Quantity, published: float | None, margin: float | None) -> Quantity:
    """Return a figure in as many digits as show where in the margin of a published one close to it it is."""
    apart = abs(here.value / published - 1) if here.value and published else 0.0
    close = max(1e-5, (margin or 0.0) / 100) < apart < 1e-2
    return replace(here, digits=min(2 + int(-math.log10(apart)), 5)) if close else here


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
    """What the verdict rests on, or why it is open."""
    claim, verdict = judged.claim, judged.verdict
    if verdict.state == "open":
        if verdict.other_unit is not None:
            return "other unit"
        if verdict.interval is None and verdict.bounds is None:
            return "few runs"
    elif claim.kind == "structure" or CLAIMED[claim.metric].kind == "count":
        return "number"
    return "margin" if claim.relation == "equal" else "bound"
