"""Published studies drawn again with what was measured.

A row is what one publication has of a model on equal terms: protocol, sizes, layout, profile, options, and
the batch, or the batches where a study fixes one for each precision. What did the work of a published figure,
in its precision and batch, is drawn beside it, on whatever card and software; another loader is named. A
picture is of one protocol and one size of images.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from harness.record.published.cards import Card
from report.analysis import Analysis
from report.claims.answers import terms_beside
from report.claims.claimed_work import asked_key, measured_of
from report.compare.cells import Cell
from report.metrics import CLAIMED
from report.trials.key import FRAMEWORK, Value, grouped_by

DRAWN = (
    *("protocol_seconds", "epoch_seconds", "step_seconds", "inference_seconds"),
    *("throughput", "peak_bytes"),
)
"""The metrics of claims that make a picture."""


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
    """One metric of a study."""

    study: str
    metric: str
    rows: tuple[StudyRow, ...]
    apart: tuple[tuple[str, Value], ...] = ()
    """Its difference from other pictures of the study and metric, by name and value."""
    left_out: int = 0
    """Figures for which a picture has no room."""

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


def figures_of_studies(analysis: Analysis) -> tuple[StudyFigure, ...]:
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

    found = study_figures(claims, _study_cells(analysis), analysis.evidence.cards)
    return tuple(sorted(found, key=telling, reverse=True))


def published_times(analysis: Analysis) -> dict[int, list[tuple[Claim, bool]]]:
    """Return by a cell's id each published time of the same work, and whether another loader fed it.

    The card and the software may be others.
    """
    beside: dict[int, list[tuple[Claim, bool]]] = {}
    timed = (
        figure
        for figure in figures_of_studies(analysis)
        if figure.metric == "protocol_seconds" and figure.measured
    )
    for row in (row for figure in timed for row in figure.rows if row.measured):
        claims = [entry.source for entry in row.entries if isinstance(entry.source, Claim)]
        for entry in row.entries:
            beside.setdefault(id(entry.source), []).extend((claim, entry.loader) for claim in claims)
    return beside


def _study_cells(analysis: Analysis) -> list[Cell]:
    """Return this machine's cells, one of each work and card, and those of the sessions named with it.

    The leading session's goes before others, then the newest.
    """
    machines = {trial.machine for trial in analysis.own}

    def first(cell: Cell) -> tuple[bool, str, bool, int]:
        leads = cell.session == analysis.lead
        return leads, "" if leads else f"{cell.started_at:%Y-%m-%d %H:%M}", cell.ranked, cell.throughput.n

    cells = sorted(analysis.page_cells, key=first, reverse=True)
    own = grouped_by((cell for cell in cells if cell.machine in machines), lambda cell: (cell.key, cell.card))
    beside = (cell for cell in cells if cell.machine not in machines)
    return [
        *(alike[0] for alike in own.values()),
        *(cell for cell in beside if cell.session in analysis.request.named),
    ]


def study_figures(
    claims: Iterable[Claim], cells: Sequence[Cell], cards: Sequence[Card] = ()
) -> tuple[StudyFigure, ...]:
    """Return what each study published, with those of the cells that were measured on its terms."""
    absolute = (claim for claim in claims if claim.kind == "absolute" and claim.metric in DRAWN)
    known = (claim for claim in absolute if claim.value is not None and claim.value > 0)
    found = []
    for (study, metric, _), members in grouped_by(known, lambda c: (c.study, c.metric, c.unit)).items():
        parts = grouped_by(members, _subject_of_picture)
        for part, same in parts.items():
            rows = tuple(_row(alike, cells, cards) for alike in _claims_of_rows(same))
            differing = tuple(pair for at, pair in enumerate(part) if len({each[at] for each in parts}) > 1)
            found.append(StudyFigure(study, metric, rows, differing))
    return tuple(found)


def _subject_of_picture(claim: Claim) -> tuple[tuple[str, Value], ...]:
    """What all figures of a picture have in common: the data follow from the workload and its protocol."""
    size = dict(asked_key(claim, claim.of).fields).get("image_size")
    return ("workload", claim.workload), ("protocol", claim.protocol), ("image_size", size)


def _claims_of_rows(claims: Iterable[Claim]) -> Iterator[list[Claim]]:
    """Yield the claims of each row: in one where a protocol fixes a batch for each precision."""

    def work(claim: Claim) -> Hashable:
        asked = asked_key(claim, claim.of).less("precision", "batch_size", FRAMEWORK)
        return asked.fields, tuple(sorted(asked.options))

    for alike in grouped_by(claims, work).values():
        batches = {(claim.of.precision, claim.of.batch_size) for claim in alike}
        fixed = alike[0].protocol.startswith("published")
        if fixed and len(batches) == len({precision for precision, _ in batches}):
            yield alike
        else:
            yield from grouped_by(alike, lambda claim: claim.of.batch_size).values()


def _row(claims: Sequence[Claim], cells: Iterable[Cell], cards: Sequence[Card]) -> StudyRow:
    """Return the claims of a row with the cells that did their work, over the best, the best first."""
    metric = claims[0].metric
    beside = {
        id(cell): (cell, all("loader" in terms for terms in met))
        for cell in cells
        if (met := [each for claim in claims if (each := terms_beside(claim, cell, cards)) is not None])
    }
    # What loads as published goes before what does not.
    fed = {_place(cell) for cell, loader in beside.values() if not loader}
    shown = [(cell, loader) for cell, loader in beside.values() if not loader or _place(cell) not in fed]
    entries = [StudyEntry(claim, claim.of.precision or "", claim.value or 0.0) for claim in claims]
    entries += [
        StudyEntry(cell, cell.key.precision, figure.mean or 0.0, loader=loader)
        for cell, loader in shown
        if (figure := measured_of(cell, metric))
    ]
    values = [entry.value for entry in entries]
    more = CLAIMED[metric].more_is_better
    scaled = [
        replace(entry, scaled=max(values) / entry.value if more else entry.value / min(values))
        for entry in entries
    ]
    return StudyRow(claims[0], tuple(sorted(scaled, key=lambda entry: entry.scaled)))


def _place(cell: Cell) -> Hashable:
    return cell.machine, cell.card, cell.key.precision
