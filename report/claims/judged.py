"""A claim with its verdict, and what every form of claim is judged with."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from packaging.specifiers import SpecifierSet

from harness.record import Claim, Side
from harness.record.published.cards import Card
from harness.record.published.claim_set import applies_to
from report.claims.matching import figure_of, side_terms
from report.compare.batch_sweeps import BatchSweep
from report.compare.cells import Cell, to_target
from report.compare.partial_key import Term
from report.compare.spread import ASSUMED_SPREAD
from report.metrics import CLAIMED
from report.stats.equivalence import Verdict, bound_holds, equivalence, seeds_bounded, seeds_hold
from report.stats.intervals import Interval, Runs
from report.trials.learning import validated_batches

_VERSION = re.compile(
    r"\b(PyTorch|fastai|CUDA|driver|cuDNN) (\d+(?:\.\d+)*)((?:(?:a|b|rc|\.dev)\d+)?(?:\+\w+(?:\.\w+)*)?)",
    re.A,
)


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


def not_compared(claim: Claim, *differences: Term) -> Judged:
    """The claim, with what keeps it away from every record."""
    return Judged(claim, Verdict("not comparable"), differences=tuple(dict.fromkeys(differences)))


def nearest_terms(side: Side, claim: Claim, places: Sequence[Cell]) -> tuple[Term, ...]:
    """What keeps the nearest cell away from a side; empty where one has all of it."""
    return min((side_terms(side, claim, cell) for cell in places), key=len)


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


def judge_runs(claim: Claim, *sides: Runs, paired: bool = False) -> Verdict:
    """Return the verdict on one side, or on the first over the second, by the spread of seeds or of runs."""
    positive = all(runs.values and min(runs.values) > 0 for runs in sides)
    seeds, relation = claim.seeds if positive else None, claim.relation
    other_unit = ASSUMED_SPREAD if claim.kind == "absolute" else 0.0
    if relation != "equal":
        bound = 1.0 if claim.value is None else claim.value
        if seeds is not None:
            return seeds_bounded(sides, seeds, relation, bound)
        return bound_holds(sides, relation, bound, paired=paired, other_unit=other_unit, kind=claim.kind)
    assert claim.value is not None
    published = claim.value, claim.margin, claim.half_digit
    if seeds is not None:
        return seeds_hold(sides, seeds, *published, runs=claim.runs)
    spread, kind = claim.spread, claim.kind
    return equivalence(
        sides, *published, spread=spread, runs=claim.runs, paired=paired, other_unit=other_unit, kind=kind
    )
