"""Studies drawn again with what was measured: which figures stand in one row, and which behind its line.

A row is one model on a number of devices, and on one kind of data where an option names it. It has the terms
of one publication: protocol, data mode, image size, layout, profile, options, and the batch, or the batches
where a study fixes one for each precision. What has other terms, as far as both say theirs, stands behind the
row's line with what differs. Cards, precisions and software stacks may differ within a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from harness.record import Claim
from report.claims.matching import LENGTH_OPTIONS, PUBLISHED_IMAGE_SIZES, SCALED_DOWN, smaller
from report.claims.metrics import METRICS
from report.comparisons.cells import Cell
from report.comparisons.figures import Figure
from report.trials.key import DATA, FRAMEWORK, LOADER_ALONE, NAMES, PARALLEL, Pairs, Value
from report.trials.pairs import grouped_by

DRAWN = (
    "protocol_seconds",
    "epoch_seconds",
    "step_seconds",
    "inference_seconds",
    "throughput",
    "peak_bytes",
)
"""The metrics of claims that make a picture."""

MORE_IS_BETTER = ("throughput",)
OF_A_PASS = ("protocol_seconds", "epoch_seconds")
FEWER_IMAGES = "train_images"
"""An option by which a pass over the data is shorter than the protocol's: its seconds are of another work."""

_TERMS = ("protocol", "data_mode", "image_size", "layout", "profile")

MOST_LINES = 18
"""Of a picture; the name of a row is a line, and so is each figure and what parts those behind it.

Two such pictures fit on a sheet of paper, and one on a phone.
"""
MOST_PICTURES = 48
"""Of one metric of a study; the rows of further ones are a table."""
MOST_PUBLISHED, MOST_MEASURED = 12, 6
"""In a row."""
MOST_PUBLISHED_BEHIND, MOST_MEASURED_BEHIND = 6, 4


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """A published figure, or a measured one. `scaled` is how many times the best of its row it takes."""

    source: Claim | Cell
    precision: str
    batch_size: int | None
    value: float
    differs: tuple[tuple[str, Value], ...] = ()
    """The terms in which it is not its row's, each with its own value; empty where it stands in the row."""
    scaled: float = 1.0


@dataclass(frozen=True, slots=True)
class StudyRow:
    """Entries of one model, the best first; 1.00 is the best that stands in the row."""

    workload: str
    model: str
    gpus: int
    epochs: int | None
    data: str | None
    """What an option says of the data, such as 'synthetic'; null where the publication has no such option."""
    entries: tuple[StudyEntry, ...]
    behind: tuple[StudyEntry, ...] = ()
    left_out: tuple[StudyEntry, ...] = ()
    """What a picture has no room for."""

    @property
    def measured(self) -> int:
        """How many measured figures stand in the row."""
        return sum(isinstance(entry.source, Cell) for entry in self.entries)

    @property
    def measured_behind(self) -> int:
        """How many measured figures stand behind its line."""
        return sum(isinstance(entry.source, Cell) for entry in self.behind)


@dataclass(frozen=True, slots=True)
class StudyFigure:
    """One metric of a study and of those that are named after it."""

    study: str
    metric: str
    unit: str
    rows: tuple[StudyRow, ...]
    folded: tuple[StudyRow, ...] = ()
    """Rows that a picture has no room for."""


def study_figures(
    claims: Iterable[Claim], own: Sequence[Cell], beside: Sequence[Cell] = ()
) -> tuple[StudyFigure, ...]:
    """Every study with a published duration, throughput or peak of memory, in the order of the claims.

    `own` are this machine's cells, of equal ones the one to draw first; of those `beside` only what stands in
    a row is drawn.
    """
    drawn = [claim for claim in claims if _is_drawn(claim)]
    studies = list(dict.fromkeys(claim.study for claim in drawn))
    figures = grouped_by(drawn, lambda claim: (_family(claim.study, studies), claim.metric, claim.unit))
    return tuple(
        _figure(study, metric, members, own, beside) for (study, metric, _), members in figures.items()
    )


def pictures(figure: StudyFigure) -> tuple[StudyFigure, ...]:
    """The figure itself, then the rows that it has no room for, as many to a picture as that has room for.

    What MOST_PICTURES have no room for stays folded in the last.
    """
    sheets: list[list[StudyRow]] = [[]]
    for row in figure.folded:
        if not _has_room([*sheets[-1], row]) and sheets[-1]:
            sheets.append([])
        sheets[-1].append(row)
    if not figure.folded:
        return (figure,)
    drawn, rest = sheets[: MOST_PICTURES - 1], sheets[MOST_PICTURES - 1 :]
    further = [replace(figure, rows=tuple(sheet), folded=()) for sheet in drawn]
    further[-1] = replace(further[-1], folded=tuple(row for sheet in rest for row in sheet))
    return replace(figure, folded=()), *further


