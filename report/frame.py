"""Records → immutable rows, one per trial. Nothing is counted or averaged here."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from harness.record import Environment, Epoch, Failure, LossScale, Measurement, Record, Summary
from harness.summary.bound import bound
from harness.summary.device_checks import between_trials, busy_share
from report.comparability import Key, Length, Stack, key_of, length_of, stack_of

Judge = Callable[[Record], Summary | None]

LEAST = 1e-15
"""Seconds, or samples per second; what is smaller, or as much larger, no clock has counted."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Figures of one trial; null is unknown. Seconds, samples per second, bytes, shares of 1."""

    protocol_seconds: float | None
    epoch_seconds: float | None
    throughput: float | None
    step_seconds: float | None
    quality: float | None
    valid_loss: float | None
    train_loss: float | None
    peak_bytes: float | None
    input_share: float | None
    host_share: float | None
    """1 − device time ÷ host time; null where the device keeps no time of its own."""
    joules: float | None
    """Joules per sample."""


@dataclass(frozen=True, slots=True)
class Row:
    """One trial. `trained` is how far it went: complete epochs and steps; accuracy and loss need it equal."""

    path: str
    record: Record
    key: Key
    card: str
    device: str
    capability: str | None
    unit: str | None
    machine: str
    machine_label: str
    session: str
    plan: str
    trial: str
    repeat: int
    attempt: int
    block: int
    started_at: datetime
    stack: Stack
    environment: Environment
    sample_unit: str
    length: Length | None = None
    trained: tuple[int, int] = (0, 0)
    verdict: str = "invalid"
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What is normal and worth knowing of the device, such as the share of time at its power limit."""
    warnings: tuple[str, ...] = ()
    metrics: Metrics | None = None
    summary: Summary | None = None
    quality_name: str | None = None
    validated: str = ""
    """Where the last validation stands, unless it was whole and after the protocol's last epoch."""
    bound: str = ""
    """What the trial waits for, in a sentence; empty where that is not known."""
    epochs: tuple[Epoch, ...] = ()
    losses: tuple[tuple[int, float], ...] = ()
    structure: tuple[tuple[str, int], ...] = ()
    seed: int = 0
    loss_scale: LossScale | None = None
    flops_per_sample: float | None = None
    busy_share: float | None = None
    """Of the time, that in which the device worked, by its driver; null is unknown."""
    failure: Failure | None = None


def rows(records: Iterable[tuple[str, Record]], *, judged: Judge, method: str) -> tuple[Row, ...]:
    """One row per record, by their start. `judged`, of `method`, replaces a summary of another method.

    What only a session's trials together show is added to the causes of each.
    """
    kept = list(records)
    beside = between_trials([record for _, record in kept])
    found = [
        _warned(_row(path, record, judged, method), more)
        for (path, record), more in zip(kept, beside, strict=True)
    ]
    return tuple(sorted(found, key=lambda row: (row.started_at, row.path)))


def _warned(row: Row, more: tuple[str, ...]) -> Row:
    if not more or row.metrics is None:
        return row
    verdict = "warn" if row.verdict == "valid" else row.verdict
    return replace(row, verdict=verdict, causes=(*row.causes, *more))


def _row(path: str, record: Record, judged: Judge, method: str) -> Row:
    measured = record.measurement
    current = record.summary is not None and record.summary.method == method
    summary = record.summary if current else judged(record)
    shared = {
        "path": path,
        "record": record,
        "key": key_of(record),
        "card": card_of(record),
        "device": _device(record),
        "capability": measured.device.capability if measured else None,
        "unit": measured.device.unit if measured else None,
        "machine": record.machine.id,
        "machine_label": record.machine.label,
        "session": record.session,
        "plan": record.plan,
        "trial": record.trial.id,
        "repeat": record.trial.repeat,
        "seed": record.trial.seed,
        "attempt": record.attempt,
        "block": record.block,
        "started_at": record.started_at,
        "stack": stack_of(record),
        "environment": record.environment,
    }
    if measured is None or summary is None:
        return Row(**shared, sample_unit="sample", warnings=record.warnings, failure=record.failure)  # type: ignore[arg-type]
    metrics, refused = _metrics(record, measured, summary)
    return Row(
        **shared,  # type: ignore[arg-type]
        sample_unit=measured.sample_unit,
        length=length_of(record.trial.asked, measured, summary.projected),
        trained=(sum(epoch.complete for epoch in measured.epochs), measured.window.steps),
        verdict="invalid" if refused else summary.verdict,
        causes=(*summary.causes, *refused),
        notes=summary.notes,
        warnings=record.warnings,
        metrics=metrics,
        summary=summary,
        quality_name=measured.quality_name,
        validated=_validated(measured),
        bound="" if bound(summary).kind == "unknown" else bound(summary).sentence(),
        epochs=measured.epochs,
        losses=measured.losses,
        structure=_structure(measured),
        loss_scale=measured.precision.loss_scale,
        flops_per_sample=measured.flops.per_sample,
        busy_share=busy_share(record),
    )


