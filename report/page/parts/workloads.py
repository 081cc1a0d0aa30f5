"""Each workload: what it learned as curves, and all figures in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.vocabulary.workload import read_workload
from report import text
from report.analysis import Analysis
from report.compare.batch_sweeps import BatchSweep, batch_sweeps
from report.compare.cells import Cell
from report.page.filters import of_each_key, work_name
from report.page.pictures import learning_panel, panels_picture
from report.page.values import Picture, Systems, rate_unit
from report.trials.key import grouped_by


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload: its curves, then tables."""

    anchor: str
    title: str
    about: str
    curves: Picture | None
    rows: tuple[tuple[str, Cell], ...]
    """Each cell by the name of its work."""
    unit: str
    batches: tuple[BatchSweep, ...]


def view(analysis: Analysis, systems: Systems) -> tuple[WorkloadView, ...] | None:
    """Null where nothing was measured."""
    by_workload = grouped_by(analysis.page_cells, lambda cell: cell.key.workload)
    found = tuple(
        _workload(workload, cells, f"workload-{place}", analysis, systems)
        for place, (workload, cells) in enumerate(by_workload.items(), 1)
    )
    return found or None


def _workload(
    workload: str,
    cells: Sequence[Cell],
    anchor: str,
    analysis: Analysis,
    systems: Systems,
) -> WorkloadView:
    sessions = {(cell.session, cell.machine) for cell in analysis.page_cells}
    mine = [
        cell
        for cell in analysis.cells
        if cell.key.workload == workload and (cell.session, cell.machine) in sessions
    ]
    failed = [trial for trial in analysis.trials if trial.failure and trial.key.workload == workload]
    kinds = of_each_key(cells)
    own = read_workload(workload)
    learned = learning_panel(cells, analysis.evidence.claims.workload_curves(workload), systems)
    return WorkloadView(
        anchor=anchor,
        title=_own_words(cells, "title") or (own.title if own else text.clean(workload, 60)),
        about=_own_words(cells, "about") or (own.about if own else ""),
        curves=panels_picture((learned,), name=f"{anchor}-more") if learned else None,
        rows=tuple((work_name(cell, kinds), cell) for cell in cells),
        unit=rate_unit(cells[0]),
        batches=tuple(batch_sweeps(mine, failed)),
    )


def _own_words(cells: Sequence[Cell], field: str) -> str:
    """What a workload's own file says of itself, where all of its trials here say the same."""
    said = {getattr(trial.record.measurement, field, None) for cell in cells for trial in cell.trials}
    words = said.pop() if len(said) == 1 else None
    return text.clean(words, 300) if words else ""
