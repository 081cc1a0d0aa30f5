"""Page one of published numbers: a study in a picture, and the claims that met a record or all studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report.analysis import Analysis
from report.claims.studies import StudyFigure
from report.page.pictures import LEAD, MOST_ON_PAGE_ONE
from report.page.published import studies
from report.page.published.studies import DrawnStudy
from report.page.published.verdicts import ClaimRow, Counts, claim_rows, counts
from report.page.systems import Systems
from report.trials.key import grouped_by

FIRST_DRAWN = "protocol_seconds"
"""The metric of the study that page one draws where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The study that says most of this machine, and the claims that failed or matter first."""

    drawn: DrawnStudy | None
    rows: tuple[ClaimRow, ...]
    counts: Counts
    other_software: bool
    """Whether the study that is drawn ran on other software than this machine."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """A study: how many figures it published, and how many can be judged on this machine, by which line."""

    study: str
    title: str
    figures: int
    judged: int
    seconds: float | None
    command: str


@dataclass(frozen=True, slots=True)
class Studies:
    """The picture of one study, and all studies."""

    drawn: DrawnStudy | None
    rows: tuple[StudyRow, ...]


def claims(analysis: Analysis, systems: Systems) -> Claims:
    """Of the study that says most of this machine, and of all claims."""
    drawn = _drawn([figure for figure in studies.figures(analysis) if figure.measured], analysis, systems)
    sources = [entry.source for row in drawn.figure.rows for entry in row.entries] if drawn else []
    return Claims(
        drawn,
        claim_rows(analysis),
        counts(analysis),
        any(isinstance(source, Claim) and source.stack for source in sources),
    )


def published_studies(analysis: Analysis, systems: Systems) -> Studies:
    """Every study that has claims, those with most to judge here, then to read, first."""
    by_study = grouped_by(analysis.evidence.claims.claims, lambda claim: claim.study)
    rows = [_row(study, members, analysis) for study, members in by_study.items()]
    figures = [figure for figure in studies.figures(analysis) if figure.metric == FIRST_DRAWN]
    return Studies(
        _drawn(figures, analysis, systems), tuple(sorted(rows, key=lambda row: (-row.judged, -row.figures)))
    )


def _drawn(figures: Sequence[StudyFigure], analysis: Analysis, systems: Systems) -> DrawnStudy | None:
    if not figures:
        return None
    drawn = studies.picture(figures[0], LEAD, analysis, systems, MOST_ON_PAGE_ONE)
    return replace(drawn, picture=replace(drawn.picture, paper=True))


def _row(study: str, members: Sequence[Claim], analysis: Analysis) -> StudyRow:
    ways = [way for claim in members if (way := analysis.question.ways.get(claim.id))]
    (line, _), *_ = Counter(way.line for way in ways).most_common(1) or [("", 0)]
    known = analysis.evidence.claims.study(study)
    return StudyRow(
        analysis.evidence.claims.name_of(study),
        known.title if known else "",
        sum(claim.value is not None for claim in members),
        len(ways),
        next((way.seconds for way in ways if way.line == line), None),
        f"invoke build --plan {line} run report" if line else "",
    )
