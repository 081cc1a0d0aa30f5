"""Published studies drawn again with this machine in them: one picture for each study and metric."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from harness.record import Claim
from report import text
from report.analysis import Analysis
from report.charts.intervals import Mark
from report.charts.rows import MarkRow, MarkRows
from report.claims.studies import (
    MORE_IS_BETTER,
    StudyEntry,
    StudyFigure,
    StudyRow,
    figure_of,
    pictures,
    study_figures,
)
from report.comparisons.cells import Cell, unit_of
from report.sections.view import Panel, StudyView, Table
from report.trials.key import FRAMEWORK, NAMES, Value

TITLES = {
    "protocol_seconds": "time-scaled",
    "epoch_seconds": "seconds of an epoch, scaled",
    "step_seconds": "seconds of a step, scaled",
    "inference_seconds": "seconds of inference, scaled",
    "throughput": "throughput, time-scaled",
    "peak_bytes": "peak memory, scaled",
}
APART = "other terms (in brackets), so no comparison"
LEADING = "study-lead"
"""The name of page one's picture."""
BENEATH = ("libc", "numpy", "python", "system")
"""Versions that a note on a stack has no room for."""
UNNAMED = "a stack that it does not name"
MOST_FOLDED = 200
"""Rows of a table of what a picture has no room for."""

Letters = dict[tuple[str, str | None], str]
"""A letter for each publication and its software stack."""


def views(analysis: Analysis) -> tuple[StudyView, ...]:
    """Every study drawn again, the one that says most of this machine first."""
    drawn = study_figures(analysis.evidence.claims.claims, *study_cells(analysis))
    ordered = sorted(drawn, key=telling, reverse=True)
    return tuple(
        view for place, figure in enumerate(ordered, 1) for view in _views(figure, f"study-{place}", analysis)
    )


def _views(figure: StudyFigure, name: str, analysis: Analysis) -> Iterator[StudyView]:
    """One picture, or several that say which they are."""
    sheets = pictures(figure)
    for number, sheet in enumerate(sheets, 1):
        which = f" ({number} of {len(sheets)})" if len(sheets) > 1 else ""
        yield study_view(sheet, name if number == 1 else f"{name}-{number}", analysis, which)


def telling(figure: StudyFigure) -> tuple[int, int, bool, int]:
    """Rows with something measured in them; behind a line; a whole duration; models by number of devices."""
    return (
        sum(row.measured > 0 for row in figure.rows),
        sum(row.measured_behind > 0 for row in figure.rows),
        figure.metric == "protocol_seconds",
        len({(row.workload, row.model, row.gpus) for row in (*figure.rows, *figure.folded)}),
    )


def study_cells(analysis: Analysis) -> tuple[list[Cell], list[Cell]]:
    """This machine's cells, the leading session's first, then the newest; and those beside them."""
    entries = [entry for group in analysis.groups for entry in group.entries]
    own = [entry.cell for entry in entries if entry.own]

    def first(cell: Cell) -> tuple[bool, str, bool, int]:
        leads = cell.session == analysis.lead
        return leads, "" if leads else f"{cell.started_at:%Y-%m-%d %H:%M}", cell.ranked, cell.throughput.n

    own.sort(key=first, reverse=True)
    return own, [entry.cell for entry in entries if not entry.own]


def study_view(figure: StudyFigure, name: str, analysis: Analysis, which: str = "") -> StudyView:
    letters = _letters(figure)
    labels = _labels(figure)
    rows = tuple(
        MarkRow(
            label,
            _marks(row.entries, figure, letters, analysis),
            tuple(_unscaled(mark) for mark in _marks(row.behind, figure, letters, analysis)),
        )
        for label, row in zip(labels, figure.rows, strict=False)
    )
    alt = "; ".join(
        f"{row.label}: " + ", ".join(f"{mark.label} {mark.text}" for mark in row.marks) for row in rows
    )
    title = f"Study {text.clean(figure.study, 40)}: {TITLES[figure.metric]}{which}"
    measured = any(row.measured or row.measured_behind for row in figure.rows)
    narrow = not measured and name != LEADING
    panel = Panel(name, title, _unit(figure), MarkRows(rows, APART, narrow), alt)
    sources = (entry.source for row in figure.rows for entry in (*row.entries, *row.behind))
    return StudyView(
        study=figure.study,
        panel=panel,
        measured=measured,
        claims=frozenset(source.id for source in sources if isinstance(source, Claim)),
        notes=_notes(figure, letters),
        folded=_folded(figure, labels),
    )


