"""Page one of one machine by itself: how fast it trains each work, and what a ranked figure still needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.record import FULL_PRECISION
from report.analysis import Analysis
from report.compare.cells import Cell, time_breakdown
from report.compare.precisions import Speedup
from report.expected.expected import Expected
from report.page.names import work
from report.page.pictures import TimePicture, time_picture
from report.page.systems import Systems
from report.page.values import Quantity, quantity
from report.stats.intervals import FLOOR_RUNS
from report.trials.key import LOADER_ALONE

MOST_ROWS = 8
STRICT = "fp32-ieee"
"""The baseline of a gain, where it was measured."""


@dataclass(frozen=True, slots=True)
class Row:
    """One work in one precision; `needs` are names of what is missing before it is ranked."""

    name: str
    cell: Cell
    waits: float | None
    gain: Quantity | None
    expected: Quantity
    """Of what the card should do by other cards' records; its range is of nine in ten cards."""
    needs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Measured:
    """The picture, and the table under it."""

    picture: TimePicture | None
    rows: tuple[Row, ...]
    rows_left: int


def measured(analysis: Analysis, systems: Systems) -> Measured:
    """Of this machine's cells, the leading session's first."""
    cells = leading(analysis)
    rows = [_row(cell, cells, analysis) for cell in cells[:MOST_ROWS]]
    works = {id(cell) for cell in cells}
    groups = [group for group in analysis.groups if any(id(entry.cell) in works for entry in group.entries)]
    return Measured(
        time_picture(groups, systems, analysis.question.should),
        tuple(rows),
        max(0, len(cells) - MOST_ROWS),
    )


def leading(analysis: Analysis) -> list[Cell]:
    """The leading session's cells on the page, those that train before those that only load."""
    own = [cell for cell in analysis.measured_here if cell.session == analysis.lead]
    cells = own or analysis.measured_here
    return sorted(cells, key=lambda cell: cell.key.protocol == LOADER_ALONE)


def gain_of(cell: Cell, gains: Sequence[Speedup]) -> Quantity | None:
    """How many times as fast as in 32 bits, the strict baseline before others; null for 32 bits itself."""
    own = [gain for gain in gains if gain.of is cell and cell.key.precision not in FULL_PRECISION]
    strict = [gain for gain in own if gain.over.key.precision == STRICT] or own
    return quantity(strict[0].ratio) if strict else None


def _row(cell: Cell, among: Sequence[Cell], analysis: Analysis) -> Row:
    breakdown = time_breakdown(cell)
    return Row(
        name=work(cell, among),
        cell=cell,
        waits=breakdown.input_wait if breakdown else None,
        gain=gain_of(cell, analysis.speedups),
        expected=_expected(cell, analysis.question.should),
        needs=_needs(cell),
    )


def _expected(cell: Cell, should: Mapping[str, Expected]) -> Quantity:
    said, speed = should.get(cell.trials[0].path), cell.throughput.mean
    if said is None or speed is None:
        return Quantity(None, "ratio")
    low, high = speed / said.high_90, speed / said.low_90
    return Quantity(speed / said.value, "ratio", low, high, tied=low <= 1 <= high)


def _needs(cell: Cell) -> tuple[str, ...]:
    needs = []
    if cell.key.data_source == "generated":
        needs.append("real-data")
    if cell.verdict == "unproven":
        needs.append("longer")
    if cell.throughput.n < FLOOR_RUNS:
        needs.append("runs")
    return tuple(needs)
