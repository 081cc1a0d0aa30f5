"""Published studies drawn again with what was measured.

A row is what one publication has of a model on equal terms: protocol, sizes, layout, profile, options, and
the batch, or the batches where a study fixes one for each precision. Cards, precisions and software may
differ within a row, and so may the loader, which is named. What was measured on other terms is counted and is
in no row. A picture is of one protocol and one size of images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report.analysis import Analysis
from report.claims.matching import asked_by, measured_of, scaled_down
from report.compare.cells import Cell
from report.compare.partial_key import PartialKey
from report.metrics import CLAIMED
from report.trials.key import DATA, FRAMEWORK, LOADER_ALONE, NAMES, Value, grouped_by

DRAWN = (
    *("protocol_seconds", "epoch_seconds", "step_seconds", "inference_seconds"),
    *("throughput", "peak_bytes"),
)
"""The metrics of claims that make a picture."""
OF_A_PASS = ("protocol_seconds", "epoch_seconds")
FEWER_IMAGES = "train_images"
"""An option by which a pass over the data is shorter than the protocol's: its seconds are of another work."""
_SUBJECT = ("workload", "model", "gpus", "nodes", "epochs", DATA)
"""What a figure is of: one that differs in it is on no other terms, but another figure."""
_LOADER = (NAMES["data_mode"],)


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """A published figure, or a measured one. `scaled` is how many times the best of its row it takes."""

    source: Claim | Cell
    precision: str
    value: float
    scaled: float = 1.0
    loader: bool = False
    """Whether another loader fed it than the published figures of its row."""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """Entries of one work on equal terms, the best first, which is 1.00; `claim` is the first published."""

    claim: Claim
    entries: tuple[StudyEntry, ...]

    @property
    def measured(self) -> int:
        """How many measured figures the row has."""
        return sum(isinstance(entry.source, Cell) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """One metric of a study, and for each figure of this machine that is in no row, which terms differ."""

    study: str
    metric: str
    rows: tuple[StudyRow, ...]
    other_terms: tuple[tuple[str, ...], ...] = ()
    left_out: int = 0
    """Figures for which a picture has no room."""
    apart: tuple[tuple[str, Value], ...] = ()
    """Its difference from other pictures of the study and metric, by name and value."""

    @property
    def measured(self) -> int:
        """How many measured figures it has."""
        return sum(row.measured for row in self.rows)

    @property
    def loaders(self) -> tuple[str, ...]:
        """The loaders of measured figures that differ from the published one, each once."""
        entries = [entry for row in self.rows for entry in row.entries if entry.loader]
        modes = (entry.source.key.data_mode for entry in entries if isinstance(entry.source, Cell))
        return tuple(dict.fromkeys(modes))


def figures(analysis: Analysis) -> tuple[StudyFigure, ...]:
    """Return every study's metrics, the one that says most of this machine first."""
    claims = analysis.evidence.claims.claims
    published = Counter(claim.study for claim in claims)

    def telling(figure: StudyFigure) -> tuple[int, bool, int, int]:
        """Rows with something measured in them; a whole duration; models by devices; claims of the study."""
        return (
            sum(row.measured > 0 for row in figure.rows),
            figure.metric == "protocol_seconds",
            len({(row.claim.of.model.casefold(), row.claim.of.gpus) for row in figure.rows}),
            published[figure.study],
        )

    return tuple(sorted(study_figures(claims, *_study_cells(analysis)), key=telling, reverse=True))


def published_times(analysis: Analysis) -> dict[int, list[tuple[Claim, bool]]]:
    """Return by a cell's id each published time of the same work, and whether another loader fed it.

    The card and the software may be others.
    """
    beside: dict[int, list[tuple[Claim, bool]]] = {}
    timed = (
        figure for figure in figures(analysis) if figure.metric == "protocol_seconds" and figure.measured
    )
    for row in (row for figure in timed for row in figure.rows if row.measured):
        claims = [entry.source for entry in row.entries if isinstance(entry.source, Claim)]
        for entry in row.entries:
            beside.setdefault(id(entry.source), []).extend((claim, entry.loader) for claim in claims)
    return beside


def _study_cells(analysis: Analysis) -> tuple[list[Cell], list[Cell]]:
    """Return this machine's cells, the leading session's first, then the newest; and those named with it."""
    machines = {trial.machine for trial in analysis.own}

    def first(cell: Cell) -> tuple[bool, str, bool, int]:
        leads = cell.session == analysis.lead
        return leads, "" if leads else f"{cell.started_at:%Y-%m-%d %H:%M}", cell.ranked, cell.throughput.n

    cells = sorted(analysis.page_cells, key=first, reverse=True)
    own = [cell for cell in cells if cell.machine in machines]
    return own, [cell for cell in cells if cell not in own and cell.session in analysis.request.named]


def study_figures(
    claims: Iterable[Claim], own: Sequence[Cell], beside: Sequence[Cell] = ()
) -> tuple[StudyFigure, ...]:
    """Return what each study published, with what was measured on its terms.

    `own` are this machine's cells, of equal ones the one to draw first; `beside` are other machines' cells.
    """
    absolute = [claim for claim in claims if claim.kind == "absolute" and claim.metric in DRAWN]
    known = [claim for claim in absolute if claim.value is not None and claim.value > 0]
    by_metric = grouped_by(known, lambda claim: (claim.study, claim.metric, claim.unit))
    found = []
    for (study, metric, _), members in by_metric.items():
        parts = grouped_by(members, _subject_of_picture)
        for part, same in parts.items():
            figure = _figure(study, metric, same, own, beside)
            differing = tuple(pair for at, pair in enumerate(part) if len({each[at] for each in parts}) > 1)
            found.append(replace(figure, apart=differing))
    return tuple(found)


def _subject_of_picture(claim: Claim) -> tuple[tuple[str, Value], ...]:
    """What all figures of a picture have in common: the data follow from the workload and its protocol."""
    size = dict(asked_by(claim, claim.of).fields).get("image_size")
    return ("workload", claim.workload), ("protocol", claim.protocol), ("image_size", size)


# Terms


@dataclass(frozen=True, slots=True)
class RowTerms:
    """The terms of one publication of a work, and its batches with the precision of each."""

    asked: PartialKey
    batches: frozenset[tuple[str | None, int]]

    def differences(self, cell: Cell, metric: str) -> tuple[str, ...] | None:
        """The names of the terms in which a cell differs; null where it has no such figure of this work."""
        found = self.asked.differences(PartialKey.of(cell.key, cell.length).less(FRAMEWORK))
        if not _has(cell, metric) or any(each.field in _SUBJECT for each in found):
            return None
        generated = cell.key.data_source == "generated" and not CLAIMED[metric].on_generated
        return (
            *(each.name for each in found),
            *([] if self.takes_batch(cell.key.precision, cell.key.batch_size) else [NAMES["batch_size"]]),
            *(["size of the model"] if scaled_down(cell) else []),
            *([NAMES["data_source"]] if generated else []),
        )

    def takes_batch(self, precision: str | None, batch_size: int | None) -> bool:
        """Whether a batch is one that was published for its precision, or for any where none was for it."""
        if batch_size is None or not self.batches:
            return True
        same = {batch for published, batch in self.batches if published == precision}
        return batch_size in (same or {batch for _, batch in self.batches})


def _row_terms(claims: Sequence[Claim]) -> Iterable[RowTerms]:
    """One for all where a published protocol fixes a batch for each precision, else one for each batch."""
    for asked, members in grouped_by(claims, _asked).items():
        batches = {(c.of.precision, c.of.batch_size) for c in members if c.of.batch_size is not None}
        published = members[0].protocol.startswith("published")
        if not batches or (published and len(batches) == len({precision for precision, _ in batches})):
            yield RowTerms(asked, frozenset(batches))
            continue
        for size in dict.fromkeys(claim.of.batch_size for claim in members if claim.of.batch_size):
            yield RowTerms(asked, frozenset(pair for pair in batches if pair[1] == size))


def _asked(claim: Claim) -> PartialKey:
    """The work and terms of a published figure, its precision, batch and framework aside."""
    asked = asked_by(claim, claim.of).less("precision", "batch_size", FRAMEWORK)
    return PartialKey(asked.fields, tuple(sorted(asked.options)))


def _has(cell: Cell, metric: str) -> bool:
    """Return whether a cell has a figure of a claims' metric that a row may have."""
    figure = measured_of(cell, metric)
    shorter = metric in OF_A_PASS and FEWER_IMAGES in dict(cell.key.options)
    known = figure is not None and figure.mean is not None and figure.mean > 0
    return known and not shorter and cell.key.protocol != LOADER_ALONE


# Rows


def _figure(
    study: str, metric: str, claims: Sequence[Claim], own: Sequence[Cell], beside: Sequence[Cell]
) -> StudyFigure:
    terms = list(_row_terms(claims))
    mine = [alike[0] for alike in grouped_by(own, lambda cell: (cell.key, cell.card)).values()]
    found: dict[RowTerms, list[Claim | Cell]] = {each: [] for each in terms}
    apart: list[tuple[str, ...]] = []
    otherwise: dict[RowTerms, list[Cell]] = {}
    for claim in claims:
        of = _asked(claim), claim.of.precision, claim.of.batch_size
        found[next(each for each in terms if each.asked == of[0] and each.takes_batch(*of[1:]))].append(claim)
    for cell in (*mine, *beside):
        apart_by = {each: each.differences(cell, metric) for each in terms}
        differing = {each: names for each, names in apart_by.items() if names is not None}
        nearest = min(differing, key=lambda each: len(differing[each]), default=None)
        if nearest is not None and not differing[nearest]:
            found[nearest].append(cell)
        elif nearest is not None and differing[nearest] == _LOADER:
            otherwise.setdefault(nearest, []).append(cell)
        elif nearest is not None and any(cell is one for one in mine):
            apart.append(differing[nearest])
    for each, cells in otherwise.items():
        # What loads as published goes before what does not.
        fed = {_place(source) for source in found[each] if isinstance(source, Cell)}
        found[each] += (cell for cell in cells if _place(cell) not in fed)
    loose = {id(cell) for cells in otherwise.values() for cell in cells}
    rows = [_row(sources, metric, loose) for sources in found.values() if sources]
    return StudyFigure(study, metric, tuple(rows), tuple(apart))


def _place(cell: Cell) -> tuple[str, str, str]:
    return cell.machine, cell.card, cell.key.precision


def _row(sources: Sequence[Claim | Cell], metric: str, loose: Collection[int]) -> StudyRow:
    """Return the sources over the best of them, the best first; `loose` are the ids with another loader."""
    entries = [replace(_entry(source, metric), loader=id(source) in loose) for source in sources]
    values = [entry.value for entry in entries]
    if CLAIMED[metric].more_is_better:
        scaled = [replace(entry, scaled=max(values) / entry.value) for entry in entries]
    else:
        scaled = [replace(entry, scaled=entry.value / min(values)) for entry in entries]
    first = next(source for source in sources if isinstance(source, Claim))
    return StudyRow(first, tuple(sorted(scaled, key=lambda entry: entry.scaled)))


def _entry(source: Claim | Cell, metric: str) -> StudyEntry:
    if isinstance(source, Claim):
        return StudyEntry(source, source.of.precision or "", source.value or 0.0)
    figure = measured_of(source, metric)
    assert figure is not None and figure.mean is not None
    return StudyEntry(source, source.key.precision, figure.mean)
