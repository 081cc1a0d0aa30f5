"""Each workload: what it learned as curves, all figures in a table, and what its trials did over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import nan
from statistics import fmean

from harness.record import Telemetry, TraceStats
from harness.record.vocabulary.workload import read_workload
from report import text
from report.analysis import Analysis
from report.charts.curves import CurveLine, CurvePanel, CurvePoints, Curves
from report.compare.batch_sweeps import BatchSweep, batch_sweeps
from report.compare.cells import Cell
from report.page.filters import GIB, of_each_key, work_name
from report.page.pictures import panels_picture, workload_panels
from report.page.values import NamedSystem, Picture, Systems, rate_unit
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

MOST_TIMELINES = 4
"""Pictures of trials over time, on the whole page."""
MOST_TRIALS, MOST_CARDS = 10, 8
MOST_STEPS, MOST_VALUES = 90, 60
OUTLIER = 2.0
"""Times the step that 95 of 100 stay below: longer steps are drawn at that height."""
DOUBTFUL = 1
"""The stroke of a trial with a cause."""


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
    over_time: tuple[tuple[str, NamedSystem, Picture], ...]
    """The trials of a line, by its name."""


def view(analysis: Analysis, systems: Systems) -> tuple[WorkloadView, ...] | None:
    """Null where nothing was measured."""
    by_workload = grouped_by(analysis.page_cells, lambda cell: cell.key.workload)
    pictures = _timelines_of(analysis, systems)
    found = tuple(
        _workload(workload, cells, f"workload-{place}", analysis, systems, pictures.get(workload, ()))
        for place, (workload, cells) in enumerate(by_workload.items(), 1)
    )
    return found or None


def _workload(
    workload: str,
    cells: Sequence[Cell],
    anchor: str,
    analysis: Analysis,
    systems: Systems,
    pictures: Sequence[tuple[str, NamedSystem, Picture]],
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
    shown = workload_panels(cells, analysis, systems)
    return WorkloadView(
        anchor=anchor,
        title=_own_words(cells, "title") or (own.title if own else text.clean(workload, 60)),
        about=_own_words(cells, "about") or (own.about if own else ""),
        curves=panels_picture(shown, name=f"{anchor}-more") if shown else None,
        rows=tuple((work_name(cell, kinds), cell) for cell in cells),
        unit=rate_unit(cells[0]),
        batches=tuple(batch_sweeps(mine, failed)),
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


def _timelines_of(analysis: Analysis, systems: Systems) -> dict[str, list[tuple[str, NamedSystem, Picture]]]:
    """Return this machine's lines of each workload, doubtful trials first."""
    doubtful = sorted(analysis.own_cells, key=lambda cell: not any(trial.causes for trial in cell.trials))
    found: dict[str, list[tuple[str, NamedSystem, Picture]]] = {}
    for number, cell in enumerate(doubtful[:MOST_TIMELINES], 1):
        system = systems.of(cell)
        picture = timelines(cell, f"trials-{number}", system.slot)
        found.setdefault(cell.key.workload, []).append((work_name(cell, analysis.own_cells), system, picture))
    return found


def timelines(cell: Cell, name: str, slot: int) -> Picture:
    """Return a line's trials over each other, the doubtful ones first."""
    trials = [trial for trial in cell.trials if trial.record.measurement and trial.summary]
    chosen = sorted(trials, key=lambda trial: (not trial.causes, trial.repeat))[:MOST_TRIALS]
    watched = [(trial, read) for trial in chosen if (read := trial.record.telemetry) and read.times.values()]
    traces: dict[tuple[str, str], list[CurveLine]] = {}
    for trial, read in watched:
        for title, unit, stats in _traces_read(read):
            if stats and any(value is not None for value in stats.mean.values()):
                size = GIB if unit == "GiB" else 1
                points = tuple((at, value / size) for at, value in _thin_readings(read, stats.mean.values()))
                traces.setdefault((title, unit), []).append(_trial_line(trial, points, slot))
    windows = max((read.windows for _, read in watched), key=len, default=())
    panels = [_steps_panel(chosen, slot)]
    for (title, unit), lines in traces.items():
        zero = unit not in ("MHz", "°C")
        panels.append(CurvePanel(title, f"{unit} by second", tuple(lines), zero=zero, shaded=windows))
    return Picture(name, Curves(tuple(panels)), "; ".join(f"{panel.title}, {panel.note}" for panel in panels))


def _trial_line(trial: TrialResult, points: CurvePoints, slot: int) -> CurveLine:
    return CurveLine("", points, slot, stroke=DOUBTFUL if trial.causes else 0)


def _steps_panel(trials: Sequence[TrialResult], slot: int) -> CurvePanel:
    """Return the least and the most of a few steps at a time; the background of cut steps is pale."""
    lines, cut = [], 0
    for trial in trials:
        measured, summary = trial.record.measurement, trial.summary
        assert measured is not None and summary is not None
        each = measured.step_us.steps_per_value
        took = [value / 1e3 / each for value in measured.step_us.values()]
        top = OUTLIER * sorted(took)[int(0.95 * (len(took) - 1))] if took else 0.0
        points: list[tuple[float, float]] = []
        for start, stop in _buckets(len(took), MOST_STEPS):
            middle, part = (start + stop) / 2 * each, took[start:stop]
            points += ((middle, min(*part, top)), (middle, min(max(part), top)))
        lines.append(_trial_line(trial, tuple(points), slot))
        cut = max(cut, summary.steady.first_step)
    shaded = ((0.0, float(cut)),) if cut else ()
    return CurvePanel("step time", "ms by step", tuple(lines), shaded=shaded)


def _traces_read(telemetry: Telemetry) -> Iterator[tuple[str, str, TraceStats | None]]:
    """Yield what may have been read, by its name and unit."""
    for card in telemetry.cards[:MOST_CARDS]:
        before = f"card {card.index} " if len(telemetry.cards) > 1 else ""
        yield f"{before}clock", "MHz", card.sm_mhz
        yield f"{before}temperature", "°C", card.temperature_c
        yield f"{before}power", "W", card.power_watts
        yield f"{before}at work", "%", card.utilization_percent
        yield f"{before}memory", "GiB", card.memory_used_bytes
    yield "processor at work", "%", telemetry.cpu.utilization_percent
    if not telemetry.cards:
        yield "processor clock", "MHz", telemetry.cpu.mhz
        yield "processor temperature", "°C", telemetry.cpu.temperature_c
    yield "host memory", "GiB", telemetry.cpu.memory_used_bytes


def _thin_readings(read: Telemetry, values: Sequence[float | None]) -> CurvePoints:
    """Return means of equal counts of readings by their time, and a gap where nothing is known."""
    pairs, points = list(zip(read.times.values(), values, strict=False)), []
    for start, stop in _buckets(len(pairs), MOST_VALUES):
        known = [value for _, value in pairs[start:stop] if value is not None]
        at = fmean(time or 0.0 for time, _ in pairs[start:stop])
        points.append((at, fmean(known) if known else nan))
    return tuple(points)


def _buckets(count: int, most: int) -> list[tuple[int, int]]:
    parts = min(count, most)
    return [(place * count // parts, (place + 1) * count // parts) for place in range(parts)]
