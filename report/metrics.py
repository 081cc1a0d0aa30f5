"""What is measured of a trial and what publications print: one row a metric, with all that depends on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from report.trials.learning import EARLY_EPOCHS
from report.trials.trial import TrialResult


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `path` leads from a `TrialResult` to its value; empty where no trial has it."""

    name: str
    kind: Literal["duration", "quality", "memory", "count", "share", "energy"]
    """A duration depends on the device, a quality on the data, a count on the code."""
    path: str = ""
    claimed_as: tuple[str, ...] = ()
    """The names that claims have for it."""
    unit: str = ""
    """The unit on a page; empty where it depends on the workload."""
    more_is_better: bool = False
    """Whether more of a duration, of memory or energy is better; of a quality the workload says it."""
    steady: bool = False
    """Whether it is measured over steady steps, however many epochs these are."""
    on_generated: bool = False
    """Whether data that only has the shape of the real gives the same."""
    least_epochs: int | None = None
    """How many epochs of a run are enough for it; null where all epochs of the claim are needed."""
    may_be_zero: bool = False
    """Whether it has no ratio: two sides are then compared by their difference."""

    def of(self, trial: TrialResult) -> float | None:
        """Return a trial's value of the metric; null where it is unknown."""
        value: Any = trial
        for attribute in self.path.split("."):
            value = None if value is None else getattr(value, attribute)
        return None if value is None else float(value)

    @property
    def of_one_length(self) -> bool:
        """Whether a cell has it only where its trials trained equally long."""
        return self.kind == "quality" and self.least_epochs is None

    @property
    def at_any_hour(self) -> bool:
        """Whether no hour of a machine changes it: each run is a replicate, whatever its block."""
        return self.kind in ("quality", "memory")


TABLE = (
    Metric("seconds", "duration", "protocol_seconds", ("protocol_seconds",), "seconds"),
    Metric("epoch_seconds", "duration", "epoch_seconds", ("epoch_seconds",), "seconds"),
    Metric("throughput", "duration", "samples_per_second", ("throughput",), more_is_better=True, steady=True),
    Metric("step_seconds", "duration", "step_seconds", ("step_seconds",), "seconds", steady=True),
    Metric("quality", "quality", "last_validated.quality", ("accuracy", "perplexity")),
    # The best of all validations, for a target that was reached or was not.
    Metric("best_quality", "quality", "best_quality", ("best_accuracy", "best_loss")),
    Metric(
        "early_fall",
        "quality",
        "early_fall",
        ("early_fall",),
        least_epochs=EARLY_EPOCHS,
        may_be_zero=True,
    ),
    Metric("valid_loss", "quality", "last_validated.valid_loss", ("valid_loss",)),
    Metric("train_loss", "quality", "train_loss", ("train_loss",)),
    Metric("smoothed_train_loss", "quality", "smoothed_train_loss", ("smoothed_train_loss",)),
    Metric("test_quality", "quality", "record.measurement.test_quality", ("test_perplexity", "auc")),
    Metric("peak_bytes", "memory", "peak_bytes", unit="bytes"),
    # Sizes of tensors follow from the shapes of the data, which generated data has too.
    Metric(
        "allocated_bytes",
        "memory",
        "record.measurement.memory.allocated_peak_bytes",
        ("peak_bytes",),
        "bytes",
        on_generated=True,
    ),
    Metric("input_share", "share", "summary.input_share"),
    Metric("host_share", "share", "summary.host_bound_share"),
    Metric("joules", "energy", "joules_per_sample"),
    Metric("batch_ratio", "memory", claimed_as=("batch_ratio",), on_generated=True),
    Metric("parameters", "count", claimed_as=("parameters",), on_generated=True),
    Metric("items", "count", claimed_as=("train_items", "valid_items", "test_items", "data_items")),
    Metric("inference_seconds", "duration", claimed_as=("inference_seconds",), unit="seconds"),
    Metric("epochs_to_target", "quality", claimed_as=("epochs_to_target",)),
    Metric("seconds_to_target", "duration", claimed_as=("seconds_to_target",), unit="seconds"),
    Metric("device_utilization", "share", "busy_percent", ("device_utilization",), on_generated=True),
    Metric("device_memory_share", "memory", "memory_percent", ("device_memory_share",), on_generated=True),
)

FIGURES = {metric.name: metric for metric in TABLE if metric.path}
"""The metrics that a trial, and so a cell, has, by their names."""

CLAIMED = {name: metric for metric in TABLE for name in metric.claimed_as}
"""The metrics by the names that claims have for them."""