def _labels(figure: StudyFigure) -> list[str]:
    """A name for each row, the folded ones last; with the epochs or the workload where two would be equal."""
    rows = (*figure.rows, *figure.folded)
    plain = [_label(row) for row in rows]
    counted = Counter(plain)
    return [
        label if counted[label] == 1 else f"{label}, {_apart(row, rows)}"
        for label, row in zip(plain, rows, strict=True)
    ]


def _label(row: StudyRow) -> str:
    data = f" on {text.clean(row.data, 20)} data" if row.data else ""
    return text.model_name(row.model) + data + (f", {row.gpus} devices" if row.gpus > 1 else "")


def _apart(row: StudyRow, rows: Sequence[StudyRow]) -> str:
    same = [other for other in rows if _label(other) == _label(row)]
    parts = [text.clean(row.workload, 40)] if len({other.workload for other in same}) > 1 else []
    lengths = {other.epochs for other in same if other.workload == row.workload}
    parts += [text.count(row.epochs, "epoch")] if row.epochs and len(lengths) > 1 else []
    return ", ".join(parts)


def _unit(figure: StudyFigure) -> str:
    epochs = {row.epochs for row in figure.rows}
    (same,) = epochs if len(epochs) == 1 else (None,)
    what = {
        "protocol_seconds": f"seconds for {f'{same} epochs' if same else 'the whole protocol'}",
        "throughput": f"time for a sample, and in figures {text.clean(figure.unit, 20)}",
    }
    metric = TITLES[figure.metric].removesuffix(", scaled")
    best = "the best of each group is 1.00"
    if any(row.behind for row in figure.rows):
        best = "1.00 is the best above the dashed line"
    return f"{what.get(figure.metric, metric)}; {best}; less is better"


# Marks


def _marks(
    entries: Iterable[StudyEntry], figure: StudyFigure, letters: Letters, analysis: Analysis
) -> tuple[Mark, ...]:
    return tuple(
        _published(entry, entry.source, figure, letters)
        if isinstance(entry.source, Claim)
        else _measured(entry, entry.source, figure, analysis)
        for entry in entries
    )


def _unscaled(mark: Mark) -> Mark:
    """A figure without its ratio, which says nothing where terms differ."""
    return replace(mark, text=mark.text.partition(" · ")[0])


def _published(entry: StudyEntry, claim: Claim, figure: StudyFigure, letters: Letters) -> Mark:
    return Mark(
        label=entry_name(entry),
        note=" ".join([*_terms(entry), f"[{letters[claim.study, claim.stack]}]"]),
        text=f"{_written(entry.value, figure)} · {text.times(entry.scaled)}",
        value=entry.scaled,
        precision=entry.precision,
        card="published",
        published=True,
    )


def _measured(entry: StudyEntry, cell: Cell, figure: StudyFigure, analysis: Analysis) -> Mark:
    low, high = ends(entry, cell, figure)
    return Mark(
        label=entry_name(entry),
        note=" ".join([*_terms(entry), ", ".join(_standing(cell, figure, analysis))]).strip(),
        text=f"{_written(entry.value, figure)} · {text.times(entry.scaled)}",
        value=entry.scaled,
        low=low,
        high=high,
        precision=entry.precision,
        unranked=not cell.ranked,
        card=unit_of(cell),
    )


def entry_name(entry: StudyEntry) -> str:
    """A figure's framework where it names one, else its card and precision."""
    return _framework(entry) or _card(entry)


def _framework(entry: StudyEntry) -> str:
    source = entry.source
    options = dict(source.key.options) if isinstance(source, Cell) else source.of.options
    return text.clean(options[FRAMEWORK], 24) if FRAMEWORK in options else ""


def _card(entry: StudyEntry) -> str:
    source = entry.source
    card = source.card if isinstance(source, Cell) else source.of.card or "any card"
    return f"{text.short_card(card)} {entry.precision}".strip()


def ends(entry: StudyEntry, cell: Cell, figure: StudyFigure) -> tuple[float, float] | tuple[None, None]:
    """The interval of the cell's own mean on the row's scale: a published figure has none to lend."""
    measured = figure_of(cell, figure.metric)
    interval = measured.interval if measured else None
    if interval is None or interval.low <= 0:
        return None, None
    low, high = interval.low / entry.value, interval.high / entry.value
    if figure.metric in MORE_IS_BETTER:
        low, high = 1 / high, 1 / low
    return entry.scaled * low, entry.scaled * high


