"""What limits the speed: the card, its input, or the rest of the computer."""

from __future__ import annotations

from collections.abc import Sequence

from report.comparisons import time_breakdown
from report.comparisons.cells import Cell, unit_of
from report.comparisons.groups import ComparisonGroup
from report.sections.ran.environment import MOST_MACHINES, apart, first_of, remarks
from report.sections.view import BottleneckView
from report.text import clean, count, joined, model_name, percent
from report.trials.trial import Trial

MOST_SAID = 6


def bottleneck(groups: Sequence[ComparisonGroup], trials: Sequence[Trial]) -> BottleneckView | None:
    """What can be said of the lines that are drawn, the leading session's machines first."""
    cells = [entry.cell for group in groups for entry in group.entries]
    if not cells:
        return None
    cells.sort(key=lambda cell: -(cell.input_share.mean or 0.0))
    machines = first_of(trials)
    sentences = _waiting_lines(cells)[:MOST_SAID]
    if not sentences:
        sentences = _waiting_least(cells)
    shown = list(machines.values())[:MOST_MACHINES]
    if not sentences and not shown:
        return None
    boxes = boxes_differ(trials)
    return BottleneckView((*sentences, boxes) if boxes else sentences, apart(shown), remarks(trials))


def boxes_differ(trials: Sequence[Trial]) -> str:
    """In what the machines differ besides their cards, in a sentence; empty where in nothing."""
    differences = apart(list(first_of(trials).values())[:MOST_MACHINES])
    rows = differences.rows if differences is not None else ()
    fields = [
        f"{row[0]} ({row[1]} against {row[2]})" if len(row) == 3 and len(rows) <= MOST_SAID else row[0]
        for row in rows
        if not row[0].startswith("device ")
    ]
    return f"The computers differ in {clean(joined(fields), 400)}." if fields else ""


def _waiting_lines(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Of each card the line that waits most, and of how many more the same can be said."""
    units: dict[str, list[tuple[Cell, str]]] = {}
    for cell in cells:
        bound = next((trial.bottleneck for trial in cell.trials if trial.bottleneck), "")
        if bound:
            units.setdefault(unit_of(cell), []).append((cell, bound))
    sentences = []
    for unit, bound_lines in units.items():
        cell, bound = bound_lines[0]
        key = cell.key
        work = f"{model_name(key.model)} in {key.precision}, {key.data_mode} data"
        more = len(bound_lines) - 1
        tail = f" {count(more, 'more line')} of it waited too, none longer." if more else ""
        sentences.append(f"{unit}, {work}: {bound}{tail}")
    return tuple(sentences)


def _waiting_least(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Where no line is bound by its host: how little they waited."""
    waits = [
        breakdown.input_wait
        for cell in cells
        if (breakdown := time_breakdown.time_breakdown(cell)) is not None
    ]
    if not waits:
        return ("How long the lines waited for input was not measured.",)
    most = max(waits)
    waited = f"for more than {percent(most)} of its time" if most >= 0.005 else "at all"
    return (
        f"The card's, as far as the clocks tell: no line waited for input {waited}, "
        "so a faster loader shortens nothing here.",
    )
