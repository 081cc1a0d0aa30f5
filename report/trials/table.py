"""The table of trials: a pandas DataFrame, one row a trial, its columns as `COLUMNS` has them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pandas
from pandas import DataFrame

from harness.record import Finding
from harness.record.finding import sentence
from report.trials.trial import TrialResult

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
    meaning: str
    part: Part = ""
    unit: str = ""
    at: str = ""
    """Where a result has the value, if not under the column's name in itself, its key, length or stack."""

    @property
    def source(self) -> str:
        """The attributes that lead from a `TrialResult` to the value, with dots between."""
        return self.at or (f"{self.part}.{self.name}" if self.part in PARTS else self.name)


COLUMNS = (
    Column("path", "string", "The record's file, from the folder above `results/`"),
    Column("session", "string", "The session's id: its UTC date and six hex digits", "place"),
    Column("plan", "string", "The plan's name", at="record.plan"),
    Column("trial_id", "string", "Workload, repeat, and a hash of what is asked", at="record.trial.id"),
    Column("repeat", "Int64", "The repeat, from 1"),
    Column("attempt", "Int64", "Above 1 where the machinery failed the trial before", at="record.attempt"),
    Column("block", "Int64", "The block of time; blocks are an hour or more apart", at="record.block"),
    Column("order", "Int64", "The place in the session's randomised order, from 0", at="record.order"),
    Column("seed", "Int64", "The seed of the trial's random numbers", at="record.trial.seed"),
    Column("started_at", "datetime64[us, UTC]", "When it began"),
    Column(
        "wall_seconds", "Float64", "From its start until it had ended", unit="s", at="record.wall_seconds"
    ),
    Column("status", "string", "`ok` with a measurement, or `failed` without one", at="record.status"),
    Column("machine", "string", "The machine's random id", "place"),
    Column("machine_label", "string", "The machine's name in `results/`"),
    Column("card", "string", "The device's name, with their number where they are several", "place"),
    Column("device_name", "string", "One device's name, as the framework saw it"),
    Column("device_capability", "string", "The device's compute capability, or its gfx number"),
    Column("device_unit", "string", "The card's UUID as a hash: the same unit has the same one"),
    Column("workload", "string", "The workload", "key"),
    Column("protocol", "string", "What the workload does, as `name/number`", "key"),
    Column("model", "string", "The model that is trained", "key"),
    Column("precision", "string", "The arithmetic as found; of a failed trial as asked", "key"),
    Column("batch_size", "Int64", "Samples of one step on one device", "key", unit="samples a device"),
    Column("data_source", "string", "`real`, `synthetic` or `generated`", "key"),
    Column("data_sha256", "string", "The hash of the data's files", "key"),
    Column("data_mode", "string", "Where a step's input is from: `host`, `device` or `cached`", "key"),
    Column("weights", "string", "The starting weights: `pretrained` or `random`", "key"),
    Column("weights_sha256", "string", "The hash of the starting weights", "key"),
    Column(
        "image_size_pixels",
        "Int64",
        "The side of the input images",
        "key",
        unit="pixels",
        at="key.image_size",
    ),
    Column(
        "sequence_length_tokens",
        "Int64",
        "The length of a sequence",
        "key",
        unit="tokens",
        at="key.sequence_length",
    ),
    Column("layout", "string", "The memory layout: `contiguous` or `channels_last`", "key"),
    Column("profile", "string", "`default`, or `tuned` for the card", "key"),
    Column("gpus", "Int64", "The number of devices", "key", unit="devices"),
    Column(
        "nodes", "Int64", "The number of machines that these devices are spread over", "key", unit="nodes"
    ),
    Column("options", "string", "The workload's options, as JSON", "key"),
    Column("file_sha256", "string", "The hash of the user's own file, where that is the workload", "key"),
    Column("steps_per_epoch", "Int64", "Steps of one epoch of the protocol", "length", unit="steps"),
    Column("epochs", "Int64", "Epochs of the protocol", "length", unit="epochs"),
    Column("valid_batches", "Int64", "Batches of one validation of the protocol", "length", unit="batches"),
    Column("projected", "boolean", "Whether the whole's time is projected from a shorter run", "length"),
    Column("limit", "string", "Where a projected run was stopped, as JSON", "length"),
    Column("image", "string", "The environment's name", "stack"),
    Column("device_kind", "string", "`cpu`, `cuda` or `rocm`", "stack", at="stack.device"),
    Column("lock_sha256", "string", "The hash of the lock of all packages", "stack", at="stack.lock"),
    Column("base_digest", "string", "The digest of the base image", "stack", at="stack.base"),
    Column("driver", "string", "The driver's version", "stack"),
    Column("versions", "string", "Versions of the frameworks as they were found, as JSON", "stack"),
    Column("variables", "string", "Variables and card settings that change what runs, as JSON", "stack"),
    Column("engine", "string", "What ran the environment", at="environment.engine"),
    Column("pinned", "boolean", "Whether what was installed is what the lock says", at="environment.pinned"),
    Column("sample_unit", "string", "What a sample is: `image`, `token`, `byte` or `sample`"),
    Column("epochs_trained", "Int64", "Complete epochs that it trained", unit="epochs"),
    Column("steps_trained", "Int64", "Steps that it trained", unit="steps"),
    Column("protocol_seconds", "Float64", "The whole protocol; projected where it did not end", unit="s"),
    Column("epoch_seconds", "Float64", "A whole epoch; projected where none ran", unit="s"),
    Column("samples_per_second", "Float64", "Throughput of all devices together", unit="samples/s"),
    Column("step_seconds", "Float64", "Median of the steady steps", unit="s"),
    Column("quality", "Float64", "The workload's metric at the last validation", at="last_validated.quality"),
    Column("quality_name", "string", "What `quality` is: `accuracy` (0 to 1), `auc`, `perplexity` or `loss`"),
    Column("best_quality", "Float64", "The best of all validations"),
    Column(
        "early_fall", "Float64", "What `quality` loses from one of the first ten epochs to the next, a mean"
    ),
    Column("valid_loss", "Float64", "The loss at the last validation", at="last_validated.valid_loss"),
    Column(
        "test_quality",
        "Float64",
        "The workload's metric on the test split, after all epochs",
        at="record.measurement.test_quality",
    ),
    Column("train_loss", "Float64", "The last epoch's mean training loss"),
    Column("smoothed_train_loss", "Float64", "fastai's moving average of the training loss, at the end"),
    Column(
        "peak_bytes",
        "Int64",
        "Most memory: what a device's allocator, or a process on a CPU, held",
        unit="bytes",
    ),
    Column(
        "allocated_bytes",
        "Int64",
        "What tensors held at most; on a CPU where it is counted",
        unit="bytes",
        at="record.measurement.memory.allocated_peak_bytes",
    ),
    Column("memory_percent", "Float64", "Of a card's memory, what its driver saw taken at most", unit="%"),
    Column(
        "busy_percent", "Float64", "Of the measured time, that in which its least busy card worked", unit="%"
    ),
    Column(
        "input_share",
        "Float64",
        "Of the steady steps, waiting for input",
        unit="0 to 1",
        at="summary.input_share",
    ),
    Column(
        "host_share",
        "Float64",
        "Of the steady steps, without a kernel on the device",
        unit="0 to 1",
        at="summary.host_bound_share",
    ),
    Column("joules_per_sample", "Float64", "The devices' energy for one sample", unit="J"),
    Column(
        "flops_per_sample",
        "Float64",
        "Of one sample's training step",
        unit="operations",
        at="record.measurement.flops.per_sample",
    ),
    Column("verdict", "string", "`valid`, `warn`, `unproven`, or `invalid`, which a failed trial is too"),
    Column("causes", "string", "What the verdict stands on, each as name, colon and clause"),
    Column("notes", "string", "What is normal and worth knowing of the device", at="summary.notes"),
    Column("warnings", "string", "What changed within the session", at="record.warnings"),
    Column(
        "failure_kind", "string", "`trial`, or `machinery`: it says nothing of the card", at="failure.kind"
    ),
    Column("failure_stage", "string", "Where it failed, such as `train`", at="failure.stage"),
    Column("failure_reason", "string", "Why it failed, such as `out-of-memory`", at="failure.reason"),
    Column("is_ceiling", "boolean", "Whether it looked for the device's limits, and trained nothing"),
    Column("trial", "object", "The trial itself with its whole record; in no CSV file"),
)


