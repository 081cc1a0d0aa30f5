"""Claims held against cells: a verdict where like meets like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from packaging.specifiers import SpecifierSet

from harness.record import Claim
from harness.record.published.cards import Card
from harness.record.published.claim_set import applies_to
from report.claims.claimed_work import figure_of, matches
from report.compare.batch_sweeps import BatchSweep
from report.compare.card_units import ASSUMED_SPREAD
from report.compare.cells import Cell, is_side_by_side, to_target
from report.metrics import CLAIMED
from report.stats.contrast import assumed_hours, contrast_interval
from report.stats.equivalence import (
    EQUIVALENCE_LEVEL,
    Verdict,
    bound_holds,
    bounds_hold,
    equivalence,
    range_holds,
    seeds_bounded,
    seeds_hold,
    structure_holds,
)
from report.stats.intervals import BETWEEN_SESSIONS, Interval, Runs, blocks_interval
from report.trials.learning import validated_batches

SEEDED_MARGIN = 0.005
"""How far a program with its own seed may end from the published figure: other kernels round otherwise."""

Need = Literal["valid runs", "card", "software", "real data", "learning", "settled window"]

_VERSION = re.compile(
    r"\b(PyTorch|fastai|CUDA|driver|cuDNN) (\d+(?:\.\d+)*)((?:(?:a|b|rc|\.dev)\d+)?(?:\+\w+(?:\.\w+)*)?)",
    re.A,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim in which like met like: its verdict, and the cells that it was held against."""

    claim: Claim
    verdict: Verdict
    cells: tuple[Cell, ...]
    measured: float | None = None
    interval: Interval | None = None
    """The range of what was measured, at `LEVEL`; null where its runs show none."""


def judge(
    claims: Iterable[Claim],
    own: Sequence[Cell],
    beside: Sequence[Cell],
    cards: Sequence[Card],
    sweeps: Sequence[BatchSweep] = (),
) -> tuple[Judged, ...]:
    """Return each claim that a machine's `own` cells may be held against, of pairs also those `beside`.

    `sweeps` are the leading session's, for claims on the largest batch.
    """
    found: list[Judged | None] = []
    for claim in (claim for claim in claims if claim.can_be_judged):
        if claim.metric == "batch_ratio":
            found.append(_judge_batches(claim, sweeps, cards))
        elif claim.compares:
            found.append(_judge_pair(claim, own, [*own, *beside], cards))
        else:
            found.append(_judge_side(claim, own, cards))
    return tuple(judged for judged in found if judged)


def _judge_batches(claim: Claim, sweeps: Sequence[BatchSweep], cards: Sequence[Card]) -> Judged | None:
    """The claim held against batches that were tried up to the first that does not fit.

    The largest that fits is known between two tries, so the ratio lies between two bounds and has no spread.
    """
    assert claim.over is not None and claim.value is not None
    # The batches that a study names are what fitted its own card.
    sides = [
        claim.model_copy(update={"of": side.model_copy(update={"batch_size": None})})
        for side in (claim.of, claim.over)
    ]
    of, over = (
        next((sweep for sweep in sweeps if all(matches(side, cell) for cell in sweep.cells)), None)
        for side in sides
    )
    if of is None or over is None:
        return None
    if any(obstacles(side, sweep.cells[0], cards) for side, sweep in zip(sides, (of, over), strict=True)):
        return None
    fits, fits_over = of.largest, over.largest
    if fits is None or of.wall is None or fits_over is None or over.wall is None:
        return None
    low, high = fits_over.key.batch_size / of.wall, over.wall / fits.key.batch_size
    verdict = range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    return Judged(claim, verdict, (fits, fits_over), fits_over.key.batch_size / fits.key.batch_size)


def _judge_side(claim: Claim, own: Sequence[Cell], cards: Sequence[Card]) -> Judged | None:
    found = _most_evident(claim, [claim], [(cell,) for cell in own if matches(claim, cell)], cards)
    if found is None:
        return None
    return _verdict_of_count(claim, *found) if claim.kind == "structure" else _verdict_of_side(claim, *found)


def _verdict_of_count(claim: Claim, cell: Cell) -> Judged | None:
    assert claim.value is not None
    count = _measured_count(claim, cell)
    if count is None:
        return None
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
        at_any_hour = blocks_interval(figure, level=EQUIVALENCE_LEVEL, assumed=BETWEEN_SESSIONS)
        verdict = _judge_runs(claim, at_any_hour, figure)
    return Judged(claim, verdict, (cell,), figure.mean, interval=figure.interval)


def _judge_pair(
    claim: Claim, own: Sequence[Cell], every: Sequence[Cell], cards: Sequence[Card]
) -> Judged | None:
    """The claim held against the pair of cells with the most runs that like meets like in."""
    assert claim.over is not None
    second = claim.model_copy(update={"of": claim.over})
    # Each side of a claim on two cards is of its own card alone.
    first = claim.model_copy(update={"over": None}) if claim.of.card else claim
    pairs = [
        (of, over)
        for of in every
        if matches(claim, of)
        for over in every
        if matches(second, over) and _is_same_setting(claim, of, over) and (of in own or over in own)
    ]
    found = _most_evident(claim, [first, second], pairs, cards)
    return _verdict_of_pair(claim, *found) if found else None


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


