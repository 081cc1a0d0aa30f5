"""What a claim speaks of, held against cells: which have it, and what the others lack. Cards aside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim, Curve, Side
from harness.record.vocabulary.workload import declared
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup
from report.comparisons.speedups import Speedup
from report.trials.key import PARALLEL, Value

SCALED_DOWN = "scaled down: "
SMALLER = (SCALED_DOWN, "smaller images than the model's own: ")
"""How a workload's notes begin that say so; the size of images is a part of the key, and claims name it."""

LENGTH_OPTIONS = ("epochs",)
"""Options that a claim need not name, since its own length says as much."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A field in which a cell is not what a claim asks for; null where a side does not have it."""

    field: str
    here: Value
    wanted: Value


def matches(claim: Claim, cell: Cell) -> bool:
    """Whether a cell has what the claim's side names, the card aside."""
    return not side_differences(claim.of, claim, cell)


def published_image_size(claim: Claim) -> int | None:
    """Pixels, as the workload declares them; a plan may ask for smaller images, which no figure is of."""
    found = declared(claim.workload)
    return found.image_size if found else None


def side_differences(side: Side, claim: Claim, cell: Cell) -> tuple[Difference, ...]:
    """What a claim's side names and a cell does not have, the card aside."""
    key, options = cell.key, dict(cell.key.options)
    size = published_image_size(claim)
    named: list[tuple[str, Value, Value]] = [
        ("workload", claim.workload, key.workload),
        ("protocol", claim.protocol, key.protocol),
        ("model", side.model.casefold(), key.model.casefold()),
        ("gpus", side.gpus, key.gpus),
        ("nodes", 1, key.nodes),
        ("profile", "default", key.profile),
        ("precision", side.precision, key.precision),
        ("batch_size", side.batch_size, key.batch_size),
        ("data_mode", side.data_mode, key.data_mode),
        ("image_size", side.image_size or size, key.image_size),
        ("layout", side.layout, key.layout),
        ("epochs", claim.epochs if claim.metric == "protocol_seconds" else None, cell.length.epochs),
        *((name, value, options.get(name)) for name, value in side.options.items()),
    ]
    lacking = [
        Difference(name, measured, claimed)
        for name, claimed, measured in named
        if claimed not in (None, measured)
    ]
    unnamed = [
        Difference(name, value, None)
        for name, value in options.items()
        if name not in side.options and name not in (*LENGTH_OPTIONS, PARALLEL)
    ]
    scaled = [Difference("scaled_down", True, False)] if scaled_down(cell) else []
    return (*lacking, *unnamed, *scaled)


def scaled_down(cell: Cell) -> bool:
    """Whether its work is a narrower network than the protocol's."""
    return any(note.startswith(SCALED_DOWN) for note in smaller(cell))


def smaller(cell: Cell) -> tuple[str, ...]:
    """What the workload says of a work that is smaller than its protocol, such as a narrower network."""
    measured = cell.trials[0].record.measurement
    notes = measured.notes if measured else ()
    return tuple(note for note in notes if note.startswith(SMALLER))


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


def with_published(groups: Iterable[ComparisonGroup], claims: Sequence[Claim]) -> tuple[ComparisonGroup, ...]:
    """The groups, each with the published durations that stand on the same key, as far as they say."""
    durations = [claim for claim in claims if claim.kind == "absolute" and claim.metric == "protocol_seconds"]
    return tuple(
        replace(group, published=tuple(claim for claim in durations if _stands_in(claim, group)))
        for group in groups
    )


def _stands_in(claim: Claim, group: ComparisonGroup) -> bool:
    measured = group.base.data_source != "generated"
    return measured and any(matches(claim, entry.cell) for entry in group.entries)
