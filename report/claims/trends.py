"""Trends, and ratios of ratios: how steeply a figure, or a gain, grows along the points of a claim."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import fmean

from harness.record import Claim
from report.claims.judged import (
    Judged,
    Measured,
    met,
    nearest_differences,
    not_compared,
    seeds_for,
)
from report.claims.matching import figure_of, matches, value_of
from report.compare.cells import Cell
from report.compare.key import Difference
from report.stats.intervals import Runs, blocks_interval
from report.stats.one_sided import few_runs_bounded, trend_holds


def judge_trend(claim: Claim, measured: Measured) -> Judged:
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
    return taken if isinstance(taken, Judged) else _verdict(claim, taken)


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


def _verdict(claim: Claim, cells: tuple[Cell, ...]) -> Judged:
    """Measured is what the figure, or the gain, is multiplied by where a point's place doubles.

    Each repeat gives one slope, so what the machine did in a round is common to all points.
    """
    weights = _weights(claim)
    assert claim.relation != "equal"
    figures = [figure for cell in cells if (figure := figure_of(claim, cell)) is not None]
    means = [figure.mean or 0.0 for figure in figures]
    seeds = seeds_for(claim, *(figure.runs for figure in figures))
    if seeds is not None and min(means) > 0:
        slope = math.fsum(weight * math.log(mean) for weight, mean in zip(weights, means, strict=True))
        share = math.fsum(weight**2 / figure.n for weight, figure in zip(weights, figures, strict=True))
        factor = math.exp(slope)
        return Judged(claim, few_runs_bounded(factor, share, seeds, claim.relation, 1.0), cells, factor)
    slopes = _slopes(claim, cells, weights)
    interval = blocks_interval(slopes, paired=True)
    measured = interval.estimate if interval else slopes.mean
    return Judged(claim, trend_holds(slopes, claim.relation), cells, measured)


def _weights(claim: Claim) -> list[float]:
    """What each cell's logarithm counts for in the slope of a straight line through the points.

    Along the binary logarithm of their places; of two points it is the ratio of their gains where the second
    stands at twice the first. A point's `of` counts for less what its `over` counts for.
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