def table_of(trials: Sequence[TrialResult]) -> DataFrame:
    """One row for each trial, in their order; what is unknown or not a number is null."""
    return DataFrame({column.name: _values(column, trials) for column in COLUMNS})


def write_csv(trials: Sequence[TrialResult], path: Path) -> None:
    """All columns but the trial itself; text that a spreadsheet would compute is led by an apostrophe."""
    table = table_of(trials)
    texts = {column.name: _harmless(table[column.name]) for column in COLUMNS if column.dtype == "string"}
    table.assign(**texts).drop(columns="trial").to_csv(path, index=False)


def _harmless(texts: pandas.Series[str]) -> pandas.Series[str]:
    return texts.where(~texts.str.startswith(FORMULA).fillna(False), "'" + texts)


def _values(column: Column, trials: Sequence[TrialResult]) -> Any:
    values: list[Any] = list(trials)
    for name in () if column.dtype == "object" else column.source.split("."):
        values = [None if value is None else getattr(value, name) for value in values]
    if column.dtype == "datetime64[us, UTC]":
        return pandas.to_datetime(values, utc=True, errors="coerce").as_unit("us").array
    if column.dtype == "string":
        values = [_text(value, column) for value in values]
    return pandas.array(values, dtype=column.dtype)


def _text(value: Any, column: Column) -> str | None:
    """Pairs are JSON, clauses have semicolons between; empty text of no part is null."""
    if isinstance(value, tuple):
        pairs = column.part in PARTS
        value = json.dumps(dict(value), ensure_ascii=False) if pairs else "; ".join(map(_clause, value))
    return value if column.part else value or None


def _clause(value: Any) -> str:
    return f"{value.name}: {sentence(value)}" if isinstance(value, Finding) else str(value)
