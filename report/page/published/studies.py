"""Published studies, each drawn with this machine in it, and page one of what was published."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.claims.matching import measured_of
from report.claims.studies import (
    MOST_BARS,
    StudyEntry,
    StudyFigure,
    StudyRow,
    fitted,
    study_figures,
)
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.page.filters import GIB, value
from report.page.pictures import LEAD, MOST_ON_PAGE_ONE, described
from report.page.published.verdicts import ClaimRow, Counts, claim_rows, counts
from report.page.values import Picture, Quantity, Systems
from report.trials.key import FRAMEWORK, grouped_by

FIRST_DRAWN = "protocol_seconds"
"""The metric of the study that page one draws where nothing was measured."""


@dataclass(frozen=True, slots=True)
class DrawnStudy:
    """One metric of a study as far as the picture has room; `name` says who published it, and when."""

    picture: Picture
    figure: StudyFigure
    name: str


def figures(analysis: Analysis) -> tuple[StudyFigure, ...]:
    """Every study drawn again, the one that says most of this machine first."""
    claims = analysis.evidence.claims.claims
    published = Counter(claim.study for claim in claims)

    def telling(figure: StudyFigure) -> tuple[int, bool, int, int]:
        """Rows with something measured in them; a whole duration; models by devices; claims of the study."""
        return (
            sum(row.measured > 0 for row in figure.rows),
            figure.metric == "protocol_seconds",
            len({(row.model, row.gpus) for row in figure.rows}),
            published[figure.study],
        )

    return tuple(sorted(study_figures(claims, *study_cells(analysis)), key=telling, reverse=True))


def study_cells(analysis: Analysis) -> tuple[list[Cell], list[Cell]]:
    """This machine's cells, the leading session's first, then the newest; and those beside them."""
    entries = [entry for group in analysis.groups for entry in group.entries]
    own = [entry.cell for entry in entries if entry.own]

    def first(cell: Cell) -> tuple[bool, str, bool, int]:
        leads = cell.session == analysis.lead
        return leads, "" if leads else f"{cell.started_at:%Y-%m-%d %H:%M}", cell.ranked, cell.throughput.n

    own.sort(key=first, reverse=True)
    return own, [entry.cell for entry in entries if not entry.own]


def picture(
    figure: StudyFigure, name: str, analysis: Analysis, systems: Systems, most: int = MOST_BARS
) -> DrawnStudy:
    """The study's groups in its own order, this machine solid."""
    shown = fitted(figure, most)
    absolute = figure.metric == "peak_bytes"
    labels = _labels(shown.rows)
    groups = tuple(
        Group(
            label,
            tuple(_bar(entry, figure, systems) for entry in row.entries),
            tuple(_notes(row)),
        )
        for label, row in zip(labels, shown.rows, strict=True)
    )
    chart = Bars(
        groups,
        axis="GiB" if absolute else "fastest = 1.00",
        key=_key(systems),
        reference=None if absolute else 1.0,
    )
    study = analysis.evidence.claims.name_of(figure.study)
    return DrawnStudy(Picture(name, chart, described(groups)), shown, study)


def _key(systems: Systems) -> tuple[KeyEntry, ...]:
    """Bars keeps of it what is in use."""
    shown = systems.all[:4]
    measured = [KeyEntry(one.title, one.look, one.slot) for one in shown]
    unranked = [KeyEntry(f"{one.title}, not ranked", "unranked", one.slot) for one in shown]
    return (*measured, *unranked, KeyEntry("published, one run, no range", "published"))


def _labels(rows: Sequence[StudyRow]) -> list[str]:
    """The model of each row; with its workload where two would be equal."""
    counted = Counter(text.model_name(row.model) for row in rows)
    several = len({row.workload for row in rows}) > 1
    return [
        f"{name}, {text.clean(row.workload, 40)}" if counted[name] > 1 and several else name
        for row in rows
        for name in [text.model_name(row.model)]
    ]


