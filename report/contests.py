"""Cells → contests: the lines that may stand in one chart, and why the others stand elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.record import Claim, Curve, Side
from report.comparability import (
    Key,
    Length,
    Pairs,
    Value,
    differing,
    stack_differences,
    value_of,
    without_precision,
)
from report.stats import Cell, Ratio, cell_ratio, own_spread

PRECISIONS = (
    "fp32-ieee",
    "fp32-default",
    "fp32-tf32",
    "amp-fp16",
    "amp-bf16",
    "fp16-master",
    "pure-fp16",
    "pure-bf16",
)
PUBLISHED_IMAGE_SIZES = {("cifar_fastai", "published/1"): 224}
"""Pixels; a plan may ask for smaller images, which no published figure stands for."""

FULL_PRECISION = ("fp32-ieee", "fp32-default", "fp32-tf32")


Place = tuple[Key, tuple[int, int, int], Pairs]
"""What the cells of one contest share: the base, the protocol's length, and the limit of projected runs."""


@dataclass(frozen=True, slots=True)
class Line:
    """One cell in a contest. `scaled` is its duration ÷ the reference's."""

    cell: Cell
    own: bool
    """Whether it belongs to the session that leads the page."""
    scaled: Ratio | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times as fast `of` trains as `over`, on one machine; both are named wherever it stands."""

    of: Cell
    over: Cell
    ratio: Ratio
    differs: tuple[tuple[str, Value, Value], ...]
    """What differs besides the precision."""


@dataclass(frozen=True, slots=True)
class Contest:
    """Lines whose keys are equal but for the precision, which every line names."""

    base: Key
    length: Length
    lines: tuple[Line, ...]
    published: tuple[Claim, ...]
    stacks: tuple[tuple[str, tuple[str, ...]], ...]
    baseline_missing: bool = False
    comparisons: int = 0
    """How many ratios the level of the time-scaled chart holds for together."""

    @property
    def ranked(self) -> bool:
        return all(line.cell.ranked for line in self.lines)

    @property
    def reference(self) -> Line | None:
        return next((line for line in self.lines if line.reference), None)


def contests(
    cells: Sequence[Cell], lead: str | None, *, baseline: str | None, claims: Sequence[Claim]
) -> tuple[Contest, ...]:
    """The contests of the leading session; cells of other sessions join where their key is equal."""
    own = [cell for cell in cells if cell.session == lead]
    batched = _with_batch_apart(cells)
    groups: dict[Place, list[Cell]] = {}
    for cell in own:
        groups.setdefault(_place(cell, batched), [])
    for place in _spare(groups):
        del groups[place]
    for cell in cells:
        for place, members in groups.items():
            if _belongs(cell, place, batched):
                members.append(cell)
    return tuple(
        _contest(place[0], members, lead, baseline, claims) for place, members in groups.items() if members
    )


def left_over(cells: Sequence[Cell], found: Sequence[Contest]) -> tuple[Cell, ...]:
    """Cells that no contest took in."""
    taken = {id(line.cell) for contest in found for line in contest.lines}
    return tuple(cell for cell in cells if id(cell) not in taken)


def _with_batch_apart(cells: Iterable[Cell]) -> frozenset[Key]:
    """Bases in which one precision occurs at several batch sizes: there the batch keeps lines apart.

    A published protocol that fixes one batch per precision is drawn in one chart, as it was published.
    """
    batches: dict[tuple[Key, str], set[int]] = {}
    for cell in cells:
        base = without_precision(cell.key, batch_too=True)
        batches.setdefault((base, cell.key.precision), set()).add(cell.key.batch_size)
    several = {base for (base, _), sizes in batches.items() if len(sizes) > 1}
    free = {base for base, _ in batches if not base.protocol.startswith("published")}
    return frozenset(several | free)


def _base(cell: Cell, batched: frozenset[Key]) -> Key:
    loose = without_precision(cell.key, batch_too=True)
    return without_precision(cell.key) if loose in batched else loose


def _place(cell: Cell, batched: frozenset[Key]) -> Place:
    base, length = _base(cell, batched), cell.length
    # Steps follow from the batch: they keep lines apart only where the batch does.
    steps = (length.steps_per_epoch, length.valid_batches) if base.batch_size else (0, 0)
    return (base, (*steps, length.epochs), length.limit)


def _spare(places: Iterable[Place]) -> list[Place]:
    """Places of whole runs alone, where projected runs of the same protocol have one that takes them in."""
    known = list(places)
    projected = {place[:2] for place in known if place[2]}
    return [place for place in known if not place[2] and place[:2] in projected]


def _belongs(cell: Cell, place: Place, batched: frozenset[Key]) -> bool:
    mine = _place(cell, batched)
    return mine[:2] == place[:2] and (mine[2] == place[2] or not cell.length.projected)


def _contest(
    base: Key, members: Sequence[Cell], lead: str | None, baseline: str | None, claims: Sequence[Claim]
) -> Contest:
    ordered = sorted(members, key=lambda cell: (cell.session != lead, cell.card, _rank(cell)))
    chosen = _reference(ordered, baseline)
    comparisons = sum(cell.seconds.n > 1 for cell in ordered if cell is not chosen)
    lines = tuple(_line(cell, chosen, lead, comparisons) for cell in ordered)
    return Contest(
        base=base,
        length=ordered[0].length,
        lines=lines,
        published=tuple(claim for claim in claims if _drawn_in(claim, base, ordered)),
        stacks=stack_differences(tuple(cell.stack for cell in ordered)),
        baseline_missing=baseline is not None and not any(names(cell, baseline) for cell in ordered),
        comparisons=comparisons,
    )


def _rank(cell: Cell) -> tuple[int, int, bool]:
    return (PRECISIONS.index(cell.key.precision), cell.key.batch_size, cell.length.projected)


def _line(cell: Cell, chosen: Cell | None, lead: str | None, comparisons: int) -> Line:
    if chosen is None:
        scaled = None
    elif cell is chosen:
        scaled = own_spread(cell.seconds)
    else:
        scaled = cell_ratio(cell, chosen, "seconds", comparisons=comparisons)
    return Line(cell, own=cell.session == lead, scaled=scaled, reference=cell is chosen)


def names(cell: Cell, baseline: str) -> bool:
    """Whether a `--baseline` text names this cell: a part of its card, label, precision or session."""
    wanted = baseline.casefold()
    said = (cell.card, cell.machine_label, cell.key.precision, cell.session)
    return any(wanted in part.casefold() for part in said)


def _reference(cells: Sequence[Cell], baseline: str | None) -> Cell | None:
    """The baseline where it is named; else the fastest, of those that may be ranked where there are any."""
    timed = [cell for cell in cells if cell.seconds.mean is not None]
    if baseline is not None:
        timed = [cell for cell in timed if names(cell, baseline)] or timed
        if timed and names(timed[0], baseline):
            return timed[0]
    fit = [cell for cell in timed if cell.ranked] or timed
    return min(fit, key=lambda cell: cell.seconds.mean or 0.0, default=None)


def _drawn_in(claim: Claim, base: Key, cells: Sequence[Cell]) -> bool:
    """Whether a published duration stands on the same key as these lines, as far as it says."""
    if claim.kind != "absolute" or claim.metric != "protocol_seconds" or base.data_source == "generated":
        return False
    return any(matches(claim, cell) for cell in cells)


def matches(claim: Claim, cell: Cell) -> bool:
    """Whether a cell has what the claim's side names, the card aside."""
    return not side_differences(claim.of, claim, cell)


