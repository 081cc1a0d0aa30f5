"""Page one's part of the published studies: the rows with this machine in them, and its nearest speed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.claims.studies import StudyEntry, StudyFigure, StudyRow, study_figures
from report.comparisons.cells import Cell
from report.sections.published.studies import LEADING, ends, entry_name, study_cells, study_view, telling
from report.sections.view import Fact, StudyView
from report.trials.pairs import grouped_by

MOST_LEADING = 2
"""Rows on page one."""
NOT_HERE = "All of this was published by others: no figure is of this machine."
MOST_BEHIND = 5
"""Of one row's figures on other terms, those on page one."""


def brief(analysis: Analysis) -> StudyView | None:
    """Of the study that says most of this machine the rows with this machine in them, for page one.

    Where nothing was measured, those of the works that failed, else the first; null where no study has
    anything of what was.
    """
    figure = _figure(analysis)
    if figure is None:
        return None
    rows = tuple(map(_in_brief, figure.rows[:MOST_LEADING]))
    view = study_view(replace(figure, rows=rows), LEADING, analysis)
    return view if view.measured or not analysis.own else replace(view, notes=(NOT_HERE, *view.notes))


def _figure(analysis: Analysis) -> StudyFigure | None:
    """The study with the rows that page one may draw."""
    drawn = study_figures(analysis.evidence.claims.claims, *study_cells(analysis))
    own = (replace(figure, rows=_own(figure, analysis), folded=()) for figure in drawn)
    return max((figure for figure in own if figure.rows), key=telling, default=None)


def _own(figure: StudyFigure, analysis: Analysis) -> tuple[StudyRow, ...]:
    """Rows with this machine in them; where it has no figure at all, those of what it tried."""
    if analysis.groups:
        return tuple(row for row in figure.rows if row.measured or row.measured_behind)
    tried = {(trial.key.workload, trial.key.model) for trial in analysis.own}
    return tuple(
        row for row in (*figure.rows, *figure.folded) if not tried or (row.workload, row.model) in tried
    )


def _in_brief(row: StudyRow) -> StudyRow:
    """A row with one figure of each name in it, and of what stands behind it only this machine's."""
    published = _one_of_each([entry for entry in row.entries if isinstance(entry.source, Claim)])
    entries = (entry for entry in row.entries if isinstance(entry.source, Cell) or entry in published)
    other = [
        entry for entry in (*row.behind, *row.left_out) if isinstance(entry.source, Cell) and entry.differs
    ]
    own = _one_of_each(sorted(other, key=_is_ranked, reverse=True))[:MOST_BEHIND]
    behind = sorted(own, key=lambda entry: entry.scaled)
    return replace(row, entries=tuple(entries), behind=tuple(behind), left_out=())


def _one_of_each(entries: Sequence[StudyEntry]) -> list[StudyEntry]:
    """Of each name the first."""
    return [same[0] for same in grouped_by(entries, entry_name).values()]


def nearest_speed(analysis: Analysis) -> Fact | None:
    """How many times as fast this machine is as the published card nearest to it, in the first row drawn.

    Null where no published figure of its precision stands there, or its own may not be ranked.
    """
    figure = _figure(analysis)
    if figure is None or figure.metric == "peak_bytes":
        return None
    row = figure.rows[0]
    here = {id(cell) for cell in analysis.measured_here}
    drawn = (entry for entry in (*row.entries, *row.behind) if id(entry.source) in here)
    own = next(filter(_is_ranked, drawn), None)
    if own is None or not isinstance(own.source, Cell):
        return None
    published = [
        (entry, entry.source)
        for entry in row.entries
        if isinstance(entry.source, Claim) and entry.source.of.card and entry.precision == own.precision
    ]
    if not published:
        return None
    entry, claim = min(published, key=lambda each: abs(math.log(each[0].scaled / own.scaled)))
    low, high = ends(own, own.source, figure)
    speed = entry.scaled / own.scaled
    written = (
        text.about_times(speed, entry.scaled / high, entry.scaled / low)
        if low and high
        else text.times(speed)
    )
    card = text.the(text.short_card(claim.of.card or ""))
    terms = "; other terms, so no verdict" if own.differs else ""
    nearest = f"the nearest that is published, {card} of study {claim.study}"
    work = f"{text.model_name(row.model)} in {own.precision}"
    return Fact(
        f"{written} ×",
        f"the speed of {text.the(text.short_card(own.source.card))} against {nearest}: {work}{terms}",
    )


def _is_ranked(entry: StudyEntry) -> bool:
    return isinstance(entry.source, Cell) and entry.source.ranked
