"""What a claim may be of: the figure of a cell that it is, and what that depends on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["duration", "quality", "memory", "count"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric of claims. A duration depends on the device, a quality on the data, a count on the code."""

    kind: Kind
    figure: str | None = None
    """The attribute of a cell; null where none has it."""
    on_generated: bool = False
    """Whether data that only has the shape of the real gives the same."""

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
    "time_to_accuracy": Metric("duration"),
    "device_utilization": Metric("duration"),
    "device_memory_share": Metric("memory"),
    "train_loss": Metric("quality", "train_loss"),
    "auc": Metric("quality"),
}
