"""Studies drawn again with what was measured: which figures stand in one row.

A row is one model on a number of devices, and on one kind of data where an option names it. It has the terms
of one publication: protocol, data mode, image size, layout, profile, options, and the batch, or the batches
where a study fixes one for each precision. What has other terms, as far as both say theirs, is counted and
stands in no row. Cards, precisions and software stacks may differ within a row.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim
from report.claims.matching import asked_by, measured_of, scaled_down
from report.compare.cells import Cell
from report.compare.key import PartialKey
from report.metrics import CLAIMED
from report.trials.key import DATA, FRAMEWORK, LOADER_ALONE, NAMES, Value, grouped_by

DRAWN = (
    "protocol_seconds",
    "epoch_seconds",
    "step_seconds",
    "inference_seconds",
    "throughput",
    "peak_bytes",
)
"""The metrics of claims that make a picture."""

OF_A_PASS = ("protocol_seconds", "epoch_seconds")
FEWER_IMAGES = "train_images"
"""An option by which a pass over the data is shorter than the protocol's: its seconds are of another work."""

_TERMS = ("protocol", "data_mode", "image_size", "layout", "profile")

MOST_BARS = 24
"""Of a picture."""
MOST_IN_ROW = 8
LEAST_ROWS = 3
"""For so many rows a picture has room, where a study has as many."""


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """A published figure, or a measured one. `scaled` is how many times the best of its row it takes."""

    source: Claim | Cell
    precision: str
    batch_size: int | None
    value: float
    differs: tuple[tuple[str, Value], ...] = ()
    """The terms in which it is not its row's, each with its own value; empty of what stands in a row."""
    scaled: float = 1.0


@dataclass(frozen=True, slots=True)
class StudyRow:
    """Entries of one model on equal terms, the best first, which is 1.00."""

    workload: str
    model: str
    gpus: int
    epochs: int | None
    data: str | None
    """What an option says of the data, such as 'synthetic'; null where the publication has no such option."""
    entries: tuple[StudyEntry, ...]
    published_apart: int = 0
    """Published figures on other terms."""
    other_terms: tuple[tuple[str, ...], ...] = ()
    """Of each figure of this machine that stands on other terms, what differs."""

    @property
    def measured(self) -> int:
        """How many measured figures stand in the row."""
        return sum(isinstance(entry.source, Cell) for entry in self.entries)


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """One metric of a study."""

    study: str
    metric: str
    rows: tuple[StudyRow, ...]
    left_out: int = 0
    """Figures that have no room, and published ones on other terms."""

    @property
    def measured(self) -> int:
        """How many measured figures are in it."""
        return sum(row.measured for row in self.rows)

    @property
    def other_terms(self) -> tuple[tuple[str, ...], ...]:
        """Of each figure of this machine that stands in no row, the names of the terms that differ."""
        return tuple(names for row in self.rows for names in row.other_terms)


def study_figures(
    claims: Iterable[Claim], own: Sequence[Cell], beside: Sequence[Cell] = ()
) -> tuple[StudyFigure, ...]:
    """Every study with a published duration, throughput or peak of memory, in the order of the claims.

    `own` are this machine's cells, of equal ones the one to draw first; `beside` those of others. Rows are in
    the order of the publication, and have all that stands on their terms: `fitted` makes room.
    """
    absolute = [claim for claim in claims if claim.kind == "absolute" and claim.metric in DRAWN]
    known = [claim for claim in absolute if claim.value is not None and claim.value > 0]
    drawn = _once(known, {cell.key.protocol for cell in own})
    figures = grouped_by(drawn, lambda claim: (claim.study, claim.metric, claim.unit))
    return tuple(
        _figure(study, metric, members, own, beside) for (study, metric, _), members in figures.items()
    )


def _once(claims: Sequence[Claim], measured: Collection[str]) -> list[Claim]:
    """Without a program's figures that a protocol of ours is held against too, unless the program was run."""

    def figure(claim: Claim) -> tuple[str, str, float | None]:
        return claim.study, claim.metric, claim.value

    told = {figure(claim) for claim in claims if claim.of.precision != "program"}
    return [
        claim
        for claim in claims
        if claim.of.precision != "program" or claim.protocol in measured or figure(claim) not in told
    ]