def _verdict_of_pair(claim: Claim, of: Cell, over: Cell) -> Judged:
    """An order is of the first over the second; a ratio is published as how many times the second it is."""
    ordered = (of, over) if claim.kind == "order" else (over, of)
    runs = [figure.with_unproven for cell in ordered if (figure := figure_of(claim, cell)) is not None]
    first, second = (side.mean for side in runs)
    if CLAIMED[claim.metric].kind == "memory" and first and second:
        return Judged(claim, _verdict_of_bytes(claim, *runs), (of, over), first / second)
    paired = is_side_by_side(of, over)
    contrast = partial(contrast_interval, *runs, paired=paired, assumed=assumed_hours(*runs, paired=paired))
    if CLAIMED[claim.metric].may_be_zero and claim.relation != "equal":
        difference = contrast(level=EQUIVALENCE_LEVEL, logs=False)
        return Judged(claim, bound_holds(difference, claim.relation, 0.0), (of, over))
    interval = contrast()
    ratio = interval.estimate if interval else first / second if first and second else None
    verdict = _judge_runs(claim, contrast(level=EQUIVALENCE_LEVEL), *runs)
    return Judged(claim, verdict, (of, over), ratio, interval=interval)


def _verdict_of_bytes(claim: Claim, first: Runs, second: Runs) -> Verdict:
    """Equal programs allocate alike: between the least and the most of all runs, and no chance is in it."""
    low = min(first.values) / max(second.values)
    high = max(first.values) / min(second.values)
    if claim.kind == "ratio" and claim.relation == "equal":
        assert claim.value is not None
        return range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    assert claim.relation != "equal"
    return bounds_hold(low, high, claim.relation, 1.0 if claim.value is None else claim.value)


def obstacles(claim: Claim, cell: Cell, cards: Sequence[Card]) -> frozenset[Need]:
    """Return what a claim needs and a cell does not have; empty where the claim may be judged."""
    trial, metric = cell.trials[0], CLAIMED[claim.metric]
    device = trial.environment.device, trial.device_name, trial.device_capability
    unsettled = metric.kind == "duration" and (cell.length.projected or metric.steady)
    lacking: dict[Need, bool] = {
        "valid runs": cell.verdict == "invalid",
        "card": not applies_to(claim, *device, cards, trial.device_memory_bytes),
        "software": claim.kind == "absolute" and _is_other_software(claim, cell),
        "real data": cell.key.data_source == "generated" and not metric.on_generated,
        "learning": not _learned_enough(claim, cell),
        "settled window": claim.target is None and unsettled and cell.verdict == "unproven",
    }
    return frozenset(need for need, lacks in lacking.items() if lacks)


def _is_other_software(claim: Claim, cell: Cell) -> bool:
    """Return whether a version that a claim names is not the one used here."""
    if claim.stack is None:
        return False
    renamed = {"pytorch": "torch"}
    used = {name.casefold(): str(value) for name, value in cell.stack.versions}
    used["driver"] = cell.stack.driver or "unknown"
    named = _VERSION.findall(claim.stack)
    # 2.13.0+cpu is of 2.13.0 and of 2.13; a build that is claimed has to be that build.
    return not named or any(
        not SpecifierSet(f"=={release}{build or '.*'}").contains(
            used.get(renamed.get(name.casefold(), name.casefold()), "unknown"), prereleases=True
        )
        for name, release, build in named
    )


def _learned_enough(claim: Claim, cell: Cell) -> bool:
    """Return whether each run has what a quality, or a time to one, is of; true of all else.

    That is a validation of all its batches, pretrained weights, and the claim's epochs or its target. A mean
    without the runs that have none would be of the fast ones.
    """
    metric = CLAIMED[claim.metric]
    if claim.target is None and metric.kind != "quality":
        return True
    measured = [trial.record.measurement for trial in cell.trials]
    if any(one and validated_batches(one) is not None for one in measured):
        return False
    if metric.kind == "quality" and cell.key.weights == "random":
        return False
    if claim.target is not None:
        found = to_target(cell, claim.target)
        return 0 < found.runs == found.reached
    trained = max(trial.epochs_trained or 0 for trial in cell.trials)
    least = metric.least_epochs
    enough = trained >= least if least is not None else trained == (claim.epochs or cell.length.epochs)
    return enough and not any(trial.lost for trial in cell.trials)


def _most_evident(
    claim: Claim, sides: Sequence[Claim], candidates: Iterable[tuple[Cell, ...]], cards: Sequence[Card]
) -> tuple[Cell, ...] | None:
    """Return the candidate with the most evidence, a cell for each side; null where none may be judged."""
    comparable = [
        cells
        for cells in candidates
        if not any(obstacles(side, cell, cards) for side, cell in zip(sides, cells, strict=True))
    ]
    # What has the fewest runs counts for all that belong together.
    return max(comparable, key=lambda cells: min(_evidence(claim, cell) for cell in cells), default=None)


def _evidence(claim: Claim, cell: Cell) -> tuple[int, int, bool]:
    """The most runs, then blocks; whole runs on a tie."""
    runs = figure_of(claim, cell) or cell.throughput
    return len(runs.values), len(set(runs.blocks)), not cell.length.projected


def _judge_runs(claim: Claim, measured: Interval | None, *sides: Runs) -> Verdict:
    """Return the verdict on a figure or a ratio of sides, by its 90 % interval or by the spread of seeds."""
    positive = all(runs.values and min(runs.values) > 0 for runs in sides)
    seeds, relation = claim.seeds if positive else None, claim.relation
    other_unit = ASSUMED_SPREAD if claim.kind == "absolute" else 0.0
    if relation != "equal":
        bound = 1.0 if claim.value is None else claim.value
        if seeds is not None:
            return seeds_bounded(sides, seeds, relation, bound)
        return bound_holds(measured, relation, bound, other_unit=other_unit)
    assert claim.value is not None
    published = claim.value, claim.margin, claim.half_digit
    if seeds is not None:
        return seeds_hold(sides, seeds, *published, runs=claim.runs)
    return equivalence(measured, *published, spread=claim.spread, runs=claim.runs, other_unit=other_unit)
