"""Claims held against cells: a verdict where like meets like, else the fields that keep them apart."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from harness.record import Claim, Side
from harness.record.cards import Card
from harness.record.claims import speaks_of
from report.claims.matching import matches, side_differences
from report.comparisons.cells import PROJECTION_TOLERANCE, Cell, cell_ratio, selected_alike, side_by_side
from report.comparisons.figures import Figure
from report.comparisons.groups import ComparisonGroup
from report.comparisons.unit_spread import ASSUMED_SPREAD
from report.stats.equivalence import (
    Verdict,
    bound_holds,
    equivalence,
    not_comparable,
    order_holds,
    ratio_holds,
    structure_holds,
)
from report.stats.intervals import blocks_interval

DURATIONS = ("protocol_seconds", "epoch_seconds", "throughput")
QUALITIES = ("accuracy", "perplexity", "valid_loss", "train_loss")
STRUCTURES = ("parameters", "train_items", "valid_items")

_FIGURES = {
    "protocol_seconds": "seconds",
    "epoch_seconds": "epoch_seconds",
    "throughput": "throughput",
    "accuracy": "quality",
    "perplexity": "quality",
    "valid_loss": "valid_loss",
    "train_loss": "train_loss",
    "peak_bytes": "peak_bytes",
}
"""Each metric of a claim, and the figure of a cell that it is."""

_VERSION = re.compile(r"\b(PyTorch|fastai|CUDA|driver|cuDNN) (\d[\w.]*)")


@dataclass(frozen=True, slots=True)
class Judged:
    """A claim, its verdict, and the cells it was held against."""

    claim: Claim
    verdict: Verdict
    cells: tuple[Cell, ...] = ()
    measured: float | None = None

    @property
    def compared(self) -> bool:
        """Whether like met like, whatever came of it."""
        return self.verdict.word != "not comparable"


def judge(
    claims: Iterable[Claim], groups: Sequence[ComparisonGroup], cards: Sequence[Card]
) -> tuple[Judged, ...]:
    """Every claim with its verdict, held against the leading session and what stands beside it."""
    own = [entry.cell for group in groups for entry in group.entries if entry.own]
    beside = [entry.cell for group in groups for entry in group.entries if not entry.own]
    return tuple(_with_protocol_note(_judge(claim, own, beside, cards)) for claim in claims)


def _with_protocol_note(judged: Judged) -> Judged:
    """A verdict on a protocol that had to be made up anew says so first."""
    if not (judged.claim.reconstructed and judged.compared):
        return judged
    because = ("protocol reconstructed", *judged.verdict.because)
    return replace(judged, verdict=replace(judged.verdict, because=because))


def _judge(claim: Claim, own: Sequence[Cell], beside: Sequence[Cell], cards: Sequence[Card]) -> Judged:
    if claim.value is None and claim.kind != "order":
        return _not_compared(claim, "it has no figure to judge")
    if claim.metric not in _FIGURES and claim.metric not in STRUCTURES:
        return _not_compared(claim, f"no trial measures the {claim.metric.replace('_', ' ')}")
    places = [cell for cell in own if cell.key.workload == claim.workload]
    if not places:
        return _not_compared(claim, f"workload '{claim.workload}' was not measured here")
    if claim.over is not None:
        return _judge_pair(claim, own, [*own, *beside], cards)
    return _judge_side(claim, places, cards)


def _not_compared(claim: Claim, *because: str) -> Judged:
    return Judged(claim, not_comparable(because))


def _judge_side(claim: Claim, places: Sequence[Cell], cards: Sequence[Card]) -> Judged:
    fit = [cell for cell in places if matches(claim, cell)]
    if not fit:
        return _not_compared(claim, *_nearest_differences(claim.of, claim, places))
    reasons = [_obstacles(claim, cell, cards, places) for cell in fit]
    for cell, reason in sorted(zip(fit, reasons, strict=True), key=lambda pair: pair[0].length.projected):
        if not reason:
            return _verdict_of_side(claim, cell)
    return _not_compared(claim, *reasons[0])


def _verdict_of_side(claim: Claim, cell: Cell) -> Judged:
    assert claim.value is not None
    if claim.kind == "structure":
        count = _structure(claim, cell)
        if count is None:
            return _not_compared(claim, f"the records do not hold the {claim.metric.replace('_', ' ')}")
        return Judged(claim, structure_holds(count, claim.value, claim.half_digit), (cell,), count)
    figure: Figure = getattr(cell, _FIGURES[claim.metric])
    verdict = equivalence(
        figure.runs,
        claim.value,
        claim.margin,
        claim.half_digit,
        spread=claim.spread,
        runs=claim.runs,
        other_unit=ASSUMED_SPREAD if claim.kind == "absolute" else 0.0,
        kind=claim.kind,
    )
    return Judged(claim, verdict, (cell,), figure.mean)


def _structure(claim: Claim, cell: Cell) -> float | None:
    if claim.metric == "peak_bytes":
        return cell.peak_bytes.mean
    measured = cell.trials[0].record.measurement
    assert measured is not None
    items = {"train_items": measured.data.train_items, "valid_items": measured.data.valid_items}
    count = items.get(claim.metric)
    count = measured.structure.get(claim.metric) if count is None else count
    return None if count is None else float(count)


def _judge_pair(
    claim: Claim, own: Sequence[Cell], everything: Sequence[Cell], cards: Sequence[Card]
) -> Judged:
    assert claim.over is not None
    second = claim.model_copy(update={"of": claim.over})
    pairs = [
        (of, over)
        for of in everything
        if matches(claim, of)
        for over in everything
        if matches(second, over) and _same_setting(claim, of, over) and (of in own or over in own)
    ]
    if not pairs:
        why = _nearest_differences(claim.of, claim, own) or _nearest_differences(claim.over, second, own)
        return _not_compared(claim, *(why or ("both sides were not measured on one machine",)))
    pairs.sort(key=lambda pair: pair[0].length.projected)
    reason = [
        *_obstacles(claim, pairs[0][0], cards, everything),
        *_obstacles(second, pairs[0][1], cards, everything),
    ]
    if reason:
        return _not_compared(claim, *dict.fromkeys(reason))
    return _verdict_of_pair(claim, *pairs[0])


def _same_setting(claim: Claim, of: Cell, over: Cell) -> bool:
    """Both on one machine and stack, unless the claim is of two cards; both projected, or neither."""
    assert claim.over is not None
    crossed = claim.of.card != claim.over.card
    same = (of.session, of.machine, of.card, of.stack) == (over.session, over.machine, over.card, over.stack)
    return (crossed or same) and of.length.projected == over.length.projected


def _verdict_of_pair(claim: Claim, of: Cell, over: Cell) -> Judged:
    """An order is of the first over the second; a ratio is published as how many times the second it is."""
    ordered = (of, over) if claim.kind == "order" else (over, of)
    runs = selected_alike(*ordered, _FIGURES[claim.metric])
    paired = side_by_side(of, over)
    if claim.kind == "order":
        verdict = order_holds(*runs, claim.relation, claim.margin, paired=paired)
    elif claim.relation == "equal":
        assert claim.value is not None
        verdict = ratio_holds(
            *runs,
            claim.value,
            claim.margin,
            claim.half_digit,
            spread=claim.spread,
            runs=claim.runs,
            paired=paired,
        )
    else:
        assert claim.value is not None
        verdict = bound_holds(*runs, claim.relation, claim.value, paired=paired)
    measured = blocks_interval(*runs, paired=paired)
    return Judged(claim, verdict, (of, over), measured.estimate if measured else None)


def _nearest_differences(side: Side, claim: Claim, places: Sequence[Cell]) -> tuple[str, ...]:
    """What keeps the nearest cell away from a side; empty where one has all of it."""
    differences = [side_differences(side, claim, cell) for cell in places]
    return min(differences, key=len, default=("nothing was measured",))


def _obstacles(claim: Claim, cell: Cell, cards: Sequence[Card], places: Sequence[Cell]) -> tuple[str, ...]:
    """Why a claim is not judged on a cell that has everything its side names."""
    return tuple(
        reason
        for reason in (
            _card(claim, cell, cards),
            _stack(claim, cell),
            _data(claim, cell),
            _length(claim, cell, places),
        )
        if reason
    )


def _card(claim: Claim, cell: Cell, cards: Sequence[Card]) -> str | None:
    trial = cell.trials[0]
    spoken_of = speaks_of(claim, trial.environment.device, trial.device_name, trial.device_capability, cards)
    if spoken_of:
        return None
    card = claim.card_class or claim.of.card
    if spoken_of is None:
        return f"whether {cell.card} belongs to the cards of class '{card}' is not known"
    return f"card: {cell.card} instead of {card}"


def _stack(claim: Claim, cell: Cell) -> str | None:
    """Versions named by an absolute claim that are not the ones used here."""
    if claim.kind != "absolute" or claim.stack is None:
        return None
    renamed = {"pytorch": "torch"}
    used = {name.casefold(): str(value) for name, value in cell.stack.versions}
    used["driver"] = cell.stack.driver or "unknown"
    for name, claimed in _VERSION.findall(claim.stack):
        version = used.get(renamed.get(name.casefold(), name.casefold()), "unknown")
        if version != claimed and not version.startswith(f"{claimed}."):
            return f"stack: {name} {version} instead of {claimed}"
    return None if _VERSION.search(claim.stack) else f"stack: not {claim.stack}"


def _data(claim: Claim, cell: Cell) -> str | None:
    if cell.key.data_source == "generated":
        return "data: generated data is never judged"
    if claim.metric in QUALITIES and cell.key.weights == "random":
        return "starting weights: a random body instead of a pretrained one"
    return None


def _length(claim: Claim, cell: Cell, places: Sequence[Cell]) -> str | None:
    """A quality needs its epochs; a projection needs a window that settled, and the whole run near it."""
    if claim.metric in QUALITIES:
        trained = max(trial.epochs_trained or 0 for trial in cell.trials)
        epochs = claim.epochs or cell.length.epochs
        return None if trained == epochs else f"epochs: {trained} instead of {epochs}"
    if claim.metric not in DURATIONS or not cell.length.projected:
        return None
    if cell.verdict == "unproven":
        return "length: projected from a window too short to have settled"
    for whole in places:
        if (whole.key, whole.session, whole.card) == (
            cell.key,
            cell.session,
            cell.card,
        ) and whole is not cell:
            ratio = None if whole.length.projected else cell_ratio(cell, whole, "seconds")
            if ratio and abs(ratio.estimate - 1) > PROJECTION_TOLERANCE:
                return f"length: the projection is {abs(ratio.estimate - 1):.0%} off the whole run"
    return None
