"""What is measured of a trial and what publications print: one row a metric, with all that depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from report.trials.columns import COLUMNS
from report.trials.learning import EARLY_EPOCHS

Kind = Literal["duration", "quality", "memory", "count", "share", "energy"]
"""A duration depends on the device, a quality on the data, a count on the code."""

_SOURCES = {column.name: column.source for column in COLUMNS}


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `figure` is the attribute of a cell; null where no cell has it."""

    kind: Kind
    figure: str | None = None
    column: str | None = None
    """Of the table of trials; null where it is the figure's name, or where no trial has it."""
    claimed_as: tuple[str, ...] = ()
    """The metrics of claims that it is."""
    unit: str = ""
    """In which a page writes it; empty where that depends on the workload."""
    more_is_better: bool = False
    """Of durations, memory and energy; of a quality the workload says it."""
    steady: bool = False
    """Whether it is of steady steps, however many epochs they are of."""
    on_generated: bool = False
    """Whether data that only has the shape of the real gives the same."""
    least_epochs: int | None = None
    """How many epochs of a run are enough for it; null for all that the claim names."""
    may_be_zero: bool = False
    """Whether it has no ratio: two sides are then told apart by their difference."""

    @property
    def source(self) -> tuple[str, ...]:
        """The attributes that lead from a `Trial` to the value."""
        return tuple(_SOURCES[self.column or self.figure or ""].split("."))

    @property
    def of_one_length(self) -> bool:
        """Whether a cell has it only where its trials trained equally long."""
        return self.kind == "quality" and self.least_epochs is None

    @property
    def at_any_hour(self) -> bool:
        """Whether no hour of a machine changes it: each run is a replicate, whatever its block."""
        return self.kind in ("quality", "memory")

    @property
    def needs_run(self) -> bool:
        """Whether a verdict needs a run on the reader's machine; else it follows from data or code alone."""
        return self.kind != "count"


TABLE = (
    Metric("duration", "seconds", "protocol_seconds", ("protocol_seconds",), "seconds"),
    Metric("duration", "epoch_seconds", claimed_as=("epoch_seconds",), unit="seconds"),
    Metric(
        "duration",
        "throughput",
        "samples_per_second",
        claimed_as=("throughput",),
        more_is_better=True,
        steady=True,
    ),
    Metric("duration", "step_seconds", claimed_as=("step_seconds",), unit="seconds", steady=True),
    Metric("quality", "quality", claimed_as=("accuracy", "perplexity")),
    # The best of all validations, for a target that was reached or was not.
    Metric("quality", "best_quality", claimed_as=("best_accuracy",)),
    Metric(
        "quality",
        "early_fall",
        claimed_as=("early_fall",),
        least_epochs=EARLY_EPOCHS,
        may_be_zero=True,
    ),
    Metric("quality", "valid_loss", claimed_as=("valid_loss",)),
    Metric("quality", "train_loss", claimed_as=("train_loss",)),
    Metric("quality", "smoothed_train_loss", claimed_as=("smoothed_train_loss",)),
    Metric("quality", "test_quality", claimed_as=("test_perplexity", "auc")),
    Metric("memory", "peak_bytes", unit="bytes"),
    # Sizes of tensors follow from the shapes of the data, which generated data has too.
    Metric("memory", "allocated_bytes", claimed_as=("peak_bytes",), unit="bytes", on_generated=True),
    Metric("share", "input_share"),
    Metric("share", "host_share"),
    Metric("energy", "joules", "joules_per_sample"),
    Metric("memory", claimed_as=("batch_ratio",), on_generated=True),
    Metric("count", claimed_as=("parameters",), on_generated=True),
    Metric("count", claimed_as=("train_items", "valid_items", "test_items", "data_items")),
    Metric("duration", claimed_as=("inference_seconds",), unit="seconds"),
    Metric("quality", claimed_as=("epochs_to_target",)),
    Metric("duration", claimed_as=("seconds_to_target",), unit="seconds"),
    Metric("duration", claimed_as=("device_utilization",)),
    Metric("memory", claimed_as=("device_memory_share",)),
)

FIGURES = {metric.figure: metric for metric in TABLE if metric.figure}
"""By the attribute of a cell."""

CLAIMED = {name: metric for metric in TABLE for name in metric.claimed_as}
"""By the name that claims have for it."""
