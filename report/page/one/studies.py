"""Page one where nothing was measured yet: what the studies published, and what can be judged here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report.analysis import Analysis
from report.claims.studies import StudyFigure
from report.page.one.pictures import MOST_BARS
from report.page.published import studies
from report.page.systems import Systems
from report.page.values import Picture
from report.trials.key import grouped_by

FIRST_DRAWN = "protocol_seconds"
"""The metric of the study that page one draws where nothing was measured."""


@dataclass(frozen=True, slots=True)
class Row:
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

    picture: Picture | None
    figure: StudyFigure | None
    name: str
    rows: tuple[Row, ...]
    figures: int
    judged: int


def published_studies(analysis: Analysis, systems: Systems) -> Studies:
    """Every study that has claims, those with most to judge here first."""
    claims = analysis.evidence.claims
    by_study = grouped_by(claims.claims, lambda claim: claim.study)
    rows = [_row(study, members, analysis) for study, members in by_study.items()]
    rows.sort(key=lambda row: -row.judged)
    drawn = [figure for figure in studies.figures(analysis) if figure.metric == FIRST_DRAWN]
    picture, figure = None, None
    if drawn:
        made, figure = studies.picture(drawn[0], "lead", analysis, systems, MOST_BARS)
        picture = replace(made, paper=True)
    return Studies(
        picture,
        figure,
        claims.name_of(figure.study) if figure else "",
        tuple(rows),
        sum(row.figures for row in rows),
        sum(row.judged for row in rows),
    )


def _row(study: str, claims: Sequence[Claim], analysis: Analysis) -> Row:
    ways = [way for claim in claims if (way := analysis.question.ways.get(claim.id))]
    (line, _), *_ = Counter(way.line for way in ways).most_common(1) or [("", 0)]
    seconds = next((way.seconds for way in ways if way.line == line), None)
    known = analysis.evidence.claims.study(study)
    return Row(
        analysis.evidence.claims.name_of(study),
        known.title if known else "",
        sum(claim.value is not None for claim in claims),
        len(ways),
        seconds,
        f"invoke build --plan {line} run report" if line else "",
    )
