"""What a card should do by what others published and this clone's records hold."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from harness.machine import state_folder
from harness.record.published.cards import find, load_cards
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.key import same_but
from report.expected.asked import Asked, asked_of
from report.expected.expected import Expected, Measured, kept
from report.expected.figures import Row, task_of
from report.expected.model import FEWEST_CARDS
from report.expected.specs import load_specs, named

MOST_LINES = 3
OWN = "gpudyno"
"""The program of records, as a table names one."""

_work = same_but("precision", "batch_size", within=("length",))


def expected_of(root: Path, analysis: Analysis, name: str) -> Asked:
    """What is expected of a card by its name, from the tables and the records."""
    cards = load_cards(root)
    card = named(name, load_specs(root, cards))
    rows = [row for _, row in _rows(root, analysis.cells)]
    model = kept(root, cards, state_folder(), [row for row in rows if row.card != card.name])
    measured = [Measured(task_of(row), row.value, row.software) for row in rows if row.card == card.name]
    return asked_of(model, card, measured)


def should(root: Path, analysis: Analysis) -> dict[str, Expected]:
    """By a trial's path, of the leading cells whose very work enough other cards on record did."""
    rows = list(_rows(root, analysis.cells))
    cards: dict[str, set[str]] = {}
    for _, row in rows:
        cards.setdefault(task_of(row).key, set()).add(row.card)
    asked = [
        (cell, row)
        for cell, row in rows
        if cell.session == analysis.lead and len(cards[task_of(row).key] - {row.card}) >= FEWEST_CARDS
    ]
    if not asked:
        return {}
    own = {row.card for _, row in asked}
    others = tuple(row for _, row in rows if row.card not in own)
    model = kept(root, load_cards(root), state_folder(), others)
    said = {
        cell.trials[0].path: model.ask(model.specs[row.card], task_of(row), software=row.software)
        for cell, row in asked
    }
    return {path: one for path, one in said.items() if isinstance(one, Expected)}


def _rows(root: Path, cells: Iterable[Cell]) -> Iterable[tuple[Cell, Row]]:
    """Records as rows of a table: one device of a card on paper, with a figure that is ranked."""
    cards = load_cards(root)
    for cell in cells:
        card, speed = find(cell.trials[0].device_name, cards), cell.throughput.mean
        if card and speed and cell.ranked and cell.key.gpus == cell.key.nodes == 1:
            yield cell, _row(cell, card.name, speed)


def _row(cell: Cell, card: str, speed: float) -> Row:
    return Row(
        source=cell.session,
        licence="CC0-1.0",
        commit="",
        path=cell.trials[0].path,
        program=OWN,
        work=f"{cell.key.model} {hashlib.sha256(repr(_work(cell)).encode()).hexdigest()[:8]}",
        precision=cell.key.precision,
        batch=cell.key.batch_size,
        batch_rule="fixed",
        card=card,
        software=cell.stack.image,
        unit="samples/s",
        value=speed,
    )


def lines(asked: Asked | None) -> list[str]:
    """What the terminal says of a card that was named: its narrowest ranges."""
    if asked is None:
        return []
    said = [f"expected: of {asked.card} in {text.count(len(asked.rows), 'task')}; in full on the page"]
    for row in asked.rows[:MOST_LINES]:
        one = row.expected
        said.append(
            f"          {one.task.work} in {one.task.precision}: {text.number(one.value)} {one.task.unit} "
            f"({text.number(one.low_90)} to {text.number(one.high_90)} in nine of ten cards)"
        )
    return said
