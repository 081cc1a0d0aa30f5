"""What several verbs ask of the records: their table of trials, what a page stands on, a session's cells."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pandas import DataFrame

from harness.record.claims import ClaimSet
from harness.record.store import Shelf, Stored
from report.comparisons import cells, groups
from report.comparisons.cells import Cell
from report.page.build import leading
from report.trials.reading import cards_of, read
from report.trials.table import trials_of


def table_of(shelf: Shelf, root: Path, *, from_raw: bool = False) -> DataFrame:
    """The table of all trials, held against the cards of `root`; `from_raw` believes no stored summary."""
    records = [_bare(stored) for stored in shelf.records] if from_raw else shelf.records
    return read(records, cards_of(root))


def _bare(stored: Stored) -> Stored:
    return Stored(stored.path, stored.record.model_copy(update={"summary": None}))


def stands_on(
    shelf: Shelf,
    root: Path,
    claims: ClaimSet,
    *,
    session: str | None,
    machine: str | None,
    baseline: str | None,
    now: datetime,
) -> tuple[str | None, tuple[str, ...]]:
    """The session that the page leads with, and all sessions of which a record stands on it."""
    table = table_of(shelf, root)
    lead = leading(trials_of(table), shelf.sessions, session=session, machine=machine, now=now)
    found = groups.contests(cells.cells(table), lead, baseline=baseline, claims=claims.claims)
    drawn = {line.cell.session for contest in found for line in contest.lines}
    known = {one.id for one in shelf.sessions}
    return lead, tuple(sorted(({lead} | drawn) & known)) if lead else ()


def session_cells(table: DataFrame, session: str) -> tuple[Cell, ...]:
    """The cells of one session; a device's ceilings are no work."""
    return cells.cells(table[(table["session"] == session) & ~table["is_ceiling"]])
