"""What a card that was named should do: figures from published ones, which judge and rank nothing."""

from __future__ import annotations

from dataclasses import dataclass

from report.analysis import Analysis
from report.expected.asked import Asked, AskedRow
from report.expected.expected import Expected
from report.page.systems import Systems
from report.page.values import Quantity

MOST_ROWS = 24


@dataclass(frozen=True, slots=True)
class ExpectedRow:
    """One task: the value with its 80 and 90 % ranges, and the published figures of the nearest cards."""

    expected: Expected
    of_eight: Quantity
    of_nine: Quantity
    beside: tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True)
class ExpectedCard:
    """What was asked, and its rows with the narrowest ranges."""

    asked: Asked
    rows: tuple[ExpectedRow, ...]


@dataclass(frozen=True, slots=True)
class ExpectedView:
    """The cards that were asked for."""

    cards: tuple[ExpectedCard, ...]


def view(analysis: Analysis, systems: Systems) -> ExpectedView | None:
    """Null where no card was asked for."""
    asked = analysis.question.asked
    each = MOST_ROWS // max(1, len(asked))
    cards = tuple(ExpectedCard(one, tuple(map(_row, one.rows[:each]))) for one in asked)
    return ExpectedView(cards) if cards else None


def _row(row: AskedRow) -> ExpectedRow:
    one, unit = row.expected, row.expected.task.unit
    return ExpectedRow(
        one,
        of_eight=Quantity(one.value, unit, one.low_80, one.high_80),
        of_nine=Quantity(one.value, unit, one.low_90, one.high_90),
        beside=tuple((card, Quantity(value, unit)) for card, value in row.beside),
    )
