"""Claims held against cells: a verdict where like meets like, else the fields that keep them apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from packaging.specifiers import SpecifierSet

from harness.record import Claim
from harness.record.published.cards import Card
from harness.record.published.claim_set import applies_to
from report.claims.matching import figure_of, matches, side_terms
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
from report.stats.intervals import ASSUMED_BLOCK_SPREAD, Interval, Runs, blocks_interval
from report.trials.key import Term
from report.trials.learning import validated_batches

SEEDED_MARGIN = 0.005
"""How far a program with its own seed may end from the published figure: other kernels round otherwise."""

_VERSION = re.compile(
    r"\b(PyTorch|fastai|CUDA|driver|cuDNN) (\d+(?:\.\d+)*)((?:(?:a|b|rc|\.dev)\d+)?(?:\+\w+(?:\.\w+)*)?)",
    re.A,
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, its verdict, and the cells it was held against; or what keeps it away from every cell."""

    claim: Claim
    verdict: Verdict
    cells: tuple[Cell, ...] = ()
    measured: float | None = None
    differences: tuple[Term, ...] = ()
    interval: Interval | None = None
    """The range of what was measured, at `LEVEL`; null where its runs show none."""

    @property
    def compared(self) -> bool:
        """Whether like met like, whatever came of it."""
        return self.verdict.word != "not comparable"


@dataclass(frozen=True, slots=True)
class RecordedCells:
    """What claims are held against: the leading session's cells, those beside it, and its batch sweeps."""

    own: Sequence[Cell]
    everything: Sequence[Cell]
    sweeps: Sequence[BatchSweep]
    cards: Sequence[Card]


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
    if claim.compares:
        return _judge_pair(claim, measured)
    return _judge_side(claim, places, measured)


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
        return not_compared(claim, *nearest_terms(claim, places))
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
        at_any_hour = blocks_interval(figure.runs, level=EQUIVALENCE_LEVEL, assumed=ASSUMED_BLOCK_SPREAD)
        verdict = _judge_runs(claim, at_any_hour, figure.runs)
    return Judged(claim, verdict, (cell,), figure.mean, interval=figure.interval)


def _judge_pair(claim: Claim, measured: RecordedCells) -> Judged:
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
        why = nearest_terms(claim, own) or nearest_terms(second, own)
        return not_compared(claim, *(why or (Term("in_one_setting", False, True),)))
    found = choose_cells(claim, [first, second], pairs, measured)
    return found if isinstance(found, Judged) else _verdict_of_pair(claim, *found)


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


def obstacles(claim: Claim, cell: Cell, cards: Sequence[Card]) -> tuple[Term, ...]:
    """What differs; empty where the claim may be judged."""
    reasons = (
        Term("verdict", "invalid", "valid") if cell.verdict == "invalid" else None,
        _card_term(claim, cell, cards),
        _stack_term(claim, cell),
        _data_term(claim, cell),
        _validation_term(claim, cell),
        _length_term(claim, cell) if claim.target is None else _target_term(claim.target, cell),
    )
    return tuple(reason for reason in reasons if reason)


def _card_term(claim: Claim, cell: Cell, cards: Sequence[Card]) -> Term | None:
    trial = cell.trials[0]
    spoken_of = applies_to(
        claim,
        trial.environment.device,
        trial.device_name,
        trial.device_capability,
        cards,
        trial.device_memory_bytes,
    )
    if spoken_of:
        return None
    card = claim.card_class or claim.of.card
    return Term("card_class" if spoken_of is None else "card", cell.card, card)


def _stack_term(claim: Claim, cell: Cell) -> Term | None:
    """Versions named by an absolute claim that are not the ones used here."""
    if claim.kind != "absolute" or claim.stack is None:
        return None
    renamed = {"pytorch": "torch"}
    used = {name.casefold(): str(value) for name, value in cell.stack.versions}
    used["driver"] = cell.stack.driver or "unknown"
    for name, release, build in _VERSION.findall(claim.stack):
        version = used.get(renamed.get(name.casefold(), name.casefold()), "unknown")
        # 2.13.0+cpu is of 2.13.0 and of 2.13; a build that is claimed has to be that build.
        if not SpecifierSet(f"=={release}{build or '.*'}").contains(version, prereleases=True):
            return Term(name, version, release + build)
    return None if _VERSION.search(claim.stack) else Term("stack", None, claim.stack)


