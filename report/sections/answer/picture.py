"""Page one's picture where neither prices nor a study make one: the speeds that its first sentence is of."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.analysis import Analysis
from report.charts.intervals import Mark
from report.comparisons.cells import Cell, unit_of
from report.comparisons.speedups import Speedup, best_of_each_workload
from report.sections import names
from report.sections.answer.headline import mixed
from report.sections.view import Panel
from report.sections.workloads.charts import gain_mark, intervals_panel, ratios_panel

NAME = "lead"
MOST_MARKS = 6


def picture(analysis: Analysis) -> Panel | None:
    """What mixed precision gains here, else how fast each work ran; null where nothing has a figure."""
    cells = analysis.measured_here
    own = {id(cell) for cell in cells}
    gains = best_of_each_workload(mixed([gain for gain in analysis.speedups if id(gain.of) in own]))
    return _gains(gains[:MOST_MARKS], cells) if gains else _speeds(cells)


def _gains(gains: Sequence[Speedup], among: Sequence[Cell]) -> Panel | None:
    marks = [
        gain_mark(gain, names.work(gain.of, among), names.gain_note(gain) + _generated(gain.of))
        for gain in gains
    ]
    return ratios_panel(NAME, "Speed against 32-bit", "times as fast; more is better", marks)


def _speeds(cells: Sequence[Cell]) -> Panel | None:
    """Of the works that count the same samples as the first."""
    rated = [cell for cell in cells if cell.throughput.mean is not None]
    if not rated:
        return None
    unit = rated[0].trials[0].sample_unit
    alike = [cell for cell in rated if cell.trials[0].sample_unit == unit][:MOST_MARKS]
    works = "; different works" if len({cell.key.model for cell in alike}) > 1 else ""
    return intervals_panel(
        NAME,
        "How fast it trained",
        f"{text.clean(unit, 20)}s a second; more is better{works}",
        [_speed(cell, alike) for cell in alike],
    )


def _speed(cell: Cell, among: Sequence[Cell]) -> Mark:
    figure = cell.throughput
    interval = figure.interval
    parts = [f"batch {cell.key.batch_size}", text.count(figure.n, "run")]
    parts += ["unproven"] if cell.verdict == "unproven" else []
    return Mark(
        label=names.work(cell, among) + names.setting(cell.key),
        note=" · ".join(parts) + _generated(cell),
        text=text.number(figure.mean),
        value=figure.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        runs=figure.values,
        left_out=figure.apart,
        precision=cell.key.precision,
        unranked=not cell.ranked,
        card=unit_of(cell),
    )


def _generated(cell: Cell) -> str:
    return " · GENERATED data" if cell.key.data_source == "generated" else ""
