"""What a claim may be of: the figure of a cell that it is, and what that depends on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Any, Literal

from harness.record import Claim
from report.comparisons.cells import FIGURES, Cell
from report.comparisons.figures import Figure
from report.comparisons.targets import target_reached, to_target
from report.trials.columns import COLUMNS
from report.trials.learning import EARLY_EPOCHS
from report.trials.trial import Trial

Kind = Literal["duration", "quality", "memory", "count"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of claims. A duration depends on the device, a quality on the data, a count on the code."""

    kind: Kind
    figure: str | None = None
    """The attribute of a cell; null where none has it."""
    on_generated: bool = False
    """Whether data that only has the shape of the real gives the same."""
    least_epochs: int | None = None
    """How many epochs of a run are enough for it; null for all that the claim names."""
    may_be_zero: bool = False
    """Whether it has no ratio: two sides are then told apart by their difference."""

    @property
    def needs_run(self) -> bool:
        """Whether a verdict needs a run on the reader's machine; else it follows from data or code alone."""
        return self.kind != "count"


METRICS = {
    "protocol_seconds": Metric("duration", "seconds"),
    "epoch_seconds": Metric("duration", "epoch_seconds"),
    "throughput": Metric("duration", "throughput"),
    "accuracy": Metric("quality", "quality"),
    "perplexity": Metric("quality", "quality"),
    "test_perplexity": Metric("quality", "test_quality"),
    "valid_loss": Metric("quality", "valid_loss"),
    "smoothed_train_loss": Metric("quality", "smoothed_train_loss"),
    # Sizes of tensors follow from the shapes of the data, which generated data has too.
    "peak_bytes": Metric("memory", "allocated_bytes", on_generated=True),
    "batch_ratio": Metric("memory", on_generated=True),
    "parameters": Metric("count", on_generated=True),
    "train_items": Metric("count"),
    "valid_items": Metric("count"),
    "test_items": Metric("count"),
    "data_items": Metric("count"),
    "step_seconds": Metric("duration", "step_seconds"),
    "inference_seconds": Metric("duration"),
    # The best of all validations, for a target that was reached or was not.
    "best_accuracy": Metric("quality", "best_quality"),
    "early_fall": Metric("quality", "early_fall", least_epochs=EARLY_EPOCHS, may_be_zero=True),
    "epochs_to_target": Metric("quality"),
    "seconds_to_target": Metric("duration"),
    "device_utilization": Metric("duration"),
    "device_memory_share": Metric("memory"),
    "train_loss": Metric("quality", "train_loss"),
    "auc": Metric("quality", "test_quality"),
}

RATES = ("throughput", "step_seconds")
"""Metrics of steady steps, however many epochs they are of."""

_SOURCES = {column.name: column.source.split(".") for column in COLUMNS}


def figure_of(claim: Claim, cell: Cell) -> Figure | None:
    """What a cell has of a claim's metric; null where no cell has it."""
    if claim.target is not None:
        found = to_target(cell, claim.target)
        return found.epochs if claim.metric == "epochs_to_target" else found.seconds
    name = METRICS[claim.metric].figure
    figure: Figure | None = getattr(cell, name) if name else None
    return figure


def value_of(claim: Claim, trial: Trial) -> float | None:
    """What one trial has of a claim's metric."""
    if claim.target is not None:
        place = target_reached(trial, claim.target)
        if place is None:
            return None
        return float(place.epochs) if claim.metric == "epochs_to_target" else place.seconds
    name = METRICS[claim.metric].figure
    assert name is not None
    found: Any = reduce(lambda part, at: part and getattr(part, at), _SOURCES[FIGURES[name]], trial)
    return None if found is None else float(found)
