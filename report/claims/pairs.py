"""Ratios and orders of two sides of a claim, and trends: how steeply these grow along its points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean

from harness.record import Claim
from report.claims.judged import (
    Judged,
    RecordedCells,
    held,
    met,
    nearest_differences,
    not_compared,
    seeds_for,
)
from report.claims.matching import figure_of, matches, value_of
from report.compare.cells import Cell, selected_alike, side_by_side
from report.compare.key import Difference
from report.metrics import CLAIMED
from report.stats.equivalence import Verdict, bound_holds, bounds_hold, range_holds, seeds_trend
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
        if matches(second, over) and _same_setting(claim, of, over) and (of in own or over in own)
    ]
    if not pairs:
        why = nearest_differences(claim.of, claim, own) or nearest_differences(claim.over, second, own)
        return not_compared(claim, *(why or (Difference("in_one_setting", False, True),)))
    found = met(claim, [first, second], pairs, measured)
    return found if isinstance(found, Judged) else _verdict(claim, *found)


def _same_setting(claim: Claim, of: Cell, over: Cell) -> bool:
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
    paired = side_by_side(of, over)
    first, second = (side.mean for side in runs)
    if CLAIMED[claim.metric].may_be_zero and claim.relation != "equal":
        verdict = bound_holds(runs, claim.relation, 0.0, paired=paired, logs=False)
        return Judged(claim, verdict, (of, over))
    if CLAIMED[claim.metric].kind == "memory" and first and second:
        return Judged(claim, _verdict_of_bytes(claim, *runs), (of, over), first / second)
    verdict = held(claim, *runs, paired=paired)
    if seeds_for(claim, *runs) is not None and first and second:
        return Judged(claim, verdict, (of, over), first / second)
    measured = blocks_interval(*runs, paired=paired)
    return Judged(claim, verdict, (of, over), measured.estimate if measured else None)


def _verdict_of_bytes(claim: Claim, first: Runs, second: Runs) -> Verdict:
    """Equal programs allocate alike: between the least and the most of all runs, and no chance is in it."""
    low = min(first.values) / max(second.values)
    high = max(first.values) / min(second.values)
    if claim.kind == "ratio" and claim.relation == "equal":
        assert claim.value is not None
        return range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    assert claim.relation != "equal"
    return bounds_hold(low, high, claim.relation, 1.0 if claim.value is None else claim.value)


def judge_trend(claim: Claim, measured: RecordedCells) -> Judged:
    """The claim held against one session of one machine that has all of its points."""
    sides = [side for point in claim.points for side in (point.of, point.over) if side is not None]
    claims = [claim.model_copy(update={"of": side}) for side in sides]
    found = [[cell for cell in measured.everything if matches(one, cell)] for one in claims]
    for one, cells in zip(claims, found, strict=True):
        if not cells:
            return not_compared(claim, *nearest_differences(one.of, one, measured.own))
    together = [cells for cells in _alike(found) if any(cell in measured.own for cell in cells)]
    if not together:
        return not_compared(claim, Difference("in_one_setting", False, True))
    taken = met(claim, claims, together, measured)
    return taken if isinstance(taken, Judged) else _verdict_of_slopes(claim, taken)


def _alike(found: Sequence[Sequence[Cell]]) -> list[tuple[Cell, ...]]:
    """A cell for each side, all of one session, machine, card, stack, data mode and limit."""

    def setting(cell: Cell) -> tuple[object, ...]:
        place = cell.session, cell.machine, cell.card, cell.stack
        return (*place, cell.key.data_mode, cell.length.projected, cell.length.limit)

    return [
        cells
        for wanted in dict.fromkeys(setting(cell) for cell in found[0])
        for cells in product(*([cell for cell in side if setting(cell) == wanted] for side in found))
    ]


def _verdict_of_slopes(claim: Claim, cells: tuple[Cell, ...]) -> Judged:
    """Measured is what the figure, or the gain, is multiplied by where a point's place doubles.

    Each repeat gives one slope, so what the machine did in a round is common to all points.
    """
    weights = _weights(claim)
    assert claim.relation != "equal"
    figures = [figure for cell in cells if (figure := figure_of(claim, cell)) is not None]
    means = [figure.mean or 0.0 for figure in figures]
    seeds, slopes = seeds_for(claim, *(figure.runs for figure in figures)), _slopes(claim, cells, weights)
    if seeds is not None and min(means) > 0:
        slope = math.fsum(weight * math.log(mean) for weight, mean in zip(weights, means, strict=True))
        share = math.fsum(weight**2 / figure.n for weight, figure in zip(weights, figures, strict=True))
        factor = math.exp(slope)
        return Judged(claim, seeds_trend(factor, share, slopes, seeds, claim.relation), cells, factor)
    interval = blocks_interval(slopes, paired=True)
    measured = interval.estimate if interval else slopes.mean
    return Judged(claim, bound_holds([slopes], claim.relation, paired=True), cells, measured)


def _weights(claim: Claim) -> list[float]:
    """What each cell's logarithm counts for in the slope of a straight line through the points.

    Along the binary logarithm of their places; of two points it is the ratio of their gains where the second
    is at twice the first. A point's `of` counts for less what its `over` counts for.
    """
    places = [math.log2(point.at) for point in claim.points]
    middle = fmean(places)
    below = math.fsum((place - middle) ** 2 for place in places)
    weights: list[float] = []
    for place, point in zip(places, claim.points, strict=True):
        weight = (place - middle) / below
        weights += [weight] if point.over is None else [-weight, weight]
    return weights


def _slopes(claim: Claim, cells: Sequence[Cell], weights: Sequence[float]) -> Runs:
    """e to the power of each repeat's slope, of the repeats that all cells have."""
    unproven = any(cell.takes_unproven for cell in cells)
    found = [_by_repeat(claim, cell, unproven=unproven) for cell in cells]
    shared = sorted(set.intersection(*(set(values) for values in found)))
    blocks = {trial.repeat: trial.record.block for trial in cells[0].trials}
    slopes = [
        math.exp(
            math.fsum(
                weight * math.log(values[repeat]) for weight, values in zip(weights, found, strict=True)
            )
        )
        for repeat in shared
    ]
    return Runs(tuple(slopes), tuple(blocks[repeat] for repeat in shared))


def _by_repeat(claim: Claim, cell: Cell, *, unproven: bool) -> dict[int, float]:
    left_out = ("invalid",) if unproven else ("invalid", "unproven")
    values = {trial.repeat: value_of(claim, trial) for trial in cell.trials if trial.verdict not in left_out}
    return {repeat: value for repeat, value in values.items() if value is not None and value > 0}
