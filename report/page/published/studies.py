"""A published study drawn with this machine in it: the same picture wherever it stands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.claims.metrics import measured_of
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
from report.page.pictures import described
from report.page.systems import Systems
from report.page.values import Picture, Quantity
from report.trials.key import FRAMEWORK


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
