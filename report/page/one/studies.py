"""Page one where nothing was measured yet: what the studies published, and what can be judged here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report.analysis import Analysis
from report.claims.judgeable import Way
from report.page.parts.published import StudyPicture, study_name, study_pictures
from report.page.systems import Systems
from report.trials.pairs import grouped_by


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
    """The picture of the first study, and all studies."""

    picture: StudyPicture | None
    rows: tuple[Row, ...]
    figures: int
    judged: int


def studies(analysis: Analysis, systems: Systems) -> Studies:
    """Every study that has claims, those with most to judge here first."""
    ways = analysis.question.ways
    by_study = grouped_by(analysis.evidence.claims.claims, lambda claim: claim.study)
    rows = [_row(study, [claim.id for claim in claims], ways, analysis) for study, claims in by_study.items()]
    rows.sort(key=lambda row: -row.judged)
    pictures = study_pictures(analysis, systems)
    return Studies(
        pictures[0] if pictures else None,
        tuple(rows),
        sum(row.figures for row in rows),
        sum(row.judged for row in rows),
    )


def _row(study: str, ids: Sequence[str], ways: object, analysis: Analysis) -> Row:
    found: list[Way] = [analysis.question.ways[name] for name in ids if name in analysis.question.ways]
    best = max({way.line for way in found}, key=lambda line: sum(way.line == line for way in found), default="")
    seconds = next((way.seconds for way in found if way.line == best), None)
    name = study_name(analysis, study)
    return Row(name.name, name.title, len(ids), len(found), seconds, f"invoke run --plan {best}" if best else "")
