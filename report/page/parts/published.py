"""Published studies: the claims that met a record, and each study's figures with this machine among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.page.parts.studies import StudyFigure, figures_of_studies
from report.page.parts.study_pictures import DrawnStudy, study_picture
from report.page.parts.verdicts import (
    AnswerRow,
    ClaimRow,
    VerdictCounts,
    answer_rows,
    claim_rows,
    count_verdicts,
)
from report.page.time_rows import LEAD, MOST_ROWS
from report.page.values import NamedSystem, Systems
from report.trials.key import grouped_by

MOST_ALONE = 6
"""Pictures of a page without records of its own."""
BENEATH = ("debian_packages", "libc", "numpy", "python", "system")
"""Versions that a row of a table has no room for."""


@dataclass(frozen=True, slots=True)
class StudySetup:
    """What is behind the bars of one system or publication; `batches` are (precision, batch size)."""

    system: NamedSystem | None
    study: str
    cards: tuple[str, ...]
    software: str
    batches: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class StudyView:
    """One study: who published it, its pictures, and the terms of what is in them."""

    name: str
    title: str
    source: str
    pictures: tuple[DrawnStudy, ...]
    setups: tuple[StudySetup, ...]


@dataclass(frozen=True, slots=True)
class PublishedView:
    """All that others published, as far as something of it met a record; all of it where nothing was run."""

    alone: bool
    """Whether nothing was measured here."""
    counts: VerdictCounts
    rows: tuple[ClaimRow, ...]
    answers: tuple[AnswerRow, ...]
    """Figures of the same work on another card or other software."""
    studies: tuple[StudyView, ...]


def view(analysis: Analysis, systems: Systems) -> PublishedView | None:
    """Null where no study is on record."""
    claims = analysis.evidence.claims
    if not claims.claims:
        return None
    alone = not analysis.own
    everything = figures_of_studies(analysis)
    found = [
        figure
        for figure in everything
        if figure.measured or (alone and any(len(row.entries) > 1 for row in figure.rows))
    ]
    by_study = grouped_by(found, lambda figure: figure.study)
    if alone:
        by_study = {study: by_study[study][:1] for study in [*by_study][:MOST_ALONE]}
    drawn = [_study_view(study, members, analysis, systems) for study, members in by_study.items()]
    return PublishedView(
        alone=alone,
        counts=count_verdicts(analysis),
        rows=claim_rows(analysis),
        answers=answer_rows(analysis),
        studies=tuple(drawn),
    )


def _study_view(
    study: str, members: Sequence[StudyFigure], analysis: Analysis, systems: Systems
) -> StudyView:
    claims = analysis.evidence.claims
    known = claims.study(study)
    pictures = tuple(study_picture(figure, _picture_name(figure), systems) for figure in members)
    return StudyView(
        name=claims.study_name(study),
        title=known.title if known else "",
        source=known.source if known else "",
        pictures=pictures,
        setups=tuple(_setups([drawn.figure for drawn in pictures], analysis, systems)),
    )


def _picture_name(figure: StudyFigure) -> str:
    """Return 'study-004-protocol-seconds', with what sets it apart from others of that metric."""
    apart = (str(value).replace("/", "-") for _, value in figure.apart if value is not None)
    return "-".join(("study", text.clean(figure.study, 40), figure.metric.replace("_", "-"), *apart))


def _setups(figures: Sequence[StudyFigure], analysis: Analysis, systems: Systems) -> Iterable[StudySetup]:
    """A row for each system, then one for each publication and its software."""
    entries = [entry for figure in figures for row in figure.rows for entry in row.entries]
    cells = {id(entry.source): entry.source for entry in entries if isinstance(entry.source, Cell)}
    by_system = grouped_by(cells.values(), lambda cell: (systems.of(cell), software_of(cell)))
    for (system, software), alike in by_system.items():
        yield StudySetup(
            system=system,
            study="",
            cards=(),
            software=software,
            batches=_batches((cell.key.precision, cell.key.batch_size) for cell in alike),
        )
    claims = [entry.source for entry in entries if isinstance(entry.source, Claim)]
    for (study, stack), same in grouped_by(claims, lambda claim: (claim.study, claim.stack)).items():
        cards = (text.short_card(claim.of.card) for claim in same if claim.of.card)
        yield StudySetup(
            system=None,
            study=analysis.evidence.claims.study_name(study),
            cards=tuple(dict.fromkeys(cards)),
            software=text.clean(stack or "", 120),
            batches=_batches((claim.of.precision or "", claim.of.batch_size) for claim in same),
        )


def software_of(cell: Cell) -> str:
    """The framework's and its libraries' versions, and the driver."""
    parts = [f"{name} {value}" for name, value in cell.stack.versions if value and name not in BENEATH]
    parts += [f"driver {cell.stack.driver}"] if cell.stack.driver else []
    return text.clean(", ".join(parts) or cell.stack.image, 120)


def _batches(pairs: Iterable[tuple[str, int | None]]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys((precision, size) for precision, size in pairs if size is not None))


# Page one


@dataclass(frozen=True, slots=True)
class StudyLine:
    """A study: how many figures it published, and how many can be judged on this machine, by which line."""

    study: str
    title: str
    figures: int
    judged: int
    seconds: float | None
    command: str


def published_studies(analysis: Analysis, systems: Systems) -> tuple[DrawnStudy | None, list[StudyLine]]:
    """Return one study drawn, and every study that has claims: most to judge here, then to read, first."""
    by_study = grouped_by(analysis.evidence.claims.claims, lambda claim: claim.study)
    rows = [_line(study, members, analysis) for study, members in by_study.items()]
    timed = [figure for figure in figures_of_studies(analysis) if figure.metric == "protocol_seconds"]
    drawn = study_picture(timed[0], LEAD, systems, MOST_ROWS) if timed else None
    return drawn, sorted(rows, key=lambda row: (-row.judged, -row.figures))


def _line(study: str, members: Sequence[Claim], analysis: Analysis) -> StudyLine:
    ways = [way for claim in members if (way := analysis.request.ways.get(claim.id))]
    (line, _), *_ = Counter(way.line for way in ways).most_common(1) or [("", 0)]
    known = analysis.evidence.claims.study(study)
    return StudyLine(
        analysis.evidence.claims.study_name(study),
        known.title if known else "",
        len(members),
        len(ways),
        next((way.seconds for way in ways if way.line == line), None),
        f"invoke build --plan {line} run report" if line else "",
    )
