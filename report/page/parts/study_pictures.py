"""Pictures of published studies: a group a model, published bars beside what was measured on equal terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report import text
from report.charts.rows import Mark, RowGroup, ScaleRow, ScaleRows
from report.claims.matching import measured_of
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.page.filters import GIB, value_text
from report.page.parts.studies import StudyEntry, StudyFigure, StudyRow
from report.page.time_rows import describe_rows, groups_with_room, key_of_systems, look_of
from report.page.values import Picture, Quantity, Systems
from report.trials.key import DATA, FRAMEWORK

MOST_BARS, MOST_IN_ROW, LEAST_ROWS = 24, 8, 3
"""Bars of a picture and of a row; rows that a picture has room for, where a study has as many."""


@dataclass(frozen=True, slots=True)
class DrawnStudy:
    """One metric of a study as far as its picture has room."""

    picture: Picture
    figure: StudyFigure


def study_picture(figure: StudyFigure, name: str, systems: Systems, most: int = MOST_BARS) -> DrawnStudy:
    """The rows that compare, what was measured first, as many as have room, in the study's order.

    Where room is short, those with something measured alone.
    """
    wide = most >= MOST_BARS or not figure.measured
    rows = [row for row in figure.rows if row.measured or wide]
    rows = [row for row in rows if len(row.entries) > 1] or rows
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
    return DrawnStudy(Picture(name, chart, describe_rows(groups), "study"), fitted)


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
    framework = _framework_of(source)
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
    low, high = _entry_ends(entry, source, figure)
    mark = Mark(at, low, high, look_of(source, timed=figure.metric == "protocol_seconds"), system.slot)
    return replace(row, label=framework or system.name, marks=(mark,))


def _framework_of(source: Claim | Cell) -> str:
    options = dict(source.key.options) if isinstance(source, Cell) else source.of.options
    return text.clean(options[FRAMEWORK], 24) if FRAMEWORK in options else ""


def _entry_ends(entry: StudyEntry, cell: Cell, figure: StudyFigure) -> tuple[float | None, float | None]:
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
