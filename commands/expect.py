"""What cards should do by what others published and recorded: this one, one by its name, an offer's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import permutations
from pathlib import Path

from harness.errors import UserError
from harness.machine.fingerprint import user_state_folder
from harness.plan import own_file
from harness.record.published.cards import Card, find_card, load_cards
from harness.record.published.program import Program
from report.analysis import Analysis
from report.buying.workload_mix import WorkLine
from report.compare.cells import Cell
from report.expected.expected import CardExpectation, ExpectationModel, ExpectedValue, expectation_of, kept
from report.expected.figures import (
    TIMES,
    PublishedRow,
    TrainingTask,
    read_tables,
    software_of,
    table_row,
    task_of,
)
from report.expected.relative import TRAINED, CardsOnPaper, relative_time
from report.expected.specs import CardSpecs, load_specs, named
from report.page import render

Rows = Sequence[tuple[Cell, PublishedRow]]
WORKS_SHOWN = 2
"""In the terminal, of as many programs."""


def expect_cards(root: Path, analysis: Analysis, name: str) -> tuple[CardExpectation, ...]:
    """Return what is expected of a card by its name, else of the cards of offers."""
    cards = load_cards(root)
    specs = load_specs(root, cards)
    wanted = [_find_specs(name, specs, cards)] if name else _offered_specs(analysis, specs, cards)
    if not wanted:
        return ()
    own = {card.name for card in wanted}
    rows = [row for _, row in _record_rows(root, analysis.cells) if row.card not in own]
    model = kept(root, cards, user_state_folder(), rows)
    return tuple(expectation_of(model, card) for card in wanted)


def say_expectation(root: Path, name: str) -> bool:
    """Print in at most six lines what published figures let a card do; return whether they say anything."""
    cards = load_cards(root)
    specs = load_specs(root, cards)
    card = _find_specs(name, specs, cards)
    found = expectation_of(kept(root, cards, user_state_folder()), card)
    if not found.rows:
        return False
    sources = {task_of(row).key: row.source for table in read_tables(root).values() for row in table}
    by_program = {row.task.program: row for row in reversed(found.rows)}
    rows = sorted(by_program.values(), key=found.rows.index)[:WORKS_SHOWN]
    given = {"card": card.name, "rows": rows, "works": len(found.rows), "sources": sources}
    print(render.terminal_text("expectation.md", **given))
    return True


def _find_specs(name: str, specs: Mapping[str, CardSpecs], cards: Sequence[Card]) -> CardSpecs:
    """Return the card of that name, or of a driver's name for it; raises UserError with the nearest names."""
    try:
        return named(name, specs)
    except UserError:
        # 'H200' may be either of two cards that are sold; 'NVIDIA H200' is what the driver calls one of them.
        sold = find_card(name, cards)
        if sold is None or name in sold.name:
            raise
        return named(sold.name, specs)


def _offered_specs(
    analysis: Analysis, specs: Mapping[str, CardSpecs], cards: Sequence[Card]
) -> list[CardSpecs]:
    """Return the cards of offers that the tables know."""
    specs_by_card: dict[str, CardSpecs] = {}
    offers = analysis.costs.offers if analysis.costs else ()
    for one in offers:
        with suppress(UserError):
            card = _find_specs(one.device if one.measured else one.card, specs, cards)
            specs_by_card[card.name] = card
    return list(specs_by_card.values())


def expected_speeds(root: Path, analysis: Analysis) -> dict[str, ExpectedValue]:
    """Return samples per second by a trial's path, for leading cells whose work enough other cards did."""
    rows = _record_rows(root, analysis.cells)
    asked = [(cell, row) for cell, row in rows if cell.session == analysis.lead]
    if not asked:
        return {}
    model = _tasks_model(root, rows, {task_of(row).key for _, row in asked}, {row.card for _, row in asked})
    said = {
        cell.trials[0].path: _sample_rate(model, model.specs[row.card], cell, row)
        for cell, row in asked
        if task_of(row).key in model.tasks
    }
    return {path: one for path, one in said.items() if one}


def paper_speeds(root: Path, analysis: Analysis) -> CardsOnPaper:
    """Return what is published of the cards of offers: how fast each should be beside each other."""
    costs = analysis.costs
    if costs is None or all(all(line.cells) for line in (*costs.lines, *costs.left_out)):
        return CardsOnPaper()
    known = _record_rows(root, analysis.cells)
    rows = {cell.trials[0].path: row for cell, row in known}
    lines = {line.name: line for line in (*costs.lines, *costs.left_out)}
    tasks = {name: _line_task(line, rows) for name, line in lines.items()}
    labels = {
        name: task.precision if (task := tasks[name]) else line.precision for name, line in lines.items()
    }
    model = _tasks_model(root, known, {task.key for task in tasks.values() if task}, set())
    specs, unknown = {}, {}
    cards = load_cards(root)
    for offer in costs.cards:
        try:
            specs[offer.card] = _find_specs(
                offer.device if offer.measured else offer.card, model.specs, cards
            )
        except UserError as error:
            unknown[offer.card] = error.remedy.partition(", or give")[0] if "use " in error.remedy else ""
    times = {
        (card, over, name): relative_time(model, specs[card], specs[over], precision, tasks[name])
        for name, label in labels.items()
        for precision in TRAINED & {label}
        for card, over in permutations(specs, 2)
    }
    figures = model.fit.figures
    return CardsOnPaper(specs, unknown, times, len(figures), figures.card.nunique())


def _line_task(line: WorkLine, rows: Mapping[str, PublishedRow]) -> TrainingTask | None:
    """Return the published work that a line is of; null where it is of none."""
    paths = (cell.trials[0].path for cell in line.cells if cell)
    return next((task_of(rows[path]) for path in paths if path in rows), None)


def _tasks_model(root: Path, rows: Rows, tasks: set[str], less: set[str]) -> ExpectationModel:
    """Return the model of the tables, and of our records of some tasks on other cards."""
    more = [row for _, row in rows if row.card not in less and task_of(row).key in tasks]
    return kept(root, load_cards(root), user_state_folder(), more)


def _sample_rate(
    model: ExpectationModel, card: CardSpecs, cell: Cell, row: PublishedRow
) -> ExpectedValue | None:
    """Return what a card should do of a row's work, in the unit of the cell's own rate."""
    said, speed = model.ask(card, task_of(row), software=software_of(row)), cell.throughput.mean
    if not isinstance(said, ExpectedValue) or speed is None:
        return None
    rate, *ends = [
        speed * (row.value / one if row.unit in TIMES else one / row.value)
        for one in (said.value, said.low, said.high)
    ]
    return replace(said, value=rate, low=min(ends), high=max(ends))


def _record_rows(root: Path, cells: Iterable[Cell]) -> Rows:
    """Return the ranked figures of programs with a table, of one device of a card on paper, as its rows."""
    cards, programs, rows = load_cards(root), _table_programs(root), []
    for cell in cells:
        record, speed = cell.trials[0].record, cell.throughput.mean
        ran = record.measurement.program if record.measurement else None
        program, card = programs.get(ran.name) if ran else None, find_card(cell.trials[0].device_name, cards)
        if program and card and speed and cell.ranked and cell.key.gpus == cell.key.nodes == 1:
            row = table_row(record, program, card.name, speed)
            rows += [(cell, row)] if row else []
    return rows


def _table_programs(root: Path) -> dict[str, Program]:
    """Return the programs that have a table, by their names."""
    read = [own_file.read_program(path.read_bytes(), path.name) for path in root.glob(own_file.PROGRAMS)]
    return {program.name: program for program in read if program.table}
