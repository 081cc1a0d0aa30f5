"""Whether published figures hold here: each beside what was measured, and ours beside published programs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from report import text
from report.analysis import PROGRAM, Analysis
from report.charts.rows import KeyEntry, Look, Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell
from report.compare.ratio import WorkRatio, speed_known, terms_between, work_ratio
from report.page.filters import figure_text, value_text
from report.page.one.answering import limiting_shares, runs_of
from report.page.parts.verdicts import (
    AnswerRow,
    ClaimRow,
    answer_rows,
    claim_rows,
    count_verdicts,
)
from report.page.pictures import MOST_ROWS, look_of, rows_picture
from report.page.values import AnswerPage, Picture, Sentence, Systems

JUDGE_MORE = "invoke run --claims here --budget 2h"
MOST_SAID = 2


@dataclass(frozen=True, slots=True)
class HeldView:
    """The claims that met the leading session's cells, other published figures of its work, and programs."""

    rows: tuple[ClaimRow, ...]
    answers: tuple[AnswerRow, ...]
    programs: tuple[tuple[Cell, WorkRatio | None], ...]
    """Each published program, and how many times as fast ours trains the same work."""
    counts: Mapping[str, int]
    """How many published figures have each answer."""


def page(analysis: Analysis, systems: Systems) -> AnswerPage | None:
    """Return the page of published figures; null where none met the leading session."""
    rows, answers = claim_rows(analysis), answer_rows(analysis)
    programs = tuple(_programs_and_ours(analysis.own_cells))
    if not rows and not answers and not programs:
        return None
    view = HeldView(rows, answers, programs, count_verdicts(analysis, rows, answers))
    cells = [cell for cell in analysis.own_cells if cell.throughput.mean]
    return AnswerPage(
        headline=_headline(view, systems),
        picture=_picture(view),
        template="holds",
        table=view,
        notes=(Sentence("holds-sure", {"runs": runs_of(cells), "rows": rows}), limiting_shares(cells)),
        following=Sentence("next-claims", {"commands": (JUDGE_MORE,), "waiting": view.counts["ways"]}),
        cells=cells,
        about={"programs": [text.clean(_program_name(cell), 40) for cell, _ in programs]},
    )


def _programs_and_ours(cells: Sequence[Cell]) -> list[tuple[Cell, WorkRatio | None]]:
    """Programs beside the cell of that model and batch that this project's own workload trained."""
    programs = [cell for cell in cells if _is_program(cell) and cell.throughput.mean]
    found = []
    for cell in programs:
        ours = next((other for other in cells if _is_same_work(cell, other)), None)
        terms = terms_between(ours, cell, ()) if ours else ()
        found.append((cell, work_ratio(ours, cell, speed_known([ours, cell]), terms) if ours else None))
    return sorted(found, key=lambda each: each[1] is None)


def _is_same_work(program: Cell, other: Cell) -> bool:
    models = [cell.key.model.rpartition("/")[2].casefold() for cell in (program, other)]
    units = [cell.trials[0].sample_unit for cell in (program, other)]
    alike = models[0] == models[1] and program.key.batch_size == other.key.batch_size
    return alike and units[0] == units[1] and not _is_program(other)


def _is_program(cell: Cell) -> bool:
    return cell.key.workload == PROGRAM


def _program_name(cell: Cell) -> str:
    measured = cell.trials[0].record.measurement
    return measured.program.name if measured and measured.program else cell.key.model


