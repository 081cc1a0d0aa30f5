"""Cells → comparison groups: which cells may share a chart, and why others may not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from harness.record import PRECISION_ORDER, Claim
from report.compare.cells import Cell, Ratio, cell_ratio, own_spread
from report.compare.key import MEASURED_FIELDS, GroupPlace, batch_follows_precision, same_but
from report.trials.key import (
    Key,
    Pairs,
    ProtocolLength,
    grouped_by,
    without,
)
from report.trials.trial import TrialResult

_at_batch = same_but("precision", "projected", "limit", within=("length",))
_at_any_batch = same_but("precision", "batch_size", "projected", "limit", within=("length",))
_same_on_machine = same_but(within=("length", "machine", "card", "stack"))


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """One cell in a group. `scaled` is its duration ÷ the reference's."""

    cell: Cell
    own: bool
    """Whether this machine measured it: in the leading session, or in an earlier one of the same device."""
    scaled: Ratio | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class ComparisonGroup:
    """Entries whose keys are equal except for the precision, which each names."""

    base: Key
    length: ProtocolLength
    entries: tuple[GroupEntry, ...]
    published: tuple[Claim, ...] = ()
    """Durations that others published for the same key."""
    failed: tuple[TrialResult, ...] = ()
    """Trials of the leading session that belong here and gave nothing."""
    baseline_missing: bool = False


def comparison_groups(
    cells: Sequence[Cell],
    lead: str | None,
    *,
    baseline: str | None,
    earlier: Collection[str] = (),
    failed: Sequence[TrialResult] = (),
) -> tuple[ComparisonGroup, ...]:
    """Return the leading session's groups, then this machine's earlier ones; others join by equal keys.

    Projected runs of one limit are in one group, and whole runs in the same.
    """
    place_of = _places(cells)
    everywhere = grouped_by(cells, place_of)
    own_places = _own_places(cells, place_of, lead, earlier)
    projected = {place for place, limit in own_places if limit}
    groups = []
    for place, limit in own_places:
        if limit or place not in projected:
            fit = [c for c in everywhere[place] if c.length.limit == limit or not c.length.projected]
            group = _group(place.key, *_own_and_beside(fit, lead, earlier), baseline)
            groups.append(replace(group, failed=_failed_in(place.key, failed)))
    return tuple(groups)


def _own_places(
    cells: Sequence[Cell], place_of: Callable[[Cell], GroupPlace], lead: str | None, earlier: Collection[str]
) -> dict[tuple[GroupPlace, Pairs], None]:
    """Return place and limit of what this machine measured, the leading session's and the newest first."""
    leading = [cell for cell in cells if cell.session == lead]
    before = sorted((cell for cell in cells if cell.session in earlier), key=lambda cell: cell.turn)
    newest: dict[GroupPlace, str] = {}
    found: dict[tuple[GroupPlace, Pairs], None] = {}
    for cell in (*leading, *reversed(before)):
        place = place_of(cell)
        if newest.setdefault(place, cell.session) == cell.session:
            found[place, cell.length.limit] = None
    return found


def _places(cells: Sequence[Cell]) -> Callable[[Cell], GroupPlace]:
    """A function from a cell to the place of its comparison group, where all but precision and run is equal.

    The batch size is left out too where a protocol is drawn in one chart, as it was published.
    """
    by_key = grouped_by(cells, lambda cell: without(cell.key, "precision", "batch_size"))
    published = {key for key, members in by_key.items() if batch_follows_precision(members)}

    def place(cell: Cell) -> GroupPlace:
        loose = _at_any_batch(cell)
        return loose if loose.key in published else _at_batch(cell)

    return place


def _own_and_beside(
    members: Sequence[Cell], lead: str | None, earlier: Collection[str]
) -> tuple[list[Cell], list[Cell]]:
    """Return the leading session's cells with what only an earlier one has, and the cells of others.

    Except in the leading session, only the newest cell of each machine and stack is taken.
    """
    leading = [cell for cell in members if cell.session == lead]
    others = sorted((cell for cell in members if cell.session != lead), key=lambda cell: cell.turn)
    newest = [alike[-1] for alike in grouped_by(others, _same_on_machine).values()]
    there = {_same_on_machine(cell) for cell in leading}

    def new_here(cell: Cell) -> bool:
        return cell.session in earlier and _same_on_machine(cell) not in there

    own = [cell for cell in newest if new_here(cell)]
    beside = [cell for cell in newest if not new_here(cell)]
    return leading + own, sorted(beside, key=lambda cell: cell.started_at, reverse=True)


def _failed_in(base: Key, failed: Sequence[TrialResult]) -> tuple[TrialResult, ...]:
    """Failures whose key is the base's, as far as a trial without a measurement knows its own."""
    free = ("precision",) if base.batch_size else ("precision", "batch_size")
    left_out = (*free, *MEASURED_FIELDS)
    return tuple(row for row in failed if without(row.key, *left_out) == without(base, *left_out))


def _group(base: Key, own: Sequence[Cell], beside: Sequence[Cell], baseline: str | None) -> ComparisonGroup:
    ordered = [*sorted(own, key=_by_card), *sorted(beside, key=_by_card)]
    chosen = _reference(ordered, baseline)
    named = baseline is not None and chosen is not None and names(chosen, baseline)
    comparisons = _comparisons([cell for cell in ordered if cell.seconds.n > 1], chosen, named=named)
    entries = tuple(_entry(cell, chosen, place < len(own), comparisons) for place, cell in enumerate(ordered))
    return ComparisonGroup(
        base=base,
        length=ordered[0].length,
        entries=entries,
        baseline_missing=baseline is not None and not any(names(cell, baseline) for cell in ordered),
    )


def _comparisons(repeated: Sequence[Cell], chosen: Cell | None, *, named: bool) -> int:
    """Return how many ratios the level holds for: all pairs where the data choose the reference."""
    if named or chosen not in repeated:
        return sum(cell is not chosen for cell in repeated)
    return len(repeated) * (len(repeated) - 1) // 2


def _by_card(cell: Cell) -> tuple[str, int, int, bool]:
    key = cell.key
    return cell.card, PRECISION_ORDER.index(key.precision), key.batch_size, cell.length.projected


def _entry(cell: Cell, chosen: Cell | None, own: bool, comparisons: int) -> GroupEntry:
    if chosen is None:
        scaled = None
    elif cell is chosen:
        scaled = own_spread(cell.seconds)
    else:
        scaled = cell_ratio(cell, chosen, "seconds", comparisons=comparisons)
    return GroupEntry(cell, own=own, scaled=scaled, reference=cell is chosen)


def names(cell: Cell, baseline: str) -> bool:
    """Whether a `--baseline` text names this cell: a part of its card, label, precision or session."""
    texts = (cell.card, cell.machine_label, cell.key.precision, cell.session)
    return any(baseline.casefold() in text.casefold() for text in texts)


def _reference(cells: Sequence[Cell], baseline: str | None) -> Cell | None:
    """Return the baseline where it is named; else the fastest that may be ranked; else the fastest."""
    timed = [cell for cell in cells if cell.seconds.mean is not None]
    if baseline is not None:
        timed = [cell for cell in timed if names(cell, baseline)] or timed
        if timed and names(timed[0], baseline):
            return timed[0]
    fit = [cell for cell in timed if cell.ranked] or timed
    return min(fit, key=lambda cell: cell.seconds.mean or 0.0, default=None)
