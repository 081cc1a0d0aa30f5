"""Whose the time is: card or box. What each line waits for, what differs between the hosts, what each is."""

from __future__ import annotations

from collections.abc import Sequence

from harness.summary import machine_remarks
from report import hosts, names, split, words
from report.contests import Contest
from report.frame import Row
from report.stats import Cell
from report.view import Table, WhoseView

MOST_SAID = 6
MOST_MACHINES = 6


def view(contests: Sequence[Contest], rows: Sequence[Row]) -> WhoseView | None:
    """What can be said of the lines that are drawn, the leading session's machines first."""
    cells = [line.cell for contest in contests for line in contest.lines]
    cells.sort(key=lambda cell: -(cell.input_share.mean or 0.0))
    machines = hosts.first_of(rows)
    said = _said(cells)[:MOST_SAID]
    if not said:
        said = _plain(cells)
    shown = list(machines.values())[:MOST_MACHINES]
    if not said and not shown:
        return None
    differences = hosts.apart(shown)
    if differences is not None:
        fields = [row[0] for row in differences.rows if not row[0].startswith("device ")]
        if fields:
            said = (
                *said,
                f"The boxes around the cards differ too, in {words.clean(', '.join(fields), 400)}.",
            )
    return WhoseView(said, differences, remarks(rows))


def _said(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Of each card the line that waits most, and of how many more the same can be said."""
    units: dict[str, list[tuple[Cell, str]]] = {}
    for cell in cells:
        bound = next((row.bound for row in cell.rows if row.bound), "")
        if bound:
            units.setdefault(names.unit_of(cell), []).append((cell, bound))
    found = []
    for unit, bound_lines in units.items():
        cell, bound = bound_lines[0]
        key = cell.key
        work = f"{names.model(key.model)} in {key.precision}, {key.data_mode} data"
        more = len(bound_lines) - 1
        tail = f" {words.count(more, 'more line')} of it waited too, none longer." if more else ""
        found.append(f"{unit}, {work}: {bound}{tail}")
    return tuple(found)


def _plain(cells: Sequence[Cell]) -> tuple[str, ...]:
    """Where no line is bound by its host: how little they waited."""
    waits = [found.input_wait for cell in cells if (found := split.split(cell)) is not None]
    if not waits:
        return ("How long the lines waited for input was not measured.",)
    most = max(waits)
    waited = f"for more than {words.percent(most)} of its time" if most >= 0.005 else "at all"
    return (
        f"The card's, as far as the clocks tell: no line waited for input {waited}, "
        "so a faster loader shortens nothing here.",
    )


def remarks(rows: Sequence[Row]) -> Table | None:
    """What belongs to a machine and not to a trial, said once for each."""
    found = []
    for machine in hosts.first_of(rows).values():
        said = [*machine_remarks(machine)]
        if said:
            told = "\n".join(words.clean(one.replace("-", " ", 1), 160) for one in said)
            found.append((words.clean(machine.label, 40), told))
    if not found:
        return None
    return Table("What is to be known of each machine.", ("Machine", "Remarks"), tuple(found[:40]))
