"""The table of trials: a pandas DataFrame, one row a trial, its columns as `COLUMNS` has them."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from harness.record import Finding
from harness.record.finding import finding_sentence
from report.trials.trial import TrialResult

if TYPE_CHECKING:
    from pandas import DataFrame

Dtype = Literal["string", "Int64", "Float64", "boolean", "datetime64[us, UTC]", "object"]
Part = Literal["key", "length", "stack", "place", ""]

PARTS = ("key", "length", "stack")
"""Those that are values of their own."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. Trials that are equal in all columns with a `part` are repeats of each other."""

    name: str
    dtype: Dtype
    part: Part = ""
    at: str = ""
    """Where a result has the value, if not under the column's name in itself, its key, length or stack."""

    @property
    def source(self) -> str:
        """The attributes that lead from a `TrialResult` to the value, with dots between."""
        return self.at or (f"{self.part}.{self.name}" if self.part in PARTS else self.name)


COLUMNS = (
    Column("path", "string"),
    Column("session", "string", "place"),
    Column("plan", "string", at="record.plan"),
    Column("trial_id", "string", at="record.trial.id"),
    Column("repeat", "Int64", at="record.trial.repeat"),
    Column("attempt", "Int64", at="record.attempt"),
    Column("block", "Int64", at="record.block"),
    Column("order", "Int64", at="record.order"),
    Column("seed", "Int64", at="record.trial.seed"),
    Column("started_at", "datetime64[us, UTC]", at="record.started_at"),
    Column("wall_seconds", "Float64", at="record.wall_seconds"),
    Column("status", "string", at="record.status"),
    Column("machine", "string", "place"),
    Column("machine_label", "string"),
    Column("card", "string", "place"),
    Column("device_name", "string"),
    Column("device_capability", "string"),
    Column("device_unit", "string"),
    Column("workload", "string", "key"),
    Column("protocol", "string", "key"),
    Column("model", "string", "key"),
    Column("precision", "string", "key"),
    Column("batch_size", "Int64", "key"),
    Column("data_source", "string", "key"),
    Column("data_sha256", "string", "key"),
    Column("data_mode", "string", "key"),
    Column("weights", "string", "key"),
    Column("weights_sha256", "string", "key"),
    Column("image_size_pixels", "Int64", "key", at="key.image_size"),
    Column("sequence_length_tokens", "Int64", "key", at="key.sequence_length"),
    Column("layout", "string", "key"),
    Column("profile", "string", "key"),
    Column("gpus", "Int64", "key"),
    Column("nodes", "Int64", "key"),
    Column("options", "string", "key"),
    Column("file_sha256", "string", "key"),
    Column("steps_per_epoch", "Int64", "length"),
    Column("epochs", "Int64", "length"),
    Column("valid_batches", "Int64", "length"),
    Column("projected", "boolean", "length"),
    Column("limit", "string", "length"),
    Column("image", "string", "stack"),
    Column("device_kind", "string", "stack", at="stack.device"),
    Column("lock_sha256", "string", "stack", at="stack.lock"),
    Column("base_digest", "string", "stack", at="stack.base"),
    Column("driver", "string", "stack"),
    Column("versions", "string", "stack"),
    Column("variables", "string", "stack"),
    Column("engine", "string", at="environment.engine"),
    Column("pinned", "boolean", at="environment.pinned"),
    Column("sample_unit", "string"),
    Column("epochs_trained", "Int64"),
    Column("steps_trained", "Int64"),
    Column("protocol_seconds", "Float64"),
    Column("epoch_seconds", "Float64"),
    Column("samples_per_second", "Float64"),
    Column("step_seconds", "Float64"),
    Column("quality", "Float64", at="last_validated.quality"),
    Column("quality_name", "string"),
    Column("best_quality", "Float64"),
    Column("early_fall", "Float64"),
    Column("valid_loss", "Float64", at="last_validated.valid_loss"),
    Column("test_quality", "Float64", at="record.measurement.test_quality"),
    Column("train_loss", "Float64"),
    Column("smoothed_train_loss", "Float64"),
    Column("peak_bytes", "Int64"),
    Column("allocated_bytes", "Int64", at="record.measurement.memory.allocated_peak_bytes"),
    Column("memory_percent", "Float64"),
    Column("busy_percent", "Float64"),
    Column("input_share", "Float64", at="summary.input_share"),
    Column("host_share", "Float64", at="summary.host_bound_share"),
    Column("joules_per_sample", "Float64"),
    Column("busy_share", "Float64"),
    Column("flops_per_sample", "Float64", at="record.measurement.flops.per_sample"),
    Column("bottleneck", "string"),
    Column("verdict", "string"),
    Column("causes", "string"),
    Column("notes", "string", at="summary.notes"),
    Column("warnings", "string", at="record.warnings"),
    Column("failure_kind", "string", at="failure.kind"),
    Column("failure_stage", "string", at="failure.stage"),
    Column("failure_reason", "string", at="failure.reason"),
    Column("is_ceiling", "boolean"),
    Column("trial", "object"),
)
"""docs/data.md says what each of them means, and in what unit it is."""


def table_of(trials: Sequence[TrialResult]) -> DataFrame:
    """One row for each trial, in their order; what is unknown or not a number is null."""
    # A page needs none of it, and it takes as long to load as a page's charts.
    import pandas

    def series(column: Column) -> Any:
        values = _values(column, trials)
        if column.dtype == "datetime64[us, UTC]":
            return pandas.to_datetime(values, utc=True, errors="coerce").as_unit("us").array
        return pandas.array(values, dtype=column.dtype)

    return pandas.DataFrame({column.name: series(column) for column in COLUMNS})


def write_csv(trials: Sequence[TrialResult], path: Path) -> None:
    """All columns but the trial itself; text that a spreadsheet would compute is led by an apostrophe."""
    written = [column for column in COLUMNS if column.dtype != "object"]
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(column.name for column in written)
        # All columns of few trials before the next: what a processor has at hand is few of them.
        for start in range(0, len(trials), 50):
            few = trials[start : start + 50]
            columns = ([_csv_cell(value, each.dtype) for value in _values(each, few)] for each in written)
            rows.writerows(zip(*columns, strict=True))


def _csv_cell(value: Any, dtype: Dtype) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if dtype == "datetime64[us, UTC]":
        try:
            return str(value.astimezone(UTC))
        except OverflowError:
            return ""
    if dtype == "string":
        return f"'{value}" if value.startswith(FORMULA) else value
    return repr(float(value)) if dtype == "Float64" else str(value)


def _values(column: Column, trials: Sequence[TrialResult]) -> list[Any]:
    values: list[Any] = list(trials)
    for name in () if column.dtype == "object" else column.source.split("."):
        values = [None if value is None else getattr(value, name) for value in values]
    return [_column_text(value, column) for value in values] if column.dtype == "string" else values


def _column_text(value: Any, column: Column) -> str | None:
    """Pairs are JSON, clauses have semicolons between; empty text of no part is null."""
    if isinstance(value, tuple):
        pairs = column.part in PARTS
        value = json.dumps(dict(value), ensure_ascii=False) if pairs else "; ".join(map(_finding_text, value))
    return value if column.part else value or None


def _finding_text(value: Any) -> str:
    return f"{value.name}: {finding_sentence(value)}" if isinstance(value, Finding) else str(value)
