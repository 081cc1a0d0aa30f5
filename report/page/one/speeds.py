"""How fast one side is, where nothing was varied, beside what others published of the same work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from report.analysis import Analysis
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.compare.cells import Cell
from report.page.filters import figure_text
from report.page.one.answering import limiting_shares, repeat_line, runs_of
from report.page.parts.studies import published_times
from report.page.side_names import named_works
from report.page.time_rows import MOST_ROWS, describe_rows, key_of_systems, look_of, published_row
from report.page.values import AnswerPage, Picture, Quantity, Sentence, Systems, rate, rate_unit
from report.trials.key import LOADER_ALONE, grouped_by


def page(analysis: Analysis, systems: Systems) -> AnswerPage:
    """Return the page of what was not varied."""
    cells = [cell for cell in analysis.own_cells if cell.throughput.mean]
    table = tuple(zip(map(str, named_works([cell.key for cell in cells])), cells, strict=True))
    data: dict[str, Any] = {"own": systems.own[0], "factor": analysis.question.by}
    if cells:
        data |= {"cell": cells[0], "rate": rate(cells[0]), "loads": cells[0].key.protocol == LOADER_ALONE}
        data["runs"] = _runs_apart(cells[0])
    else:
        data["invalid"] = sum(trial.verdict == "invalid" for trial in analysis.own)
    return AnswerPage(
        headline=Sentence("alone" if cells else "all-invalid", data),
        picture=_picture(table, systems, analysis) if cells else None,
        template="speeds",
        table=table,
        notes=(Sentence("speeds-sure", {"runs": runs_of(cells, settled=True)}), limiting_shares(cells)),
        following=repeat_line(analysis),
        cells=cells,
        about={"factor": analysis.question.by},
    )


def _runs_apart(cell: Cell) -> Quantity | None:
    """Return the mean with the least and the greatest run, where the range of the mean reaches zero."""
    found, runs = rate(cell), cell.throughput.values
    if found.low is None or found.low > 0:
        return None
    return replace(found, low=min(runs), high=max(runs))


def _picture(table: Sequence[tuple[str, Cell]], systems: Systems, analysis: Analysis) -> Picture:
    """Return the times beside published ones; where there are none, the speeds from zero by their unit."""
    beside, key = published_times(analysis), key_of_systems(systems.own)
    timed = [(name, cell) for name, cell in table if cell.seconds.mean and beside.get(id(cell))]
    if timed:
        rows = []
        for name, cell in timed:
            seconds = cell.seconds.mean or 1.0
            mark = Mark(1.0, look=look_of(cell, timed=True), slot=systems.of(cell).slot)
            rows.append(ScaleRow(name, (mark,), text=figure_text(seconds, "seconds"), small="1.00"))
            rows += [published_row(claim, seconds, loader=loader) for claim, loader in beside[id(cell)]]
        groups = [RowGroup("", tuple(rows[:MOST_ROWS]))]
        return Picture(
            "lead", ScaleRows(tuple(groups), "here = 1.00", key), describe_rows(groups), "published"
        )
    groups = [
        RowGroup(unit, tuple(_speed_row(name, cell, systems) for name, cell in members[:MOST_ROWS]))
        for unit, members in grouped_by(table, lambda each: rate_unit(each[1])).items()
    ]
    chart = ScaleRows(tuple(groups), key=key, reference=None)
    return Picture("lead", chart, describe_rows(groups), "speeds")


def _speed_row(name: str, cell: Cell, systems: Systems) -> ScaleRow:
    speed, ends = cell.throughput.mean, cell.throughput.interval
    low, high = (ends.low, ends.high) if ends else (None, None)
    mark = Mark(speed or 0.0, low, high, slot=systems.of(cell).slot)
    return ScaleRow(name, (mark,), text=figure_text(speed))
