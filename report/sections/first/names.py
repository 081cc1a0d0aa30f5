"""What page one calls things, and the cells that it speaks of."""

from __future__ import annotations

from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell


def own_cells(analysis: Analysis) -> list[Cell]:
    """This machine's cells on the page."""
    return [entry.cell for group in analysis.groups for entry in group.entries if entry.own]


def work(cell: Cell) -> str:
    """'ResNet-18 in fp32-ieee'"""
    return f"{text.model_name(cell.key.model)} in {cell.key.precision}"


def between(low: float, high: float) -> str:
    """'1.49 to 1.91 times'"""
    return f"{text.times(low)} to {text.times(high)} times"