def fitted(figure: StudyFigure, most: int = MOST_BARS) -> StudyFigure:
    """The figure with as many bars as a picture has room for: of the rows nearest to what was measured.

    Rows without a measured figure stay where nothing was measured at all. The order is the publication's.
    """
    in_row = min(MOST_IN_ROW, max(most // LEAST_ROWS, 4))
    rows = [_with_room(row, in_row) for row in figure.rows if row.measured or not figure.measured]
    order = sorted(rows, key=lambda row: -row.measured) if figure.measured else rows
    kept: list[StudyRow] = []
    bars = 0
    for row in order:
        if not kept or bars + len(row.entries) <= most:
            kept.append(row)
            bars += len(row.entries)
    everything = sum(len(row.entries) + row.published_apart for row in figure.rows)
    chosen = tuple(row for row in rows if any(row is other for other in kept))
    return replace(figure, rows=chosen, left_out=figure.left_out + everything - bars)


def _figure(
    study: str, metric: str, claims: Sequence[Claim], own: Sequence[Cell], beside: Sequence[Cell]
) -> StudyFigure:
    by_row = grouped_by(claims, _row_of_claim)
    rows = [_row(place, members, metric, own, beside) for place, members in by_row.items()]
    return StudyFigure(study, metric, tuple(rows))


_RowPlace = tuple[str, str, int, int | None, str | None]


def _row_of_claim(claim: Claim) -> _RowPlace:
    epochs = claim.epochs if claim.metric == "protocol_seconds" else None
    return claim.workload, claim.of.model.casefold(), claim.of.gpus, epochs, _data(claim.of.options)


def _data(options: Mapping[str, Value]) -> str | None:
    named = options.get(DATA)
    return None if named is None else str(named)


def _in_row(cell: Cell, place: _RowPlace, metric: str) -> bool:
    workload, model, gpus, epochs, data = place
    figure = measured_of(cell, metric)
    return (
        (cell.key.workload, cell.key.model.casefold(), cell.key.gpus) == (workload, model, gpus)
        and cell.key.nodes == 1
        and epochs in (None, cell.length.epochs)
        and data in (None, _data(dict(cell.key.options)))
        and cell.key.protocol != LOADER_ALONE
        and not (metric in OF_A_PASS and FEWER_IMAGES in dict(cell.key.options))
        and figure is not None
        and figure.mean is not None
        and figure.mean > 0
    )


def _row(
    place: _RowPlace, claims: Sequence[Claim], metric: str, own: Sequence[Cell], beside: Sequence[Cell]
) -> StudyRow:
    of_row = (cell for cell in own if _in_row(cell, place, metric))
    mine = [alike[0] for alike in grouped_by(of_row, lambda cell: (cell.key, cell.card)).values()]
    base = _base(claims, mine, metric)
    measured = [_measured(cell, base, metric) for cell in mine]
    others = [_measured(cell, base, metric) for cell in beside if _in_row(cell, place, metric)]
    published = [_published(claim, base) for claim in claims]
    entries = [entry for entry in (*published, *measured, *others) if not entry.differs]
    workload, _, gpus, epochs, data = place
    other_terms = tuple(tuple(name for name, _ in entry.differs) for entry in measured if entry.differs)
    apart = sum(bool(entry.differs) for entry in published)
    model = claims[0].of.model
    return StudyRow(workload, model, gpus, epochs, data, _scaled(entries, metric), apart, other_terms)


# Terms


@dataclass(frozen=True, slots=True)
class _Base:
    """The terms of one publication, and its batches with the precision of each."""

    terms: PartialKey
    batches: frozenset[tuple[str | None, int]]

    def takes_batch(self, precision: str | None, batch_size: int | None) -> bool:
        """Whether a batch is one that was published for its precision, or for any where none was for it."""
        if batch_size is None or not self.batches:
            return True
        same = {batch for published, batch in self.batches if published == precision}
        return batch_size in (same or {batch for _, batch in self.batches})


def _base(claims: Sequence[Claim], own: Sequence[Cell], metric: str) -> _Base:
    """The terms on which most was measured, or that come nearest to it; else those of the most entries."""
    groups = grouped_by(claims, _terms_of).values()

    def fit(base: _Base) -> tuple[int, int, int]:
        differing = [len(_measured(cell, base, metric).differs) for cell in own]
        published = sum(not _published(claim, base).differs for claim in claims)
        return differing.count(0), -sum(differing), published

    return max((base for members in groups for base in _bases(members)), key=fit)


def _bases(claims: Sequence[Claim]) -> list[_Base]:
    """One for all where a published protocol fixes a batch for each precision, else one for each batch."""
    terms = _terms_of(claims[0])
    batches = {(c.of.precision, c.of.batch_size) for c in claims if c.of.batch_size is not None}
    published = claims[0].protocol.startswith("published")
    if not batches or (published and len(batches) == len({precision for precision, _ in batches})):
        return [_Base(terms, frozenset(batches))]
    return [
        _Base(terms, frozenset(pair for pair in batches if pair[1] == size))
        for size in dict.fromkeys(claim.of.batch_size for claim in claims if claim.of.batch_size)
    ]


def _terms_of(source: Claim | Cell) -> PartialKey:
    """The terms of a figure, its batch and framework aside; without what a publication does not say."""
    whole = PartialKey.of(source.key) if isinstance(source, Cell) else asked_by(source, source.of)
    terms = tuple((name, value) for name, value in whole.fields if name in _TERMS and value is not None)
    return PartialKey(terms, tuple(sorted(whole.less(FRAMEWORK).options)))


def _differs(source: Claim | Cell, base: _Base) -> list[tuple[str, Value]]:
    """The terms that are not the base's, as far as both say theirs; an option that one of them has alone."""
    found = base.terms.differences(_terms_of(source))
    return [(NAMES.get(each.field, each.field), each.here) for each in found]


def _published(claim: Claim, base: _Base) -> StudyEntry:
    assert claim.value is not None
    side = claim.of
    return _entry(claim, side.precision or "", side.batch_size, claim.value, _differs(claim, base), base)


def _measured(cell: Cell, base: _Base, metric: str) -> StudyEntry:
    figure = measured_of(cell, metric)
    assert figure is not None and figure.mean is not None
    differs = _differs(cell, base)
    if scaled_down(cell):
        differs.append(("size of the model", "scaled down"))
    if cell.key.data_source == "generated" and not CLAIMED[metric].on_generated:
        differs.append((NAMES["data_source"], "generated"))
    return _entry(cell, cell.key.precision, cell.key.batch_size, figure.mean, differs, base)


def _entry(
    source: Claim | Cell,
    precision: str,
    batch_size: int | None,
    value: float,
    differs: Sequence[tuple[str, Value]],
    base: _Base,
) -> StudyEntry:
    other = () if base.takes_batch(precision or None, batch_size) else ((NAMES["batch_size"], batch_size),)
    return StudyEntry(source, precision, batch_size, value, (*other, *differs))


# Order and room


def _scaled(entries: Sequence[StudyEntry], metric: str) -> tuple[StudyEntry, ...]:
    """The entries over the best of the row, the best first."""
    values = [entry.value for entry in entries]
    if CLAIMED[metric].more_is_better:
        scaled = [replace(entry, scaled=max(values) / entry.value) for entry in entries]
    else:
        scaled = [replace(entry, scaled=entry.value / min(values)) for entry in entries]
    return tuple(sorted(scaled, key=lambda entry: entry.scaled))


def _with_room(row: StudyRow, most: int) -> StudyRow:
    """The row with as many entries: its best, what was measured, and what was published nearest to that.

    Two places at least are for what was published.
    """
    measured = [entry for entry in row.entries if isinstance(entry.source, Cell)]
    published = [entry for entry in row.entries if isinstance(entry.source, Claim)]
    centre = min((entry.scaled for entry in measured), default=1.0)

    def nearness(entry: StudyEntry) -> tuple[bool, float]:
        return entry.scaled != 1.0, abs(math.log(entry.scaled / centre))

    kept = measured[: max(most - min(2, len(published)), 1)]
    kept += sorted(published, key=nearness)[: most - len(kept)]
    chosen = set(map(id, kept))
    return replace(row, entries=tuple(entry for entry in row.entries if id(entry) in chosen))
