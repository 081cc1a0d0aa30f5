"""What a card that was named should do: figures from published ones, which judge and rank nothing."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.expected.asked import AskedRow
from report.expected.refusal import Refusal
from report.page.systems import Systems
from report.page.values import Quantity

MOST_ROWS = 24


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """One task: the value with 80 and 90 % ranges, and the nearest cards' published figures."""

    name: str
    program: str
    unit: str
    of_eight: Quantity
    of_nine: Quantity
    stands_on: str
    works: int
    beside: tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class ExpectedView:
    """The card, its tasks with the narrowest ranges, and what to measure for narrower ones."""

    card: str
    rows: tuple[ExpectedRow, ...]
    rows_left: int
    refused: tuple[tuple[Refusal, int], ...]
    to_measure: tuple[tuple[str, str], ...]
    """Program and work."""
    factors: tuple[float, float] | None


def view(analysis: Analysis, systems: Systems) -> ExpectedView | None:
    """Of the card that was asked for; null where none was."""
    asked = analysis.question.asked
    if asked is None:
        return None
    return ExpectedView(
        card=asked.card,
        rows=tuple(_row(row) for row in asked.rows[:MOST_ROWS]),
        rows_left=max(0, len(asked.rows) - MOST_ROWS),
        refused=asked.refused,
        to_measure=tuple((task.program, f"{task.work} in {task.precision}") for task in asked.to_measure),
        factors=asked.factors,
    )


def _row(row: AskedRow) -> ExpectedRow:
    one, task = row.expected, row.expected.task
    batch = f", batch {task.batch}" if task.batch else ", the batch that fits"
    return ExpectedRow(
        name=f"{task.work} in {task.precision}{batch}",
        program=task.program,
        unit=task.unit,
        of_eight=Quantity(one.value, task.unit, one.low_80, one.high_80),
        of_nine=Quantity(one.value, task.unit, one.low_90, one.high_90),
        stands_on=one.stands_on,
        works=one.works,
        beside=tuple((card, Quantity(value, task.unit)) for card, value in row.beside),
    )