def _data_term(claim: Claim, cell: Cell) -> Term | None:
    metric = CLAIMED[claim.metric]
    if cell.key.data_source == "generated" and not metric.on_generated:
        return Term("data_source", "generated", "real")
    if metric.kind == "quality" and cell.key.weights == "random":
        return Term("weights", "random", "pretrained")
    return None


def _validation_term(claim: Claim, cell: Cell) -> Term | None:
    """A quality on a part of the validation is another one."""
    if claim.target is None and CLAIMED[claim.metric].kind != "quality":
        return None
    for trial in cell.trials:
        measured = trial.record.measurement
        batches = validated_batches(measured) if measured else None
        if measured is not None and batches is not None:
            return Term("valid_batches", batches, measured.protocol.valid_batches)
    return None


def _target_term(target: float, cell: Cell) -> Term | None:
    """A run that ended without its target has no time to it, and a mean of the others would be too short."""
    found = to_target(cell, target)
    if found.runs and found.reached == found.runs:
        return None
    return Term("runs_with_target", found.reached, found.runs)


def _length_term(claim: Claim, cell: Cell) -> Term | None:
    """A quality needs its epochs; a projection needs a window that settled."""
    metric = CLAIMED[claim.metric]
    kind = metric.kind
    if kind == "quality" and (lost := sum(trial.lost for trial in cell.trials)):
        return Term("runs_that_learned", len(cell.trials) - lost, len(cell.trials))
    if kind == "quality":
        trained = max(trial.epochs_trained or 0 for trial in cell.trials)
        least = metric.least_epochs
        if least is not None:
            return None if trained >= least else Term("epochs", trained, least)
        epochs = claim.epochs or cell.length.epochs
        return None if trained == epochs else Term("epochs", trained, epochs)
    if kind == "duration" and cell.verdict == "unproven" and (cell.length.projected or metric.steady):
        return Term("settled", False, True)
    return None


def not_compared(claim: Claim, *differences: Term) -> Judged:
    """The claim, with what keeps it away from every record."""
    return Judged(claim, Verdict("not comparable"), differences=tuple(dict.fromkeys(differences)))


def nearest_terms(claim: Claim, places: Sequence[Cell]) -> tuple[Term, ...]:
    """What keeps the nearest cell away from a claim's side; empty where one has all of it."""
    return min((side_terms(claim, cell) for cell in places), key=len)


def choose_cells(
    claim: Claim, sides: Sequence[Claim], candidates: Sequence[tuple[Cell, ...]], measured: RecordedCells
) -> tuple[Cell, ...] | Judged:
    """Return the candidate with the most evidence, a cell for each side; else why none may be judged."""
    reasons = [
        [
            reason
            for side, cell in zip(sides, cells, strict=True)
            for reason in obstacles(side, cell, measured.cards)
        ]
        for cells in candidates
    ]
    comparable = [cells for cells, reason in zip(candidates, reasons, strict=True) if not reason]
    if not comparable:
        return not_compared(claim, *reasons[0])
    # What has the fewest runs counts for all that belong together.
    return max(comparable, key=lambda cells: min(_evidence(claim, cell) for cell in cells))


def _evidence(claim: Claim, cell: Cell) -> tuple[int, int, bool]:
    """The most runs, then blocks; whole runs on a tie."""
    figure = figure_of(claim, cell)
    runs = figure.runs if figure else cell.throughput.runs
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
        return bound_holds(measured, relation, bound, other_unit=other_unit, kind=claim.kind)
    assert claim.value is not None
    published = claim.value, claim.margin, claim.half_digit
    if seeds is not None:
        return seeds_hold(sides, seeds, *published, runs=claim.runs)
    spread, runs, kind = claim.spread, claim.runs, claim.kind
    return equivalence(measured, *published, spread=spread, runs=runs, other_unit=other_unit, kind=kind)