def _has_room(rows: Sequence[StudyRow]) -> bool:
    return sum(map(_lines, rows)) <= MOST_LINES


def _lines(row: StudyRow) -> int:
    return 1 + len(row.entries) + len(row.behind) + bool(row.behind)


def _is_drawn(claim: Claim) -> bool:
    return claim.kind == "absolute" and claim.metric in DRAWN and claim.value is not None and claim.value > 0


def _family(study: str, studies: Sequence[str]) -> str:
    """The study that one is named after: '004' of '004-perbos', where there is a study '004'."""
    return min((name for name in studies if f"{study}-".startswith(f"{name}-")), key=len, default=study)


def _figure(
    study: str, metric: str, claims: Sequence[Claim], own: Sequence[Cell], beside: Sequence[Cell]
) -> StudyFigure:
    ordered = sorted(claims, key=lambda claim: (claim.study != study, claim.study))
    by_row = grouped_by(ordered, _row_of_claim)
    rows = [_row(place, members, metric, own, beside) for place, members in by_row.items()]
    kept = _nearest_rows(rows)
    return StudyFigure(
        study,
        metric,
        claims[0].unit,
        tuple(row for place, row in enumerate(rows) if place in kept),
        tuple(row for place, row in enumerate(rows) if place not in kept),
    )


_RowPlace = tuple[str, str, int, int | None, str | None]


def _row_of_claim(claim: Claim) -> _RowPlace:
    epochs = claim.epochs if claim.metric == "protocol_seconds" else None
    return claim.workload, claim.of.model.casefold(), claim.of.gpus, epochs, _data(claim.of.options)


def _data(options: Mapping[str, Value]) -> str | None:
    named = options.get(DATA)
    return None if named is None else str(named)


def _in_row(cell: Cell, place: _RowPlace, metric: str) -> bool:
    workload, model, gpus, epochs, data = place
    figure = figure_of(cell, metric)
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


def figure_of(cell: Cell, metric: str) -> Figure | None:
    """What a cell has measured of a claim's metric; null where no cell has it."""
    name = METRICS[metric].figure
    figure: Figure | None = getattr(cell, name) if name else None
    return figure


def _nearest_rows(rows: Sequence[StudyRow]) -> frozenset[int]:
    """The places of those with something measured, and of what stands nearest to them in the publication."""
    own = [place for place, row in enumerate(rows) if row.measured or row.measured_behind] or [0]
    order = sorted(range(len(rows)), key=lambda place: min(abs(place - other) for other in own))
    taken = accumulate(_lines(rows[n]) for n in order)
    room = max(sum(lines <= MOST_LINES for lines in taken), 1)
    return frozenset(order[:room])


def _row(
    place: _RowPlace, claims: Sequence[Claim], metric: str, own: Sequence[Cell], beside: Sequence[Cell]
) -> StudyRow:
    mine = _one_of_each(cell for cell in own if _in_row(cell, place, metric))
    base = _base(claims, mine, metric)
    measured = [_measured(cell, base, metric) for cell in mine]
    others = [_measured(cell, base, metric) for cell in beside if _in_row(cell, place, metric)]
    published = [_published(claim, base) for claim in claims]
    entries = [*published, *measured, *(entry for entry in others if not entry.differs)]
    workload, _, gpus, epochs, data = place
    row = StudyRow(workload, claims[0].of.model, gpus, epochs, data, _scaled(entries, metric))
    return _with_room(row)


def _one_of_each(cells: Iterable[Cell]) -> list[Cell]:
    """The first of equal works."""
    return [alike[0] for alike in grouped_by(cells, lambda cell: (cell.key, cell.card)).values()]


# Terms


@dataclass(frozen=True, slots=True)
class _Base:
    """The terms of one publication, and its batches with the precision of each."""

    terms: Pairs
    options: Pairs
    batches: frozenset[tuple[str | None, int]]

    def takes_batch(self, precision: str | None, batch_size: int | None) -> bool:
        """Whether a batch is one that was published for its precision, or for any where none was for it."""
        if batch_size is None or not self.batches:
            return True
        same = {batch for published, batch in self.batches if published == precision}
        return batch_size in (same or {batch for _, batch in self.batches})


def _base(claims: Sequence[Claim], own: Sequence[Cell], metric: str) -> _Base:
    """The publication on whose terms most was measured, or to which it comes nearest; else the first study's,
    with the most entries."""
    groups = grouped_by(claims, lambda claim: (claim.study, _terms_of(claim), _options_of(claim)))
    bases = [(study, base) for (study, *_), members in groups.items() for base in _bases(members)]

    def fit(place: tuple[str, _Base]) -> tuple[int, int, bool, int]:
        study, base = place
        differing = [len(_measured(cell, base, metric).differs) for cell in own]
        published = sum(not _published(claim, base).differs for claim in claims)
        return differing.count(0), -sum(differing), study == claims[0].study, published

    return max(bases, key=fit)[1]


