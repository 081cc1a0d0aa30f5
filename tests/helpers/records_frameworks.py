"""Constructed records of frameworks that train one network on one machine: no figure here was measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.record import (
    CardTelemetry,
    CpuTelemetry,
    FrameworkUsed,
    Limit,
    LinesOfCode,
    Memory,
    PhaseSpan,
    Rank,
    Record,
    Telemetry,
    Trace,
    TraceStats,
    Window,
)
from tests.helpers import records_builder as build

LEAD = "20260131-aaaaaa"
CARD = "Constructed Card A"
SESSIONS = {
    "chainer": ("20260131-cccccc", 0),
    "tensorflow": ("20260131-bbbbbb", 20),
    "keras-tensorflow": ("20260131-bbbbbb", 40),
    "pytorch": (LEAD, 60),
    "pytorch-loss-per-gpu": (LEAD, 80),
}
"""Each image has a session of its own, and begins so many minutes after the first; the last one leads."""

WAYS = {"dp": "MirroredStrategy"}
USED = {
    "pytorch": FrameworkUsed(
        name="PyTorch",
        version="2.13.0",
        ways={"dp": "DataParallel", "ddp": "DistributedDataParallel"},
        layout="channels first",
        loader="none: pinned tensors in host memory",
        lines=LinesOfCode(own=170, framework_parts=560, shared_parts=1920),
        differs=("torchvision's network",),
    ),
    "pytorch-loss-per-gpu": FrameworkUsed(
        name="PyTorch, loss per GPU", version="2.13.0", ways={"dp": "DataParallel"}
    ),
    "tensorflow": FrameworkUsed(
        name="TensorFlow", version="2.21.0", compiled="tf.function", ways=WAYS, layout="channels last"
    ),
    "keras-tensorflow": FrameworkUsed(
        name="Keras",
        version="3.15.1",
        compiled="XLA",
        ways=WAYS,
        layout="channels last",
        loader="keras.utils.PyDataset",
        lines=LinesOfCode(own=270, framework_parts=0, shared_parts=1920),
        differs=("Keras' own loop", "a callback is the clock"),
    ),
    "chainer": FrameworkUsed(name="Chainer", version="7.8.1", retired=True),
}
CHEXNET: dict[str, Any] = {
    "workload": "chexnet",
    "protocol": "fair/1",
    "model": "densenet121",
    "image_size": 224,
    "quality": None,
    "unit": "image",
    "steps_per_epoch": 1364,
    "epochs": 5,
    "valid_batches": 0,
}
GIB = 2**30
SETUP = (("import", 0.0, 6.0), ("data", 6.0, 9.0), ("first_step", 10.0, 19.0))


def runs(framework: str, seconds: float, *, repeats: int = 5, **told: Any) -> list[Record]:
    """Repeats in a framework's own image and session; a step takes so many seconds in the mean."""
    kind = {**CHEXNET, "protocol": told.pop("protocol", "fair/1")}
    on = told.pop("on", build.machine(CARD, label="card-a", digits="a"))
    way, gpus = told.pop("way", None), told.pop("gpus", 1)
    kind["steps_per_epoch"] //= gpus
    session, order = SESSIONS[framework]
    verdict, changes = told.pop("verdict", "valid"), told.pop("changes", {})
    values: dict[str, Any] = {
        "batch_size": 64,
        "data": "synthetic",
        "mode": "host",
        "limit": Limit(seconds=75.0),
        "options": {"framework": framework, "data": "synthetic", **({"parallel": way} if way else {})},
        **told,
    }
    found = []
    for repeat in range(1, repeats + 1):
        asked = build.trial(kind, "fp32-ieee", repeat, gpus=gpus, **values)
        step = seconds * (1 + 0.004 * (repeat - (repeats + 1) / 2))
        samples = values["batch_size"] * gpus
        ranks = tuple(
            Rank(rank=n, memory=Memory(allocated_peak_bytes=(6 if n == 0 else 4) * GIB))
            for n in range(gpus if gpus > 1 else 0)
        )
        measured = build.measurement(
            kind,
            asked,
            step,
            card=CARD,
            complete=False,
            seed=repeat,
            **{
                "framework": USED[framework],
                "versions": {"python": "3.11.7", framework: "1.2.3"},
                "samples_per_step": samples,
                "window": Window(seconds=60 * step, steps=60, samples=60 * samples),
                "parallel": way or ("dp" if gpus > 1 else None),
                "ranks": ranks,
                **changes,
            },
        )
        found.append(
            build.record(
                asked,
                measured,
                on=on,
                within=build.environment(image=framework, lock_sha256=framework[0].encode().hex() * 32),
                session=session,
                order=order + repeat,
                verdict=verdict,
            )
        )
    return found


def watched(
    records: Iterable[Record],
    *busy: float,
    phases: Sequence[tuple[str, float, float]] = SETUP,
    windows: Sequence[tuple[float, float]] = ((20.0, 55.0),),
    seconds: int = 60,
) -> list[Record]:
    """The records as if their devices had been watched; each was so many percent busy while it trained."""
    at = range(seconds + 1)

    def use(percent: float) -> TraceStats:
        trains = [any(begin <= second <= end for begin, end in windows) for second in at]
        return TraceStats(mean=Trace.of([percent if each else 2.0 for each in trains], 0.1))

    taken = TraceStats(mean=Trace.of([(0.5 + 9.5 * (second > 8)) * GIB for second in at], 2.0**20))
    cards = tuple(
        CardTelemetry(index=place, name=CARD, utilization_percent=use(percent), memory_used_bytes=taken)
        for place, percent in enumerate(busy)
    )
    seen = Telemetry(
        source="nvml" if cards else "none",
        interval_seconds=1.0,
        seconds=float(seconds),
        samples=seconds + 1,
        seconds_per_value=1.0,
        times=Trace.of([float(second) for second in at], 0.01),
        windows=tuple(windows),
        phases=tuple(PhaseSpan(name=name, begin=begin, end=end) for name, begin, end in phases),
        cards=cards,
        cpu=CpuTelemetry(utilization_percent=use(95.0), memory_used_bytes=taken),
        ended="told to",
    )
    return [record.model_copy(update={"telemetry": seen}) for record in records]
