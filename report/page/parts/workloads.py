"""Each workload: its times in one picture, small pictures below, and all figures in a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.vocabulary.workload import read_workload
from report import text
from report.analysis import Analysis
from report.compare.batch_sweeps import BatchSweep, batch_sweeps
from report.compare.cells import Cell, ToTarget, targets_of, to_target
from report.compare.groups import ComparisonGroup, GroupEntry
from report.compare.scaling import scalings
from report.page import panels
from report.page.filters import of_each_key, work
from report.page.one.measured import STRICT, gain_of
from report.page.parts.frameworks import FrameworkWork, frameworks
from report.page.pictures import MOST_BELOW, TimePicture, time_picture
from report.page.timelines import timelines
from report.page.values import NamedSystem, Picture, Quantity, Systems, rate_unit
from report.trials.key import grouped_by

MOST_TIMELINES = 4
"""Pictures of trials over time, on the whole page."""


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """One workload: pictures first, then tables."""

    anchor: str
    title: str
    about: str
    timing: TimePicture | None
    panels: Picture | None
    rows: tuple[tuple[str, GroupEntry, Quantity | None], ...]
    """The name of each line, and what it gains over 32 bits."""
    unit: str
    batches: tuple[BatchSweep, ...]
    targets: tuple[tuple[str, Cell, ToTarget], ...]
    """By its name how long a line took to a quality."""
    over_time: tuple[tuple[str, NamedSystem, Picture], ...]
    """The trials of a line, by its name."""


@dataclass(frozen=True, slots=True)
class WorkloadsView:
    """All workloads, and what several frameworks did alike."""

    workloads: tuple[WorkloadView, ...]
    frameworks: tuple[FrameworkWork, ...]


def view(analysis: Analysis, systems: Systems) -> WorkloadsView | None:
    """Null where nothing was measured."""
    by_workload = grouped_by(analysis.groups, lambda group: group.base.workload)
    if not by_workload:
        return None
    pictures = _over_time(analysis, systems)
    return WorkloadsView(
        tuple(
            _workload(workload, groups, place, analysis, systems, pictures.get(workload, ()))
            for place, (workload, groups) in enumerate(by_workload.items(), 1)
        ),
        frameworks(analysis),
    )


def _workload(
    workload: str,
    groups: Sequence[ComparisonGroup],
    place: int,
    analysis: Analysis,
    systems: Systems,
    pictures: Sequence[tuple[str, NamedSystem, Picture]],
) -> WorkloadView:
    anchor = f"workload-{place}"
    cells = [entry.cell for group in groups for entry in group.entries]
    sessions = {(cell.session, cell.machine) for cell in analysis.grouped}
    mine = [
        cell
        for cell in analysis.cells
        if cell.key.workload == workload and (cell.session, cell.machine) in sessions
    ]
    failed = [trial for trial in analysis.trials if trial.failure and trial.key.workload == workload]
    kinds = of_each_key(cells)
    families, sweeps = scalings(mine), batch_sweeps(mine, failed)
    entries = [(group, entry) for group in groups for entry in group.entries]
    own = read_workload(workload)
    over_strict = [gain for gain in analysis.speedups if gain.over.key.precision == STRICT]
    return WorkloadView(
        anchor=anchor,
        title=_own_words(cells, "title") or (own.title if own else text.clean(workload, 60)),
        about=_own_words(cells, "about") or (own.about if own else ""),
        timing=time_picture(groups, systems, f"{anchor}-time", MOST_BELOW),
        panels=panels.together(groups, cells, families, analysis, systems, f"{anchor}-more"),
        rows=tuple(
            (
                work(entry.cell, kinds),
                entry,
                gain_of(entry.cell, over_strict),
            )
            for group, entry in entries
        ),
        unit=rate_unit(cells[0]),
        batches=tuple(sweeps),
        targets=tuple(
            (work(entry.cell, kinds), entry.cell, found)
            for group, entry in entries
            for target in targets_of([entry.cell])
            if (found := to_target(entry.cell, target)).runs
        ),
        over_time=tuple(pictures),
    )


def _own_words(cells: Sequence[Cell], field: str) -> str:
    """What a workload's own file says of itself, where all of its trials here say the same."""
    said = {getattr(trial.record.measurement, field, None) for cell in cells for trial in cell.trials}
    words = said.pop() if len(said) == 1 else None
    return text.clean(words, 300) if words else ""


def quality_unit(cell: Cell) -> str:
    """In what the quality of a cell is written: 'accuracy', 'perplexity'."""
    return next((trial.quality_name for trial in cell.trials if trial.quality_name), "")


def _over_time(analysis: Analysis, systems: Systems) -> dict[str, list[tuple[str, NamedSystem, Picture]]]:
    """Return this machine's lines of each workload, doubtful trials first."""
    doubtful = sorted(analysis.measured_here, key=lambda cell: not any(trial.causes for trial in cell.trials))
    found: dict[str, list[tuple[str, NamedSystem, Picture]]] = {}
    for number, cell in enumerate(doubtful[:MOST_TIMELINES], 1):
        system = systems.of(cell)
        picture = timelines(cell, f"trials-{number}", system.slot)
        found.setdefault(cell.key.workload, []).append((work(cell, analysis.grouped), system, picture))
    return found