def _bases(claims: Sequence[Claim]) -> list[_Base]:
    """One for all where a published protocol fixes a batch for each precision, else one for each batch."""
    terms, options = _terms_of(claims[0]), _options_of(claims[0])
    batches = {(c.of.precision, c.of.batch_size) for c in claims if c.of.batch_size is not None}
    published = claims[0].protocol.startswith("published")
    if not batches or (published and len(batches) == len({precision for precision, _ in batches})):
        return [_Base(terms, options, frozenset(batches))]
    return [
        _Base(terms, options, frozenset(pair for pair in batches if pair[1] == size))
        for size in dict.fromkeys(claim.of.batch_size for claim in claims if claim.of.batch_size)
    ]


def _terms_of(source: Claim | Cell) -> Pairs:
    """The terms of a figure, its batch and options aside; null where a publication does not say."""
    if isinstance(source, Cell):
        key = source.key
        values: tuple[Value, ...] = (key.protocol, key.data_mode, key.image_size, key.layout, key.profile)
    else:
        side = source.of
        size = side.image_size or PUBLISHED_IMAGE_SIZES.get((source.workload, source.protocol))
        values = (source.protocol, side.data_mode, size, side.layout, "default")
    return tuple(zip(map(NAMES.__getitem__, _TERMS), values, strict=True))


def _options_of(source: Claim | Cell) -> Pairs:
    options = source.key.options if isinstance(source, Cell) else sorted(source.of.options.items())
    return tuple((name, value) for name, value in options if name != FRAMEWORK)


def _differs(source: Claim | Cell, base: _Base) -> list[tuple[str, Value]]:
    """The terms that are not the base's, as far as both say theirs; an option that one of them has alone."""
    mine = dict(_terms_of(source))
    other = [
        (name, mine[name])
        for name, value in base.terms
        if value is not None and mine[name] not in (None, value)
    ]
    options, named = dict(_options_of(source)), dict(base.options)
    other += [(name, options.get(name)) for name, value in named.items() if options.get(name) != value]
    free = (*named, *LENGTH_OPTIONS, PARALLEL)
    return other + [(name, value) for name, value in options.items() if name not in free]


def _published(claim: Claim, base: _Base) -> StudyEntry:
    assert claim.value is not None
    side = claim.of
    return _entry(claim, side.precision or "", side.batch_size, claim.value, _differs(claim, base), base)


def _measured(cell: Cell, base: _Base, metric: str) -> StudyEntry:
    figure = figure_of(cell, metric)
    assert figure is not None and figure.mean is not None
    differs = _differs(cell, base)
    if any(note.startswith(SCALED_DOWN) for note in smaller(cell)):
        differs.append(("standing", "scaled down"))
    if cell.key.data_source == "generated" and not METRICS[metric].on_generated:
        differs.append(("standing", "generated data"))
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
    """The entries over the best that stands in the row, the best first."""
    values = [entry.value for entry in entries if not entry.differs]
    if metric in MORE_IS_BETTER:
        scaled = [replace(entry, scaled=max(values) / entry.value) for entry in entries]
    else:
        scaled = [replace(entry, scaled=entry.value / min(values)) for entry in entries]
    return tuple(sorted(scaled, key=lambda entry: entry.scaled))


def _with_room(row: StudyRow) -> StudyRow:
    """The row with as many entries as a picture has room for: those nearest to what was measured."""
    measured = [entry for entry in row.entries if isinstance(entry.source, Cell)]
    published = [entry for entry in row.entries if isinstance(entry.source, Claim)]
    known = {entry.precision for entry in published if not entry.differs}
    centre = min((entry.scaled for entry in measured if not entry.differs), default=1.0)

    def nearness(entry: StudyEntry) -> tuple[bool, int, bool, float]:
        best = not entry.differs and entry.scaled == 1.0
        distance = abs(math.log(entry.scaled / centre))
        return not best, len(entry.differs), entry.precision not in known, distance

    kept: list[StudyEntry] = []
    for members, most, most_behind in (
        (published, MOST_PUBLISHED, MOST_PUBLISHED_BEHIND),
        (measured, MOST_MEASURED, MOST_MEASURED_BEHIND),
    ):
        nearest = sorted(members, key=nearness)
        kept += [entry for entry in nearest if not entry.differs][:most]
        kept += [entry for entry in nearest if entry.differs][:most_behind]
    chosen = {id(entry) for entry in kept}
    shown = [entry for entry in row.entries if id(entry) in chosen]
    return replace(
        row,
        entries=tuple(entry for entry in shown if not entry.differs),
        behind=tuple(entry for entry in shown if entry.differs),
        left_out=tuple(entry for entry in row.entries if id(entry) not in chosen),
    )
