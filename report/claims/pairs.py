"""Ratios and orders of two sides of a claim."""

from __future__ import annotations

from harness.record import Claim
from report.claims.judged import (
    Judged,
    RecordedCells,
    choose_cells,
    judge_runs,
    nearest_terms,
    not_compared,
)
from report.claims.matching import figure_of, matches
from report.compare.cells import Cell, is_side_by_side, selected_alike
from report.compare.partial_key import Term
from report.metrics import CLAIMED
from report.stats.equivalence import Verdict, bound_holds, bounds_hold, range_holds
from report.stats.intervals import Runs, blocks_interval


def judge_pair(claim: Claim, measured: RecordedCells) -> Judged:
    """The claim held against the pair of cells with the most runs that like meets like in."""
    assert claim.over is not None
    second = claim.model_copy(update={"of": claim.over})
    # Each side of a claim on two cards is of its own card alone.
    first = claim.model_copy(update={"over": None}) if claim.of.card else claim
    own, everything = measured.own, measured.everything
    pairs = [
        (of, over)
        for of in everything
        if matches(claim, of)
        for over in everything
        if matches(second, over) and _is_same_setting(claim, of, over) and (of in own or over in own)
    ]
    if not pairs:
        why = nearest_terms(claim.of, claim, own) or nearest_terms(claim.over, second, own)
        return not_compared(claim, *(why or (Term("in_one_setting", False, True),)))
    found = choose_cells(claim, [first, second], pairs, measured)
    return found if isinstance(found, Judged) else _verdict(claim, *found)


def _is_same_setting(claim: Claim, of: Cell, over: Cell) -> bool:
    """Both on one machine and stack, unless the claim is of two cards; both projected, or neither.

    Where one side has more devices, the nodes of a session are taken for alike. A rate of steady steps is the
    same of a whole run and of a part.
    """
    assert claim.over is not None
    crossed = claim.of.card != claim.over.card
    one_machine = of.machine == over.machine or claim.of.gpus != claim.over.gpus
    places = [(cell.session, cell.trials[0].device_model, cell.stack) for cell in (of, over)]
    same = one_machine and places[0] == places[1]
    # A claim that names no data mode is of one precision over another in the same one.
    alike = claim.of.data_mode != claim.over.data_mode or of.key.data_mode == over.key.data_mode
    of_one_length = CLAIMED[claim.metric].steady or of.length.projected == over.length.projected
    return (crossed or same) and alike and of_one_length


def _verdict(claim: Claim, of: Cell, over: Cell) -> Judged:
    """An order is of the first over the second; a ratio is published as how many times the second it is."""
    ordered = (of, over) if claim.kind == "order" else (over, of)
    figures = [figure for cell in ordered if (figure := figure_of(claim, cell)) is not None]
    runs = selected_alike(*ordered, figures[0], figures[1])
    paired = is_side_by_side(of, over)
    first, second = (side.mean for side in runs)
    if CLAIMED[claim.metric].may_be_zero and claim.relation != "equal":
        verdict = bound_holds(runs, claim.relation, 0.0, paired=paired, logs=False)
        return Judged(claim, verdict, (of, over))
    if CLAIMED[claim.metric].kind == "memory" and first and second:
        return Judged(claim, _verdict_of_bytes(claim, *runs), (of, over), first / second)
    interval = blocks_interval(*runs, paired=paired)
    ratio = interval.estimate if interval else first / second if first and second else None
    return Judged(claim, judge_runs(claim, *runs, paired=paired), (of, over), ratio, interval=interval)


def _verdict_of_bytes(claim: Claim, first: Runs, second: Runs) -> Verdict:
    """Equal programs allocate alike: between the least and the most of all runs, and no chance is in it."""
    low = min(first.values) / max(second.values)
    high = max(first.values) / min(second.values)
    if claim.kind == "ratio" and claim.relation == "equal":
        assert claim.value is not None
        return range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    assert claim.relation != "equal"
    return bounds_hold(low, high, claim.relation, 1.0 if claim.value is None else claim.value)
