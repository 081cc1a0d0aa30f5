"""What several verbs ask of the records: their rows, what a page stands on, a session's cells."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from harness.record import Record
from harness.record.cards import FILE as CARDS
from harness.record.cards import load_cards
from harness.record.claims import ClaimSet
from harness.record.store import Shelf, Stored
from harness.summary.statistics import METHOD, judge_trial
from report import frame, suspect
from report.comparisons import cells, groups
from report.comparisons.cells import Cell
from report.frame import Row
from report.page.build import leading
from report.sections.roofline import is_ceiling


def rows_of(shelf: Shelf, root: Path, *, from_raw: bool = False) -> tuple[Row, ...]:
    """The rows of all records, held against the cards of `root`; `from_raw` believes no stored summary."""
    named = ((stored.path, _bare(stored) if from_raw else stored.record) for stored in shelf.records)
    rows = cells.plausible(frame.rows(named, judged=judge_trial, method=METHOD))
    return suspect.marked(rows, load_cards(root) if (root / CARDS).exists() else ())


def _bare(stored: Stored) -> Record:
    return stored.record.model_copy(update={"summary": None})


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
    rows = rows_of(shelf, root)
    lead = leading(rows, shelf.sessions, session=session, machine=machine, now=now)
    found = groups.contests(cells.cells(rows), lead, baseline=baseline, claims=claims.claims)
    drawn = {line.cell.session for contest in found for line in contest.lines}
    known = {one.id for one in shelf.sessions}
    return lead, tuple(sorted(({lead} | drawn) & known)) if lead else ()


def session_cells(rows: Sequence[Row], session: str) -> tuple[Cell, ...]:
    """The cells of one session; a device's ceilings are no work."""
    own = [row for row in rows if row.session == session]
    return cells.cells([row for row in own if not is_ceiling(row)])
