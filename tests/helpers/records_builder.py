"""Constructed records for tests of the report: no figure here was measured, and every label says so."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any

from harness.record import (
    SCHEMA,
    Cpu,
    DataFound,
    DeviceUsed,
    Environment,
    Epoch,
    Failure,
    Finding,
    Gpu,
    Harness,
    Limit,
    Machine,
    Measurement,
    Memory,
    Phase,
    PrecisionFound,
    Protocol,
    Record,
    Session,
    Steady,
    Summary,
    TrialRequest,
    TrialSpec,
    Variant,
    Window,
)
from harness.record.series import Series
from harness.record.store import write_record, write_session

STARTED = datetime(2026, 1, 31, 9, 0, tzinfo=UTC)
DATA = "d" * 64

CIFAR: dict[str, Any] = {
    "workload": "cifar_fastai",
    "protocol": "published/1",
    "model": "resnet50",
    "image_size": 224,
    "quality": "accuracy",
    "unit": "image",
    "steps_per_epoch": 489,
    "epochs": 30,
    "valid_batches": 123,
}
LM: dict[str, Any] = {
    "workload": "word_lm",
    "protocol": "published/1",
    "model": "lstm",
    "sequence_length": 35,
    "quality": "perplexity",
    "unit": "token",
    "steps_per_epoch": 2983,
    "epochs": 30,
    "valid_batches": 6,
}


def machine(card: str, *, label: str, digits: str = "c") -> Machine:
    """A constructed machine with one card; a card of None is a CPU."""
    gpu = Gpu(index=0, vendor="NVIDIA", name=card, memory_bytes=24 * 2**30, driver="580.00")
    return Machine(
        id=(digits * 12)[:12],
        label=f"constructed-{label}",
        system="Linux",
        kernel="6.1.0",
        distribution="Debian 12",
        architecture="x86_64",
        cpu=Cpu(model="Constructed CPU", cores=8, threads=16),
        memory_bytes=64 * 2**30,
        gpus=() if card.startswith("Constructed CPU") else (gpu,),
    )


def environment(**changes: Any) -> Environment:
    """A pinned container environment."""
    values: dict[str, Any] = {
        "image": "cuda",
        "device": "cuda",
        "engine": "docker",
        "pinned": True,
        "tag": "gpudyno/cuda:0123456789ab",
        "image_id": "sha256:" + "1" * 64,
        "base": "docker.io/library/constructed:1",
        "base_digest": "sha256:" + "b" * 64,
        "base_digest_verified": True,
        "lock_sha256": "a" * 64,
    }
    return Environment(**{**values, **changes})


def trial(
    kind: dict[str, Any],
    precision: str,
    repeat: int,
    *,
    batch_size: int = 64,
    data: str = "real",
    mode: str = "cached",
    device: str = "cuda",
    weights: str | None = None,
    limit: Limit | None = None,
    lock_sha256: str = "a" * 64,
    **variant: Any,
) -> TrialSpec:
    """One trial as a plan would ask for it."""
    asked = TrialRequest(
        workload=kind["workload"],
        protocol=kind["protocol"],
        variant=Variant(
            model=variant.pop("model", kind["model"]),
            precision=precision,  # type: ignore[arg-type]
            batch_size=batch_size,
            data_mode=mode,  # type: ignore[arg-type]
            image_size=kind.get("image_size"),
            sequence_length=kind.get("sequence_length"),
            limit=limit or Limit(),
            **variant,
        ),
        data=data,  # type: ignore[arg-type]
        weights=weights,  # type: ignore[arg-type]
        device=device,  # type: ignore[arg-type]
        environment="cuda" if device == "cuda" else device,
        lock_sha256=lock_sha256,
    )
    return TrialSpec.from_request(asked, repeat, seed=repeat, timeout_seconds=600.0)


def measurement(
    kind: dict[str, Any],
    asked: TrialSpec,
    step_seconds: float,
    *,
    card: str,
    complete: bool = True,
    steps: int = 60,
    quality: float | None = None,
    seed: int = 0,
    **changes: Any,
) -> Measurement:
    """A constructed measurement with a noisy step series and, where complete, all its epochs."""
    noise = random.Random(seed)
    variant = asked.asked.variant
    series = [max(1, round(step_seconds * 1e6 * noise.gauss(1, 0.01))) for _ in range(steps)]
    seconds = sum(series) / 1e6
    epochs = _epochs(kind, step_seconds, complete=complete, quality=quality, noise=noise)
    real = asked.asked.data == "real"
    values: dict[str, Any] = {
        "measurement": 1,
        "workload": kind["workload"],
        "protocol_name": kind["protocol"],
        "workload_sha256": "e" * 64,
        "device": DeviceUsed(kind=asked.asked.device, name=card, memory_bytes=24 * 2**30),
        "versions": {"python": "3.11.7", "torch": "2.13.0", "cuda": "13.0"},
        "packages": {"torch": "2.13.0"},
        "precision": PrecisionFound(
            label=variant.precision,
            output_dtypes={"torch.float32": 10},
            parameter_dtypes={"torch.float32": 10},
            method="constructed",
        ),
        "data": DataFound(
            name="constructed",
            source=asked.asked.data,
            sha256=DATA if real else None,
            weights=asked.asked.weights,
        ),
        "protocol": Protocol(
            steps_per_epoch=kind["steps_per_epoch"],
            epochs=kind["epochs"],
            valid_batches=kind["valid_batches"],
            complete=complete,
            stopped_by="protocol" if complete else "steps",
        ),
        "sample_unit": kind["unit"],
        "samples_per_step": variant.batch_size,
        "phases": (Phase(name="model", seconds=1.5),),
        "window": Window(seconds=seconds, steps=steps, samples=steps * variant.batch_size),
        "step_us": Series.from_microseconds(series),
        "epochs": epochs,
        "losses": tuple((step, 4.0 - step / 40 + noise.gauss(0, 0.05)) for step in range(1, steps, 5)),
        "quality_name": kind["quality"],
        "memory": Memory(allocated_peak_bytes=round(6e9 if "fp32" in variant.precision else 3.6e9)),
    }
    return Measurement(**{**values, **changes})


def _epochs(
    kind: dict[str, Any], step_seconds: float, *, complete: bool, quality: float | None, noise: random.Random
) -> tuple[Epoch, ...]:
    train = kind["steps_per_epoch"] * step_seconds
    if not complete:
        return (Epoch(index=1, steps=60, train_seconds=60 * step_seconds, train_loss=3.9, complete=False),)
    best = quality if quality is not None else (0.84 if kind["quality"] == "accuracy" else 110.0)
    found = []
    for index in range(1, kind["epochs"] + 1):
        part = 1 - 0.8**index
        value = best * (0.5 + 0.5 * part) if kind["quality"] == "accuracy" else best * (3 - 2 * part)
        smoothed = 2.2 - 1.5 * part if kind["workload"] == "cifar_fastai" else None
        found.append(
            Epoch(
                index=index,
                steps=kind["steps_per_epoch"],
                train_seconds=train,
                valid_seconds=train * 0.1,
                train_loss=2.2 - 1.5 * part + noise.gauss(0, 0.01),
                smoothed_train_loss=smoothed,
                valid_loss=1.9 - 1.2 * part + noise.gauss(0, 0.01),
                quality=value * noise.gauss(1, 0.002),
            )
        )
    return tuple(found)


def summary(measured: Measurement, *, verdict: str = "valid", causes: Sequence[Finding] = ()) -> Summary:
    """A summary as a session would have stored it, by a rule of three."""
    step = measured.window.seconds / measured.window.steps
    whole = step * measured.protocol.steps_per_epoch * 1.1
    return Summary(
        throughput=measured.window.samples / measured.window.seconds,
        step_seconds_median=step,
        step_seconds_p5=step * 0.98,
        step_seconds_p95=step * 1.03,
        steady=Steady(kind="flat" if verdict == "valid" else "unproven", first_step=0),
        input_share=0.04,
        epoch_seconds=whole,
        protocol_seconds=whole * measured.protocol.epochs,
        projected=not measured.protocol.complete,
        verdict=verdict,  # type: ignore[arg-type]
        findings=tuple(causes),
    )


def record(
    asked: TrialSpec,
    measured: Measurement | None,
    *,
    on: Machine,
    within: Environment | None = None,
    session: str = "20260131-abcdef",
    order: int = 0,
    failure: Failure | None = None,
    verdict: str = "valid",
    causes: Sequence[Finding] = (),
    **changes: Any,
) -> Record:
    """A whole record, ok or failed."""
    values: dict[str, Any] = {
        "record": SCHEMA,
        "status": "failed" if failure else "ok",
        "session": session,
        "order": order,
        "plan": "constructed",
        "started_at": STARTED + timedelta(minutes=order),
        "wall_seconds": 60.0 if measured is None else max(60.0, measured.window.seconds + 10),
        "trial": asked,
        "environment": within or environment(),
        "machine": on,
        "measurement": measured,
        "failure": failure,
        "summary": summary(measured, verdict=verdict, causes=causes) if measured else None,
        "harness": Harness(version=version("gpudyno")),
    }
    return Record(**{**values, **changes})


def changed(record: Any, **places: Any) -> Any:
    """The record with other values; `measurement__device__unit` is a place within it."""
    for place, value in places.items():
        first, _, inner = place.partition("__")
        within = changed(getattr(record, first), **{inner: value}) if inner else value
        record = record.model_copy(update={first: within})
    return record


def out_of_memory() -> Failure:
    """A trial that did not fit."""
    return Failure(
        kind="trial",
        stage="train",
        reason="out-of-memory",
        message="CUDA out of memory: tried to allocate 2.00 GiB",
        exit_code=1,
    )


def series_of(
    kind: dict[str, Any],
    precision: str,
    step_seconds: float,
    *,
    on: Machine,
    card: str,
    repeats: int = 3,
    session: str = "20260131-abcdef",
    verdict: str = "valid",
    causes: Sequence[Finding] = (),
    complete: bool = True,
    spread: float = 0.01,
    within: Environment | None = None,
    first_order: int = 0,
    **variant: Any,
) -> list[Record]:
    """The repeats of one variant; `spread` is the relative difference between runs."""
    found = []
    for repeat in range(1, repeats + 1):
        asked = trial(kind, precision, repeat, **variant)
        seconds = step_seconds * (1 + spread * (repeat - (repeats + 1) / 2))
        measured = measurement(kind, asked, seconds, card=card, complete=complete, seed=repeat)
        found.append(
            record(
                asked,
                measured,
                on=on,
                within=within,
                session=session,
                order=first_order + repeat,
                verdict=verdict,
                causes=causes,
            )
        )
    return found


def two_cards() -> list[Record]:
    """Two cards × two precisions × two workloads × three repeats, one failure, unproven trials."""
    found: list[Record] = []
    cards = (
        ("Constructed Card A", "a", 1.0, "20260131-aaaaaa"),
        ("Constructed Card B", "b", 0.7, "20260130-bbbbbb"),
    )
    for card, digits, speed, session in cards:
        on = machine(card, label=f"card-{digits}", digits=digits)
        at = {"on": on, "card": card, "session": session}
        found += series_of(CIFAR, "fp32-ieee", 0.150 * speed, batch_size=98, first_order=0, **at)
        found += series_of(CIFAR, "fp16-master", 0.160 * speed, batch_size=164, first_order=10, **at)
        found += series_of(LM, "fp32-ieee", 0.0120 * speed, batch_size=20, first_order=20, **at)
        found += series_of(
            LM, "fp16-master", 0.0119 * speed, batch_size=20, first_order=30, spread=0.02, **at
        )
    on = machine("Constructed Card A", label="card-a", digits="a")
    asked = trial(CIFAR, "fp32-ieee", 1, batch_size=256)
    found.append(record(asked, None, on=on, session="20260131-aaaaaa", order=50, failure=out_of_memory()))
    return found


def with_own_steps(records: Iterable[Record]) -> Iterator[Record]:
    """The records, those whose steps another one has in another order: no two runs share each step's time."""
    taken: Counter[str] = Counter()
    for record in records:
        measured = record.measurement
        if measured is not None:
            steps = list(measured.step_us.values())
            turn = taken[measured.step_us.microseconds]
            taken[measured.step_us.microseconds] += 1
            series = Series.from_microseconds(steps[turn:] + steps[:turn]) if turn else measured.step_us
            record = record.model_copy(
                update={"measurement": measured.model_copy(update={"step_us": series})}
            )
        yield record


def write(root: Path, records: Iterable[Record]) -> Path:
    """Writes records and their session.json files under root/results, as a run would."""
    for each in with_own_steps(records):
        session = Session(
            session=1,
            id=each.session,
            plan=each.plan,
            plan_sha256="f" * 64,
            machine=each.machine.id,
            label=re.sub(r"[^A-Za-z0-9-]", "-", each.machine.label),
            started_at=STARTED,
            order_seed=1,
            trials=(),
        )
        write_session(root, session)
        write_record(root, session, each)
    return root