def _terms(entry: StudyEntry) -> list[str]:
    """The card where a figure names its framework, the batch, and in brackets what is not the row's."""
    parts = [_card(entry)] if _framework(entry) else []
    alike = entry.batch_size and NAMES["batch_size"] not in dict(entry.differs)
    parts += [f"batch {entry.batch_size}"] if alike else []
    other = ", ".join(_term(name, value) for name, value in entry.differs)
    return parts + ([f"({text.clean(other, 60)})"] if other else [])


def _term(name: str, value: Value) -> str:
    if value is None:
        return f"no {name}"
    forms = {
        NAMES["batch_size"]: "batch {}",
        NAMES["data_mode"]: "{} data",
        NAMES["image_size"]: "{} px",
        NAMES["profile"]: "profile {}",
    }
    plain = (NAMES["protocol"], NAMES["layout"], "standing")
    return forms.get(name, "{}" if name in plain else f"{name} {{}}").format(value)


def _standing(cell: Cell, figure: StudyFigure, analysis: Analysis) -> list[str]:
    """What else a measured figure says of itself: a projection, another day or machine."""
    parts = ["projected"] if cell.length.projected and figure.metric == "protocol_seconds" else []
    parts += ["unproven"] if cell.verdict == "unproven" else []
    if cell.session != analysis.lead:
        here = {trial.machine for trial in analysis.own}
        parts.append(
            f"{cell.started_at:%Y-%m-%d}" if cell.machine in here else text.clean(cell.machine_label, 24)
        )
    return parts


def _written(value: float, figure: StudyFigure) -> str:
    if figure.metric == "peak_bytes":
        return text.gibibytes(value)
    if figure.metric == "throughput":
        return text.number(value, 4)
    return text.seconds(value)


# Words


def _letters(figure: StudyFigure) -> Letters:
    rows = (*figure.rows, *figure.folded)
    entries = [entry for row in rows for entry in (*row.entries, *row.behind, *row.left_out)]
    sources = dict.fromkeys(
        (entry.source.study, entry.source.stack) for entry in entries if isinstance(entry.source, Claim)
    )
    return {source: _letter(place) for place, source in enumerate(sources)}


def _letter(place: int) -> str:
    return chr(ord("a") + place) if place < 26 else str(place - 25)


def _notes(figure: StudyFigure, letters: Letters) -> tuple[str, ...]:
    """Which stack a letter is, and which this report's own."""
    hollow = "hollow marks: published by study"
    notes = [
        f"[{letter}] {hollow} {text.clean(study, 40)} on {text.clean(stack or UNNAMED, 160)}"
        for (study, stack), letter in letters.items()
    ]
    entries = [entry.source for row in figure.rows for entry in (*row.entries, *row.behind)]
    stacks = dict.fromkeys(_stack(source) for source in entries if isinstance(source, Cell))
    return (*notes, *(f"Filled marks: measured on {stack}" for stack in stacks))


def _stack(cell: Cell) -> str:
    parts = [f"{name} {value}" for name, value in cell.stack.versions if value and name not in BENEATH]
    parts += [f"driver {cell.stack.driver}"] if cell.stack.driver else []
    return text.clean(", ".join(parts) or cell.stack.image, 160)


def _folded(figure: StudyFigure, labels: Sequence[str]) -> Table | None:
    """What the picture has no room for, row by row."""
    rows = [
        (
            label,
            entry_name(entry),
            " ".join(_terms(entry)) or "–",
            _written(entry.value, figure),
            text.times(entry.scaled),
        )
        for label, row, whole in zip(
            labels,
            (*figure.rows, *figure.folded),
            [False] * len(figure.rows) + [True] * len(figure.folded),
            strict=True,
        )
        for entry in ((*row.entries, *row.behind, *row.left_out) if whole else row.left_out)
    ]
    if not rows:
        return None
    caption = f"{text.count(len(rows), 'figure')} for which the picture has no room"
    caption += f", the first {MOST_FOLDED}; the list of claims has all." if len(rows) > MOST_FOLDED else "."
    return Table(
        caption, ("Model", "Card or framework", "Terms", "Figure", "Scaled"), tuple(rows[:MOST_FOLDED])
    )
