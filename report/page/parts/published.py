"""Published studies: the claims that met a record, and each study's figures with this machine among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.claims.studies import MOST_BARS, StudyFigure
from report.compare.cells import Cell
from report.page.published import studies
from report.page.published.studies import DrawnStudy
from report.page.published.verdicts import ClaimRow, Counts, claim_rows, counts
from report.page.values import System, Systems
from report.trials.key import NAMES, grouped_by

MOST_ALONE, BARS_ALONE = 6, 14
"""Pictures of a page without records of its own, and bars in each."""
BENEATH = ("libc", "numpy", "python", "system")
"""Versions that a row of a table has no room for."""
MOST_DIFFERENCES = 3


@dataclass(frozen=True, slots=True)
class OtherTerms:
    """Figures of this machine that are of a study's models on other terms, and what differs."""

    figures: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Setup:
    """What stands behind the bars of one system or publication; `batches` are (precision, batch size)."""

    system: System | None
    study: str
    cards: tuple[str, ...]
    software: str
    data: tuple[str, ...]
    batches: tuple[tuple[str, int], ...]
    runs: tuple[int, ...]
    """Of each of its figures, where that is known."""


@dataclass(frozen=True, slots=True)
class StudyView:
    """One study: who published it, its pictures, and the terms of what is in them."""

    name: str
    title: str
    source: str
    pictures: tuple[tuple[DrawnStudy, OtherTerms | None], ...]
    setups: tuple[Setup, ...]


@dataclass(frozen=True, slots=True)
class PublishedView:
    """All that others published, as far as something of it met a record; all of it where nothing was run."""

    alone: bool
    """Whether nothing was measured here."""
    counts: Counts
    rows: tuple[ClaimRow, ...]
    studies: tuple[StudyView, ...]
    other_terms: OtherTerms | None
    """Of the studies that no picture is of."""
    differs: tuple[str, ...]
    """In what the nearest records of the unmet claims differ most often, of works that ran here."""


def view(analysis: Analysis, systems: Systems) -> PublishedView | None:
    """Null where no study is on record."""
    claims = analysis.evidence.claims
    if not claims.claims:
        return None
    alone = not analysis.own
    everything = studies.figures(analysis)
    found = [
        figure
        for figure in everything
        if figure.measured or (alone and any(len(row.entries) > 1 for row in figure.rows))
    ]
    by_study = grouped_by(found, lambda figure: figure.study)
    if alone:
        by_study = {study: by_study[study][:1] for study in [*by_study][:MOST_ALONE]}
    drawn = [
        _study(study, members, analysis, systems, BARS_ALONE if alone else MOST_BARS)
        for study, members in by_study.items()
    ]
    return PublishedView(
        alone=alone,
        counts=counts(analysis),
        rows=claim_rows(analysis),
        studies=tuple(drawn),
        other_terms=None if alone else _other_terms(figure for figure in everything if not figure.measured),
        differs=_nearest_differences(analysis),
    )


def _nearest_differences(analysis: Analysis) -> tuple[str, ...]:
    ran = {cell.key.workload for cell in analysis.grouped}
    unmet = [judged for judged in analysis.verdicts if not judged.compared and judged.claim.workload in ran]
    fields = Counter(each.field for judged in unmet for each in judged.differences)
    named = [(NAMES | {"card": "card", "stack": "stack"}).get(name) for name, _ in fields.most_common()]
    return tuple(name for name in named if name)[:MOST_DIFFERENCES]


def _other_terms(figures: Iterable[StudyFigure]) -> OtherTerms | None:
    found = [names for figure in figures for names in figure.other_terms]
    counted = Counter(name for names in found for name in names)
    return OtherTerms(len(found), tuple(name for name, _ in counted.most_common())) if found else None


def _study(
    study: str, members: Sequence[StudyFigure], analysis: Analysis, systems: Systems, most: int
) -> StudyView:
    claims = analysis.evidence.claims
    known = claims.study(study)
    pictures = []
    for figure in members:
        name = f"study-{text.clean(study, 40)}-{figure.metric.replace('_', '-')}"
        drawn = studies.picture(figure, name, analysis, systems, most)
        pictures.append((drawn, _other_terms((figure,))))
    return StudyView(
        name=claims.name_of(study),
        title=known.title if known else "",
        source=known.source if known else "",
        pictures=tuple(pictures),
        setups=tuple(_setups([drawn.figure for drawn, _ in pictures], analysis, systems)),
    )


def _setups(figures: Sequence[StudyFigure], analysis: Analysis, systems: Systems) -> Iterable[Setup]:
    """A row for each system, then one for each publication and its software."""
    entries = [entry for figure in figures for row in figure.rows for entry in row.entries]
    cells = {id(entry.source): entry.source for entry in entries if isinstance(entry.source, Cell)}
    by_system = grouped_by(cells.values(), lambda cell: (systems.of(cell), software_of(cell)))
    for (system, software), alike in by_system.items():
        yield Setup(
            system=system,
            study="",
            cards=(),
            software=software,
            data=tuple(dict.fromkeys(cell.key.data_source for cell in alike)),
            batches=_batches((cell.key.precision, cell.key.batch_size) for cell in alike),
            runs=tuple(cell.throughput.n for cell in alike),
        )
    claims = [entry.source for entry in entries if isinstance(entry.source, Claim)]
    for (study, stack), same in grouped_by(claims, lambda claim: (claim.study, claim.stack)).items():
        cards = (text.short_card(claim.of.card) for claim in same if claim.of.card)
        yield Setup(
            system=None,
            study=analysis.evidence.claims.name_of(study),
            cards=tuple(dict.fromkeys(cards)),
            software=text.clean(stack or "", 120),
            data=(),
            batches=_batches((claim.of.precision or "", claim.of.batch_size) for claim in same),
            runs=tuple(claim.runs for claim in same if claim.runs),
        )


def software_of(cell: Cell) -> str:
    """The framework's and its libraries' versions, and the driver."""
    parts = [f"{name} {value}" for name, value in cell.stack.versions if value and name not in BENEATH]
    parts += [f"driver {cell.stack.driver}"] if cell.stack.driver else []
    return text.clean(", ".join(parts) or cell.stack.image, 120)


def _batches(pairs: Iterable[tuple[str, int | None]]) -> tuple[tuple[str, int], ...]:
    return tuple(dict.fromkeys((precision, size) for precision, size in pairs if size is not None))