def side_differences(side: Side, claim: Claim, cell: Cell) -> tuple[str, ...]:
    """What a claim's side names and a cell does not have, the card aside."""
    key, said = cell.key, dict(cell.key.options)
    size = PUBLISHED_IMAGE_SIZES.get((claim.workload, claim.protocol))
    wanted: list[tuple[str, object, object]] = [
        ("workload", claim.workload, key.workload),
        ("protocol", claim.protocol, key.protocol),
        ("model", side.model.casefold(), key.model.casefold()),
        ("number of devices", side.gpus, key.gpus),
        ("precision", side.precision, key.precision),
        ("batch size", side.batch_size, key.batch_size),
        ("data mode", side.data_mode, key.data_mode),
        ("image size", size, key.image_size),
        ("epochs", claim.epochs if claim.metric == "protocol_seconds" else None, cell.length.epochs),
        *((name, value, said.get(name)) for name, value in side.options.items()),
    ]
    return tuple(
        f"{name}: {here} instead of {there}" for name, there, here in wanted if there not in (None, here)
    )


def published_gain(claim: Claim, gains: Sequence[Speedup]) -> bool:
    """Whether a claim is a published speed-up of one of these pairs."""
    if claim.kind != "ratio" or claim.metric != "protocol_seconds" or not (claim.over and claim.value):
        return False
    if claim.of.card != claim.over.card:
        return False
    over = claim.model_copy(update={"of": claim.over})
    return any(matches(claim, gain.of) and matches(over, gain.over) for gain in gains)


def behind(curve: Curve, cells: Sequence[Cell]) -> bool:
    """Whether a published curve belongs behind these cells: the data mode changes speed, not learning."""
    return any(
        (curve.protocol, curve.side.model.casefold()) == (cell.key.protocol, cell.key.model.casefold())
        and curve.side.batch_size in (None, cell.key.batch_size)
        and curve.side.precision in (None, cell.key.precision)
        for cell in cells
    )


def speedups(cells: Sequence[Cell]) -> tuple[Speedup, ...]:
    """Each precision against fp32-ieee and fp32-tf32 of the same machine, session and stack.

    At the same batch where there is one; else at the batch that the denominator has, which is then named.
    """
    found = []
    for of in cells:
        for over in _denominators(of, cells):
            value = cell_ratio(over, of, "seconds") or cell_ratio(of, over, "throughput")
            if value is not None:
                differs = differing(without_precision(of.key), without_precision(over.key))
                found.append(Speedup(of, over, value, differs))
    return tuple(found)


def _denominators(of: Cell, cells: Sequence[Cell]) -> list[Cell]:
    found = []
    for label in FULL_PRECISION:
        near = [cell for cell in cells if cell.key.precision == label and _same_but_precision(of, cell)]
        near.sort(key=lambda cell: cell.key.batch_size != of.key.batch_size)
        if near and label != of.key.precision and of.key.precision != "fp32-ieee":
            found.append(near[0])
    return found


def _same_but_precision(one: Cell, other: Cell) -> bool:
    places = [
        (without_precision(c.key, batch_too=True), _protocol_length(c), c.session, c.machine, c.card, c.stack)
        for c in (one, other)
    ]
    return places[0] == places[1]


def _protocol_length(cell: Cell) -> tuple[int, bool, Pairs]:
    return (cell.length.epochs, cell.length.projected, cell.length.limit)


def apart(found: Sequence[Contest]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """For contests of one workload: the fields that differ between them, with each contest's value."""
    rows: list[tuple[str, tuple[str, ...]]] = []
    for part in ("base", "length"):
        parts = [getattr(contest, part) for contest in found]
        fields = dict.fromkeys(name for other in parts[1:] for name, _, _ in differing(parts[0], other))
        rows += [(name, tuple(value_of(one, name) for one in parts)) for name in fields]
    return tuple(rows)
