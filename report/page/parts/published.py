"""Published studies: the claims that met a record, and each study's figures with this machine among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.claims.claimed_work import measured_of
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.page.filters import GIB, value_text
from report.page.parts.studies import StudyEntry, StudyFigure, StudyRow, figures_of_studies
from report.page.parts.verdicts import (
    AnswerRow,
    ClaimRow,
    answer_rows,
    claim_rows,
    count_verdicts,
)
from report.page.pictures import LEAD, MOST_ROWS, groups_with_room, key_of_systems, look_of, rows_picture
from report.page.values import Picture, Quantity, Systems
from report.trials.key import DATA, FRAMEWORK, grouped_by

MOST_BARS, MOST_IN_ROW, LEAST_ROWS = 24, 8, 3
"""Bars of a picture and of a row; rows that a picture has room for, where a study has as many."""
MOST_ALONE = 6
"""Pictures of a page without records of its own."""


@dataclass(frozen=True, slots=True)
class DrawnStudy:
    """One metric of a study as far as its picture has room."""

    picture: Picture
    figure: StudyFigure


@dataclass(frozen=True, slots=True)
class StudyView:
    """One study: who published it, on which software, and its pictures."""

    name: str
    title: str
    source: str
    software: tuple[str, ...]
    pictures: tuple[DrawnStudy, ...]


@dataclass(frozen=True, slots=True)
class PublishedView:
    """All that others published, as far as something of it met a record; all of it where nothing was run."""

    alone: bool
    """Whether nothing was measured here."""
    counts: Mapping[str, int]
    """How many published figures have each answer."""
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
    rows, answers = claim_rows(analysis), answer_rows(analysis)
    return PublishedView(alone, count_verdicts(analysis, rows, answers), rows, answers, tuple(drawn))


def _study_view(
    study: str, members: Sequence[StudyFigure], analysis: Analysis, systems: Systems
) -> StudyView:
    claims = analysis.evidence.claims
    known = claims.study(study)
    sources = (entry.source for figure in members for row in figure.rows for entry in row.entries)
    stacks = (source.stack for source in sources if isinstance(source, Claim) and source.stack)
    return StudyView(
        name=claims.study_name(study),
        title=known.title if known else "",
        source=known.source if known else "",
        software=tuple(dict.fromkeys(text.clean(stack, 120) for stack in stacks)),
        pictures=tuple(study_picture(figure, _picture_name(figure), systems) for figure in members),
    )


def _picture_name(figure: StudyFigure) -> str:
    """Return 'study-004-protocol-seconds', with what sets it apart from others of that metric."""
    apart = (str(value).replace("/", "-") for _, value in figure.apart if value is not None)
    return "-".join(("study", text.clean(figure.study, 40), figure.metric.replace("_", "-"), *apart))


# Pictures


def study_picture(figure: StudyFigure, name: str, systems: Systems, most: int = MOST_BARS) -> DrawnStudy:
    """The rows that compare, what was measured first, as many as have room, in the study's order."""
    rows = [row for row in figure.rows if len(row.entries) > 1] or figure.rows
    drawn = [(row, _group(row, figure, systems, most)) for row in rows]
    by_measured = sorted(drawn, key=lambda each: -each[0].measured)
    kept = set(map(id, groups_with_room([group for _, group in by_measured], most)))
    shown = [(row, group) for row, group in drawn if id(group) in kept]
    groups = tuple(group for _, group in shown)
    absolute = figure.metric == "peak_bytes"
    chart = ScaleRows(
        groups,
        axis="GiB" if absolute else "fastest = 1.00",
        key=key_of_systems(systems.all),
        reference=None if absolute else 1.0,
    )
    left = sum(len(row.entries) for row in figure.rows) - sum(len(group.rows) for group in groups)
    fitted = replace(figure, rows=tuple(row for row, _ in shown), left_out=left)
    return DrawnStudy(rows_picture(chart, "study", name), fitted)


def _group(row: StudyRow, figure: StudyFigure, systems: Systems, most: int) -> RowGroup:
    rows = [_bar(entry, figure, systems) for entry in row.entries]
    shown = _nearest_rows(rows, min(MOST_IN_ROW, max(most // LEAST_ROWS, 4)))
    of, data = row.claim.of, row.claim.of.options.get(DATA)
    whole = row.claim.epochs if figure.metric == "protocol_seconds" else None
    notes = [text.count(whole, "epoch")] if whole else []
    notes += [f"{text.clean(data, 20)} data"] if data is not None else []
    notes += [f"{of.gpus} devices"] if of.gpus > 1 else []
    return RowGroup(text.model_name(of.model), shown, tuple(notes))


def _nearest_rows(rows: Sequence[ScaleRow], most: int) -> tuple[ScaleRow, ...]:
    """All where there is room; else what was measured, the best, and those nearest to what was measured."""
    own = [place for place, row in enumerate(rows) if row.firm] or [0]
    order = sorted(
        range(len(rows)),
        key=lambda place: (place not in own, place > most // 3, min(abs(place - at) for at in own)),
    )
    return tuple(rows[place] for place in sorted(order[:most]))


def _bar(entry: StudyEntry, figure: StudyFigure, systems: Systems) -> ScaleRow:
    absolute, source = figure.metric == "peak_bytes", entry.source
    options = dict(source.key.options) if isinstance(source, Cell) else source.of.options
    framework = text.clean(options[FRAMEWORK], 24) if FRAMEWORK in options else ""
    card = text.short_card((source.card if isinstance(source, Cell) else source.of.card) or "")
    at = entry.value / GIB if absolute else entry.scaled
    row = ScaleRow(
        framework or card,
        (Mark(at, look="published"),),
        f"{card} {entry.precision}".strip() if framework else entry.precision,
        value_text(Quantity(entry.value, CLAIMED[figure.metric].unit)),
        "" if absolute else text.times(entry.scaled),
    )
    if isinstance(source, Claim):
        return row
    system = systems.of(source)
    low, high = _range_over_value(entry, source, figure.metric)
    mark = Mark(at, low and at * low, high and at * high, look_of(source, figure.metric), system.slot)
    return replace(row, label=framework or system.name, marks=(mark,))


def _range_over_value(entry: StudyEntry, cell: Cell, metric: str) -> tuple[float | None, float | None]:
    """The ends of the cell's own range as times of its time: a published figure has none to lend."""
    measured = measured_of(cell, metric)
    interval = measured.interval if measured else None
    if interval is None or interval.low <= 0:
        return None, None
    low, high = interval.low / entry.value, interval.high / entry.value
    return (1 / high, 1 / low) if CLAIMED[metric].more_is_better else (low, high)


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
    ways = [way for claim in members if (way := analysis.request.prospects.ways.get(claim.id))]
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
