"""Page one of published numbers: the study with this machine in it, and the claims that met a record."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.record import Claim
from report.analysis import Analysis
from report.claims.studies import StudyFigure
from report.page.one.pictures import MOST_BARS
from report.page.published import studies
from report.page.published.verdicts import ClaimRow, Counts, claim_rows, counts
from report.page.systems import Systems
from report.page.values import Headline, Picture

MOST_ROWS = 8


@dataclass(frozen=True, slots=True)
class Claims:
    """The picture, and the claims that failed or matter first."""

    picture: Picture | None
    figure: StudyFigure | None
    study: str
    """Who published it, and when."""
    rows: tuple[ClaimRow, ...]
    rows_left: int
    counts: Counts
    other_software: bool
    """Whether the study that is drawn ran on other software than this machine."""


def claims(analysis: Analysis, systems: Systems) -> Claims:
    """Of the study that says most of this machine; of the claims, eight at most."""
    rows = claim_rows(analysis)
    drawn = [figure for figure in studies.figures(analysis) if figure.measured]
    picture, figure = None, None
    if drawn:
        made, figure = studies.picture(drawn[0], "lead", analysis, systems, MOST_BARS)
        picture = replace(made, paper=True)
    sources = [entry.source for row in figure.rows for entry in row.entries] if figure else []
    return Claims(
        picture,
        figure,
        analysis.evidence.claims.name_of(figure.study) if figure else "",
        rows[:MOST_ROWS],
        max(0, len(rows) - MOST_ROWS),
        counts(analysis),
        any(isinstance(source, Claim) and source.stack for source in sources),
    )


def headline(found: Claims, systems: Systems) -> Headline:
    """How many of the claims that met a record hold on this machine."""
    count = found.counts
    return Headline(
        "verdicts",
        {"hold": count.holds, "fail": count.fails, "open": count.open, "own": systems.own[0]},
    )