def card_of(record: Record) -> str:
    """The device's name as the framework saw it; by the machine's list where nothing was measured."""
    count = record.trial.asked.variant.gpus
    return f"{count} × {_device(record)}" if count > 1 else _device(record)


def _device(record: Record) -> str:
    if record.measurement:
        return record.measurement.device.name
    if record.trial.asked.device == "cpu":
        return record.machine.cpu.model or "CPU"
    return record.machine.gpus[0].name if record.machine.gpus else "unknown device"


def _possible(value: float) -> bool:
    """Whether a time or a rate is within what any device can do: its square is a number as well."""
    return math.isfinite(value) and LEAST < value < 1 / LEAST


def _metrics(record: Record, measured: Measurement, summary: Summary) -> tuple[Metrics, tuple[str, ...]]:
    last = next((epoch for epoch in reversed(measured.epochs) if epoch.quality is not None), None)
    memory = measured.memory
    on_device = measured.device.kind != "cpu"
    times = {
        "protocol_seconds": summary.protocol_seconds,
        "epoch_seconds": summary.epoch_seconds,
        "throughput": summary.throughput,
        "step_seconds": summary.step_seconds_median,
    }
    refused = tuple(
        f"its {name.replace('_', ' ')} reads {value:g}, which no run can give"
        for name, value in times.items()
        if value is not None and not _possible(value)
    )
    good = {name: value for name, value in times.items() if value is not None and _possible(value)}
    metrics = Metrics(
        protocol_seconds=good.get("protocol_seconds"),
        epoch_seconds=good.get("epoch_seconds"),
        throughput=good.get("throughput"),
        step_seconds=good.get("step_seconds"),
        quality=last.quality if last else None,
        valid_loss=last.valid_loss if last else None,
        train_loss=_train_loss(measured),
        peak_bytes=memory.allocated_peak_bytes if on_device else memory.process_peak_bytes,
        input_share=summary.input_share,
        host_share=summary.host_bound_share,
        joules=record.telemetry.energy.joules_per_sample if record.telemetry else None,
    )
    return metrics, refused


def _validated(measured: Measurement) -> str:
    epoch = next((one for one in reversed(measured.epochs) if one.quality is not None), None)
    if epoch is None:
        return ""
    protocol, said = measured.protocol, []
    if epoch.index < protocol.epochs or not epoch.complete:
        steps = sum(one.steps for one in measured.epochs if one.index <= epoch.index)
        said.append(f"after epoch {epoch.index}" if epoch.complete else f"after {steps:,} steps")
    if epoch.valid_batches is not None and epoch.valid_batches < protocol.valid_batches:
        said.append(f"on {epoch.valid_batches:,} of {protocol.valid_batches:,} batches")
    return ", ".join(said)


def _structure(measured: Measurement) -> tuple[tuple[str, int], ...]:
    items = {"train_items": measured.data.train_items, "valid_items": measured.data.valid_items}
    known = {name: count for name, count in items.items() if count is not None}
    return tuple(sorted({**measured.structure, **known}.items()))


def _train_loss(measured: Measurement) -> float | None:
    by_epoch = [epoch.train_loss for epoch in measured.epochs if epoch.train_loss is not None]
    if by_epoch:
        return by_epoch[-1]
    return measured.losses[-1][1] if measured.losses else None
