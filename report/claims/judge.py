"""Claims held against cells: a verdict where like meets like, else the fields that keep them apart."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from harness.record import Claim, ClaimKind
from harness.record.published.cards import Card
from report.claims.judged import (
    Judged,
    RecordedCells,
    choose_cells,
    judge_runs,
    nearest_terms,
    not_compared,
    obstacles,
)
from report.claims.matching import figure_of, matches
from report.claims.pairs import judge_pair
from report.compare.batch_sweeps import BatchSweep
from report.compare.cells import Cell
from report.compare.partial_key import Term
from report.metrics import CLAIMED
from report.stats.equivalence import bounds_hold, range_holds, structure_holds

SEEDED_MARGIN = 0.005
"""How far a program with its own seed may end from the published figure: other kernels round otherwise."""

FORMS: Mapping[ClaimKind, Callable[[Claim, RecordedCells], Judged]] = {
    "ratio": judge_pair,
    "order": judge_pair,
}
"""How a kind of claim is judged; those of one side are by `_judge_side`."""


def judge(
    claims: Iterable[Claim],
    own: Sequence[Cell],
    beside: Sequence[Cell],
    cards: Sequence[Card],
    sweeps: Sequence[BatchSweep] = (),
) -> tuple[Judged, ...]:
    """Return every claim with its verdict on a machine's `own` cells, of pairs also on those `beside`.

    `sweeps` are the leading session's, for claims on the largest batch.
    """
    measured = RecordedCells(own, [*own, *beside], sweeps, cards)
    return tuple(_judge(claim, measured) for claim in claims)


def _judge(claim: Claim, measured: RecordedCells) -> Judged:
    if not claim.can_be_judged:
        return not_compared(claim, Term("value", None, None))
    if claim.metric == "batch_ratio":
        return _judge_batches(claim, measured)
    places = [cell for cell in measured.own if cell.key.workload == claim.workload]
    if not places:
        return not_compared(claim, Term("workload", None, claim.workload))
    judge_form = FORMS.get(claim.kind)
    return judge_form(claim, measured) if judge_form else _judge_side(claim, places, measured)


def _judge_batches(claim: Claim, measured: RecordedCells) -> Judged:
    """The claim held against batches that were tried up to the first that does not fit.

    The largest that fits is known between two tries, so the ratio lies between two bounds and has no spread.
    """
    assert claim.over is not None and claim.value is not None
    # The batches that a study names are what fitted its own card.
    claims = [
        claim.model_copy(update={"of": side.model_copy(update={"batch_size": None})})
        for side in (claim.of, claim.over)
    ]
    found = [
        [sweep for sweep in measured.sweeps if all(matches(one, cell) for cell in sweep.cells)]
        for one in claims
    ]
    of, over = (sweeps[0] if sweeps else None for sweeps in found)
    if of is None or over is None:
        return not_compared(claim, Term("batch_sweep", False, True))
    reasons = [
        reason
        for one, sweep in zip(claims, (of, over), strict=True)
        for reason in obstacles(one, sweep.cells[0], measured.cards)
    ]
    if reasons:
        return not_compared(claim, *reasons)
    fits, fits_over = of.largest, over.largest
    if fits is None or of.wall is None or fits_over is None or over.wall is None:
        return not_compared(claim, Term("largest_batch", None, None))
    low, high = fits_over.key.batch_size / of.wall, over.wall / fits.key.batch_size
    verdict = range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    return Judged(claim, verdict, (fits, fits_over), fits_over.key.batch_size / fits.key.batch_size)


def _judge_side(claim: Claim, places: Sequence[Cell], measured: RecordedCells) -> Judged:
    fit = [cell for cell in places if matches(claim, cell)]
    if not fit:
        return not_compared(claim, *nearest_terms(claim.of, claim, places))
    found = choose_cells(claim, [claim], [(cell,) for cell in fit], measured)
    if isinstance(found, Judged):
        return found
    (taken,) = found
    return _verdict_of_count(claim, taken) if claim.kind == "structure" else _verdict_of_side(claim, taken)


def _verdict_of_count(claim: Claim, cell: Cell) -> Judged:
    assert claim.value is not None
    count = _measured_count(claim, cell)
    if count is None:
        return not_compared(claim, Term(claim.metric, None, claim.value))
    figure = figure_of(claim, cell)
    interval = figure.interval if figure else None
    if claim.relation != "equal":
        verdict = bounds_hold(count, count, claim.relation, claim.value)
        return Judged(claim, verdict, (cell,), count, interval=interval)
    # Bytes of an allocator are no exact count: it rounds up, and libraries keep some for themselves.
    reach = claim.margin * claim.value if CLAIMED[claim.metric].kind == "memory" else 0.0
    verdict = structure_holds(count, claim.value, max(claim.half_digit, reach))
    return Judged(claim, verdict, (cell,), count, interval=interval)


def _measured_count(claim: Claim, cell: Cell) -> float | None:
    if claim.metric == "peak_bytes":
        return cell.figures["allocated_bytes"].mean
    measured = cell.trials[0].record.measurement
    assert measured is not None
    items = {"train_items": measured.data.train_items, "valid_items": measured.data.valid_items}
    count = items.get(claim.metric)
    count = measured.structure.get(claim.metric) if count is None else count
    return None if count is None else float(count)


def _verdict_of_side(claim: Claim, cell: Cell) -> Judged:
    figure = figure_of(claim, cell)
    assert claim.value is not None and figure is not None
    if claim.relation == "equal" and claim.kind == "quality" and cell.seeds_itself and figure.mean:
        # The published run had this seed, too: no spread of seeds lies between the two.
        margin = max(SEEDED_MARGIN, claim.half_digit / claim.value)
        verdict = range_holds(figure.mean, figure.mean, claim.value, margin)
    else:
        verdict = judge_runs(claim, figure.runs)
    return Judged(claim, verdict, (cell,), figure.mean, interval=figure.interval)