def _headline(view: HeldView, systems: Systems) -> Sentence:
    """Return the verdicts, and ours beside the original that it differs from most, in an order if shown."""
    beside = [(cell, ratio) for cell, ratio in view.programs if ratio]
    cell, ratio = max(beside, key=lambda each: _shown_distance(each[1]), default=(None, None))
    # A model's parameters are counted, and named only where nothing else was met.
    rows = [row for row in view.rows if row.claim.metric != "parameters"] or view.rows
    data = {
        "own": systems.own[0],
        "rows": rows[:MOST_SAID],
        "counts": view.counts,
        "fails": [row for row in rows if row.state == "fails"],
        "program": _program_name(view.programs[0][0]) if view.programs else "",
        "names": {row.claim.id: _program_name(c) for row in rows for c in row.cells if _is_program(c)},
        "beside": {"name": _program_name(cell), "ratio": ratio} if cell and ratio else None,
        "answer": min(view.answers, key=_last_told, default=None),
    }
    if not view.rows:
        return Sentence("published" if view.answers else "programs", data)
    return Sentence("holds-few" if len(rows) <= MOST_SAID else "holds", data)


def _last_told(row: AnswerRow) -> tuple[bool, bool]:
    return row.claim.metric == "peak_bytes", row.answer.without_range


def _shown_distance(ratio: WorkRatio) -> tuple[bool, float]:
    return ratio.order in ("faster", "slower"), abs(math.log(ratio.estimate))


def _picture(view: HeldView) -> Picture | None:
    """Return each figure here over the published one, where it holds, and ours over the originals."""
    claims = [_claim_row(row) for row in view.rows if row.here.value and row.published.value]
    if not claims:
        claims = [_answer_row(row) for row in view.answers if row.times.value]
    programs = [_program_row(cell, ratio) for cell, ratio in view.programs if ratio]
    named = (("Published", claims), ("gpudyno", programs))
    groups = [
        RowGroup(
            name if claims and programs else "",
            tuple(rows[:MOST_ROWS]),
            ("over the original",) if name == "gpudyno" else (),
        )
        for name, rows in named
        if rows
    ]
    if not groups:
        return None
    key = (
        KeyEntry("here", "measured"),
        KeyEntry("does not hold", "measured", 1),
        KeyEntry("projected", "projected"),
        KeyEntry("projected, does not hold", "projected", 1),
        KeyEntry("it holds there", "band"),
    )
    chart = ScaleRows(tuple(groups), "theirs = 1.00", key, dots=True)
    return rows_picture(chart, "holds" if view.rows else "published")


def _claim_row(row: ClaimRow) -> ScaleRow:
    published = row.published.value or 1.0
    here, low, high = (
        (end / published if end else None) for end in (row.here.value, row.here.low, row.here.high)
    )
    margin = row.verdict.margin or row.claim.margin
    band = (1 / (1 + margin), 1 + margin) if row.claim.relation == "equal" and margin else None
    looks = {look_of(cell, row.claim.metric) for cell in row.cells if row.claim.kind == "absolute"}
    look: Look = "projected" if "projected" in looks else "measured"
    mark = Mark(here or 1.0, low, high, look, int(row.state == "fails"))
    name = text.clean(
        row.claim.words or f"{text.model_name(row.claim.of.model)}, {row.claim.metric.replace('_', ' ')}", 60
    )
    return ScaleRow(name, (mark,), "", value_text(row.here), f"against {value_text(row.published)}", band)


def _answer_row(row: AnswerRow) -> ScaleRow:
    of, times = row.claim.of, row.times
    look = look_of(row.answer.cell, row.claim.metric) if row.answer.cell else "measured"
    mark = Mark(times.value or 1.0, times.low, times.high, look)
    name = f"{text.short_card(of.card or '–')}, {text.model_name(of.model)}"
    return ScaleRow(
        name,
        (mark,),
        of.precision or "",
        figure_text(times.value, "ratio"),
        f"{value_text(row.here)} against {value_text(row.published)}",
    )


def _program_row(cell: Cell, ratio: WorkRatio) -> ScaleRow:
    ends = (ratio.interval.low, ratio.interval.high) if ratio.interval else (None, None)
    mark = Mark(ratio.estimate, *ends)
    return ScaleRow(
        text.clean(_program_name(cell), 40),
        (mark,),
        text.model_name(cell.key.model),
        text.times(ratio.estimate),
    )
