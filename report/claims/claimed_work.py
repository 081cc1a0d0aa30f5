"""What a claim speaks of, held against cells: which have it, its figure there, and what the others lack."""

from __future__ import annotations

from harness.record import Claim, Side
from harness.record.vocabulary.workload import read_workload
from report.compare.cells import Cell, Figure, Run, figure_of_runs, to_target
from report.metrics import CLAIMED
from report.trials.key import PartialKey, Term, Value
from report.trials.trial import TrialResult

EPOCH, DEVICE = "epoch", "device"
PARTS = (EPOCH, DEVICE)
"""Options of a claim that say which epoch or devices of a trial alone it is of; no trial has them."""
SCALED_DOWN = "scaled down: "
SMALLER = (SCALED_DOWN, "smaller images than the model's own: ")
"""How a workload's notes begin that say so; the size of images is a part of the key, and claims name it."""


def matches(claim: Claim, cell: Cell) -> bool:
    """Whether a cell has what the claim's side names, the card aside."""
    return cell.key.workload == claim.workload and not side_terms(claim, cell)


def side_terms(claim: Claim, cell: Cell) -> tuple[Term, ...]:
    """What a claim's side names and a cell does not have, the card aside."""
    side = claim.of
    found = asked_key(claim, side).less(*PARTS).differences(PartialKey.of(cell.key, cell.length))
    if (figure := figure_of(claim, cell)) is not None and nth_epoch(side) is not None and not figure.n:
        found = (*found, Term("epochs", cell.trials[0].epochs_trained, nth_epoch(side)))
    scaled_down = any(note.startswith(SCALED_DOWN) for note in smaller_notes(cell))
    return (*found, Term("scaled_down", True, False)) if scaled_down else found


def asked_key(claim: Claim, side: Side) -> PartialKey:
    """The key of the work that a side of a claim speaks of, as far as its publication says."""
    # A plan may ask for smaller images than the workload declares, which no figure is of.
    own = read_workload(claim.workload)
    named: dict[str, Value] = {
        "workload": claim.workload,
        "protocol": claim.protocol,
        "model": side.model.casefold(),
        "gpus": side.gpus,
        "nodes": 1,
        "profile": "default",
        "precision": side.precision,
        "batch_size": side.batch_size,
        "data_mode": side.data_mode,
        "image_size": side.image_size or (own.image_size if own else None),
        "sequence_length": side.sequence_length,
        "layout": side.layout,
        "epochs": claim.epochs if claim.metric == "protocol_seconds" else None,
    }
    known = tuple((name, value) for name, value in named.items() if value is not None)
    return PartialKey(known, tuple(side.options.items()))


def smaller_notes(cell: Cell) -> tuple[str, ...]:
    """What the workload says of a work that is smaller than its protocol, such as a narrower network."""
    measured = cell.trials[0].record.measurement
    notes = measured.notes if measured else ()
    return tuple(note for note in notes if note.startswith(SMALLER))


def figure_of(claim: Claim, cell: Cell) -> Figure | None:
    """What a cell has of a claim's metric; null where no cell has it."""
    if claim.target is not None:
        found = to_target(cell, claim.target)
        return found.epochs if claim.metric == "epochs_to_target" else found.seconds
    nth, devices = nth_epoch(claim.of), _devices(claim)
    if nth is None and devices is None:
        return measured_of(cell, claim.metric)
    # Of one of their epochs or devices, of those runs that have it.
    values = (
        (trial, _epoch_seconds(trial, nth) if nth is not None else trial.busy_percent_of(devices or ""))
        for trial in cell.trials
    )
    runs = [Run(value, trial.record.block, trial.verdict) for trial, value in values if value is not None]
    return figure_of_runs(runs, frozenset({"invalid"}), in_blocks=True)


def nth_epoch(side: Side) -> int | None:
    """Which epoch alone a figure is of; null where it is of none alone."""
    nth = side.options.get(EPOCH)
    return int(nth) if isinstance(nth, int) else None


def _devices(claim: Claim) -> str | None:
    """Which devices alone a utilisation is of, by their places; null where it is of none alone."""
    devices = claim.of.options.get(DEVICE) if claim.metric == "device_utilization" else None
    return None if devices is None else str(devices)


def measured_of(cell: Cell, metric: str) -> Figure | None:
    """What a cell has of a metric of claims that is of no target; null where no cell has it."""
    return cell.figures.get(CLAIMED[metric].name)


def _epoch_seconds(trial: TrialResult, nth: int) -> float | None:
    """Return the seconds of one epoch with its validation; null where a trial ended before it."""
    epoch = trial.epochs[nth - 1] if len(trial.epochs) >= nth else None
    return None if epoch is None else epoch.train_seconds + (epoch.valid_seconds or 0.0)
