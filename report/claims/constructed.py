"""Trials as a plan would leave them, with constructed figures: to ask what could be judged, never written."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from harness.record import (
    SCHEMA,
    Cpu,
    DataFound,
    DeviceKind,
    DeviceUsed,
    Environment,
    Epoch,
    Failure,
    Harness,
    Limit,
    Machine,
    Measurement,
    Memory,
    PrecisionFound,
    Protocol,
    Record,
    Steady,
    Summary,
    Window,
)
from harness.record import Trial as Asked
from harness.record.series import Series
from harness.summary.statistics import METHOD
from report.claims.matching import SCALED_DOWN
from report.trials.trial import Trial

SESSION = "20000101-000000"
BEGAN = datetime(2000, 1, 1, tzinfo=UTC)
STEPS_PER_EPOCH = 100
SETTLED_SECONDS = 60.0
"""A window of less is taken to be unproven."""

EPOCHS = {
    ("cifar_fastai", "published/1"): 30,
    ("cifar_fastai", "fair/1"): 30,
    ("word_lm", "published/1"): 30,
    ("tensorcore_mlp", "published/1"): 3,
    ("tensorcore_mlp", "warmed/1"): 100,
    ("mnist_cnn", "published/1"): 20,
    ("convnet", "synthetic/1"): 100,
    ("chexnet", "published/1"): 5,
    ("chexnet", "fair/1"): 5,
    ("chexnet", "loading/1"): 5,
    ("cifar_resnet44", "published/1"): 40,
    ("cifar_cnn", "published/1"): 10,
    ("cifar_cnn", "fair/1"): 10,
    ("imdb_gru", "published/1"): 3,
    ("imdb_gru", "fair/1"): 3,
}
"""How long each protocol is, as its workload says."""

QUALITIES = {
    "cifar_fastai": "accuracy",
    "cifar_resnet44": "accuracy",
    "cifar_cnn": "accuracy",
    "imdb_gru": "accuracy",
    "chexnet": "auc",
    "word_lm": "perplexity",
}
"""What is validated, where anything is."""

TESTED = ("word_lm", "chexnet")
"""Workloads with a split that is seen once, at the end."""

COUNTS_ON_A_CPU = ("tensorcore_mlp",)
"""Workloads that say how much memory their tensors take on a CPU."""

FULL_BATCHES = {"tensorcore_mlp": 512}
"""Workloads that call another batch, or an option of theirs, scaled down."""

FEWEST_RUNGS = 3


@dataclass(frozen=True, slots=True)
class Device:
    """What a plan is asked for on: a card by the name and the capability that its driver tells, or a CPU."""

    kind: DeviceKind
    name: str
    capability: str | None = None


def would_leave(planned: Iterable[Asked], device: Device) -> tuple[Trial, ...]:
    """Every trial measured, but for the largest batch of each sweep, which does not fit."""
    trials = list(planned)
    too_large = _largest_rungs(trials)
    return tuple(
        _trial(asked, device, order, fits=asked.id not in too_large) for order, asked in enumerate(trials)
    )


def sweep_place(trial: Asked) -> str:
    """What the trials of a batch-size sweep share."""
    variant = trial.asked.variant.model_copy(update={"batch_size": 1})
    return trial.asked.model_copy(update={"variant": variant}).canonical()


def _largest_rungs(trials: Sequence[Asked]) -> set[str]:
    sweeps: dict[str, list[Asked]] = {}
    for trial in trials:
        if trial.asked.variant.limit.steps is not None:
            sweeps.setdefault(sweep_place(trial), []).append(trial)
    largest: set[str] = set()
    for sweep in sweeps.values():
        sizes = {trial.asked.variant.batch_size for trial in sweep}
        if len(sizes) >= FEWEST_RUNGS:
            largest |= {trial.id for trial in sweep if trial.asked.variant.batch_size == max(sizes)}
    return largest


def _trial(asked: Asked, device: Device, order: int, *, fits: bool) -> Trial:
    measured = _measurement(asked, device) if fits else None
    summary = _summary(asked, measured) if measured else None
    failure = Failure(kind="trial", stage="train", reason="out-of-memory", message="constructed")
    record = Record(
        record=SCHEMA,
        status="ok" if fits else "failed",
        session=SESSION,
        order=order,
        plan="constructed",
        started_at=BEGAN + timedelta(minutes=order),
        wall_seconds=60.0,
        trial=asked,
        environment=Environment(
            image="constructed", device=asked.asked.device, engine="fake", pinned=True, lock_sha256=None
        ),
        machine=_MACHINE,
        measurement=measured,
        failure=None if fits else failure,
        summary=summary,
        harness=Harness(version="0"),
    )
    return Trial(f"constructed/{asked.id}", record, summary, summary.verdict if summary else "invalid")


_MACHINE = Machine(
    id="0" * 12,
    label="constructed",
    system="constructed",
    architecture="constructed",
    cpu=Cpu(model="constructed", cores=1, threads=1),
)


def _measurement(asked: Asked, device: Device) -> Measurement:
    variant, workload = asked.asked.variant, asked.asked.workload
    epochs, whole = _epochs(asked), _is_whole(variant.limit)
    quality = QUALITIES.get(workload)
    counted = device.kind != "cpu" or workload in COUNTS_ON_A_CPU
    real = variant.options.get("data", "real") == "real"
    validated = quality is not None and variant.data_mode != "cached" and real
    values: dict[str, Any] = {
        "measurement": 1,
        "workload": workload,
        "protocol_name": asked.asked.protocol,
        "workload_sha256": "0" * 64,
        "device": DeviceUsed(
            kind=device.kind, name=device.name, count=variant.gpus, capability=device.capability
        ),
        "versions": {},
        "packages": {},
        "precision": PrecisionFound(
            label=variant.precision, output_dtypes={}, parameter_dtypes={}, method="constructed"
        ),
        "data": DataFound(
            name="constructed",
            source=asked.asked.data,
            train_items=1,
            valid_items=1,
            weights=asked.asked.weights,
        ),
        "protocol": Protocol(
            steps_per_epoch=STEPS_PER_EPOCH,
            epochs=epochs,
            valid_batches=1,
            complete=whole,
            stopped_by="protocol" if whole else "steps",
        ),
        "sample_unit": "sample",
        "samples_per_step": variant.batch_size,
        "phases": (),
        "window": Window(seconds=1.0, steps=1, samples=1),
        "step_us": Series.of([1]),
        "epochs": tuple(
            _epoch(index, workload, complete=whole or variant.limit.epochs is not None, validated=validated)
            for index in range(1, (epochs if whole else variant.limit.epochs or 1) + 1)
        ),
        "quality_name": quality,
        "test_quality": 1.0 if whole and validated and workload in TESTED else None,
        "memory": Memory(allocated_peak_bytes=1 if counted else None, process_peak_bytes=1),
        "structure": {"parameters": 1},
        "notes": _notes(asked),
    }
    return Measurement(**values)


def _epochs(asked: Asked) -> int:
    options = asked.asked.variant.options
    if options.get("lead_in") is True:
        return 1
    of_protocol = EPOCHS.get((asked.asked.workload, asked.asked.protocol), 1)
    return int(options.get("epochs", of_protocol))


def _is_whole(limit: Limit) -> bool:
    return limit == Limit()


def _epoch(index: int, workload: str, *, complete: bool, validated: bool) -> Epoch:
    quality = 1.0 if validated else None
    return Epoch(
        index=index,
        steps=STEPS_PER_EPOCH,
        train_seconds=1.0,
        valid_seconds=1.0 if validated else None,
        train_loss=1.0,
        smoothed_train_loss=1.0 if workload == "cifar_fastai" else None,
        valid_loss=quality,
        quality=quality,
        complete=complete,
    )


def _notes(asked: Asked) -> tuple[str, ...]:
    full = FULL_BATCHES.get(asked.asked.workload)
    variant = asked.asked.variant
    smaller = full is not None and (variant.batch_size != full or bool(variant.options))
    return (f"{SCALED_DOWN}constructed",) if smaller else ()


def _summary(asked: Asked, measured: Measurement) -> Summary:
    limit = asked.asked.variant.limit
    whole = _is_whole(limit)
    long_enough = limit.steps is None and (limit.seconds or 0.0) >= SETTLED_SECONDS
    settled = whole or limit.epochs is not None or long_enough
    return Summary(
        method=METHOD,
        throughput=1.0,
        step_seconds_median=1.0,
        step_seconds_p5=1.0,
        step_seconds_p95=1.0,
        steady=Steady(kind="flat" if settled else "unproven", first_step=0),
        epoch_seconds=1.0,
        protocol_seconds=float(measured.protocol.epochs),
        projected=not whole,
        verdict="valid" if settled else "unproven",
    )