def _notes(row: StudyRow) -> list[str]:
    """What a row is of besides its model."""
    notes = [text.count(row.epochs, "epoch")] if row.epochs else []
    notes += [f"{text.clean(row.data, 20)} data"] if row.data else []
    return notes + ([f"{row.gpus} devices"] if row.gpus > 1 else [])


def _bar(entry: StudyEntry, figure: StudyFigure, systems: Systems) -> Bar:
    absolute = figure.metric == "peak_bytes"
    drawn = entry.value / GIB if absolute else entry.scaled
    written = value(Quantity(entry.value, CLAIMED[figure.metric].unit))
    scaled = "" if absolute else text.times(entry.scaled)
    if isinstance(entry.source, Claim):
        name = _framework(entry) or card_of(entry)
        return Bar(name, "published", drawn, text=written, small=scaled, note=_detail(entry))
    cell = entry.source
    system = systems.of(cell)
    low, high = _ends(entry, cell, figure)
    return Bar(
        _framework(entry) or system.name,
        system.look if cell.ranked else "unranked",
        drawn,
        low,
        high,
        text=written,
        small=scaled,
        note=_detail(entry),
        slot=system.slot,
    )


def _detail(entry: StudyEntry) -> str:
    """The precision, after the card where the framework is the name."""
    return f"{card_of(entry)} {entry.precision}".strip() if _framework(entry) else entry.precision


def _framework(entry: StudyEntry) -> str:
    source = entry.source
    options = dict(source.key.options) if isinstance(source, Cell) else source.of.options
    return text.clean(options[FRAMEWORK], 24) if FRAMEWORK in options else ""


def card_of(entry: StudyEntry) -> str:
    """The short name of the card that a figure is of."""
    source = entry.source
    return text.short_card((source.card if isinstance(source, Cell) else source.of.card) or "")


def _ends(entry: StudyEntry, cell: Cell, figure: StudyFigure) -> tuple[float | None, float | None]:
    """The interval of the cell's own mean on the picture's scale: a published figure has none to lend."""
    measured = measured_of(cell, figure.metric)
    interval = measured.interval if measured else None
    if interval is None or interval.low <= 0:
        return None, None
    if figure.metric == "peak_bytes":
        return interval.low / GIB, interval.high / GIB
    low, high = interval.low / entry.value, interval.high / entry.value
    if CLAIMED[figure.metric].more_is_better:
        low, high = 1 / high, 1 / low
    return entry.scaled * low, entry.scaled * high


@dataclass(frozen=True, slots=True)
class Claims:
    """The study that says most of this machine, and the claims that failed or matter first."""

    drawn: DrawnStudy | None
    rows: tuple[ClaimRow, ...]
    counts: Counts
    other_software: bool
    """Whether the study that is drawn ran on other software than this machine."""


@dataclass(frozen=True, slots=True)
class StudyLine:
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
    rows: tuple[StudyLine, ...]


def claims(analysis: Analysis, systems: Systems) -> Claims:
    """Of the study that says most of this machine, and of all claims."""
    drawn = _drawn([figure for figure in figures(analysis) if figure.measured], analysis, systems)
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
    timed = [figure for figure in figures(analysis) if figure.metric == FIRST_DRAWN]
    return Studies(
        _drawn(timed, analysis, systems), tuple(sorted(rows, key=lambda row: (-row.judged, -row.figures)))
    )


def _drawn(found: Sequence[StudyFigure], analysis: Analysis, systems: Systems) -> DrawnStudy | None:
    return picture(found[0], LEAD, analysis, systems, MOST_ON_PAGE_ONE) if found else None


def _row(study: str, members: Sequence[Claim], analysis: Analysis) -> StudyLine:
    ways = [way for claim in members if (way := analysis.question.ways.get(claim.id))]
    (line, _), *_ = Counter(way.line for way in ways).most_common(1) or [("", 0)]
    known = analysis.evidence.claims.study(study)
    return StudyLine(
        analysis.evidence.claims.name_of(study),
        known.title if known else "",
        sum(claim.value is not None for claim in members),
        len(ways),
        next((way.seconds for way in ways if way.line == line), None),
        f"invoke build --plan {line} run report" if line else "",
    )
