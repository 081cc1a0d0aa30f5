"""Constructed records of several devices, batches, profiles and loaders: no figure here was measured."""

from __future__ import annotations

from typing import Any

from harness.record import AllReduce, Limit, Memory, MessageSize, Record, Series, Window
from tests.helpers import records_builder as build

LEAD = "20260131-aaaaaa"
CARD = "Constructed Card A"
ON = build.machine(CARD, label="card-a", digits="a")
CONVNET: dict[str, Any] = {
    "workload": "convnet",
    "protocol": "synthetic/1",
    "model": "resnet50",
    "image_size": 224,
    "quality": None,
    "unit": "image",
    "steps_per_epoch": 100,
    "epochs": 100,
    "valid_batches": 0,
}
TIMED = Limit(seconds=75.0)
GIB = 2**30


def runs(precision: str, seconds: float, *, repeats: int = 3, **told: Any) -> list[Record]:
    """Repeats of one work on one device or shared by several, as its launcher would have measured it."""
    way, gpus, order = told.pop("way", None), told.pop("gpus", 1), told.pop("order", 0)
    nodes = told.pop("nodes", 1)
    changes: dict[str, Any] = told.pop("changes", {})
    kind = {**CONVNET, **told.pop("kind", {})}
    values: dict[str, Any] = {"batch_size": 32, "data": "synthetic", "limit": TIMED, **told}
    options = {"parallel": way} if way else {}
    found = []
    for repeat in range(1, repeats + 1):
        asked = build.trial(kind, precision, repeat, gpus=gpus, options=options, **values)
        step = seconds * (1 + 0.01 * (repeat - 2))
        samples = asked.asked.variant.batch_size * (gpus if way in ("dp", "ddp") else 1)
        measured = build.measurement(
            kind,
            asked,
            step,
            card=CARD,
            complete=False,
            seed=repeat,
            samples_per_step=samples,
            window=Window(seconds=60 * step, steps=60, samples=60 * samples),
            parallel=way,
            **changes,
        )
        found.append(build.record(asked, measured, on=ON, session=LEAD, order=order + repeat, nodes=nodes))
    return found


def shared() -> list[Record]:
    """FP32 takes 0.1 s a step on one device and loses 5 % by ddp, 20 % by dp; mixed takes half of each."""
    found: list[Record] = []
    for place, (precision, step) in enumerate((("fp32-ieee", 0.1), ("amp-fp16", 0.05))):
        found += runs(precision, step, order=100 * place)
        for n, (way, loss) in enumerate((("ddp", 0.95), ("dp", 0.8), ("each", 0.98)), 1):
            for gpus in (2, 4):
                order = 100 * place + 20 * n + 4 * gpus
                found += runs(precision, step / loss, way=way, gpus=gpus, order=order)
    return found


def summed(gpus: int, algorithm_gb: float, *, order: int = 400, **told: Any) -> list[Record]:
    """All-reduces over several devices; a quarter of the bandwidth in the smallest of three messages."""
    sizes = tuple(
        MessageSize(
            message_bytes=size,
            calls_per_sample=4,
            sample_us=Series.from_microseconds([round(4 * size / (algorithm_gb * share * 1e9) * 1e6)] * 20),
        )
        for size, share in ((2**20, 0.25), (2**24, 0.5), (2**28, 1.0))
    )
    ceilings = {
        "all_reduce_algorithm_gb_per_second": algorithm_gb,
        "all_reduce_bus_gb_per_second": algorithm_gb * 2 * (gpus - 1) / gpus,
    }
    over = AllReduce(backend="nccl", backend_version="2.27.3", sizes=sizes)
    kind = {"workload": "ceilings", "protocol": "ceiling/1", "model": "all-reduce", "image_size": None}
    changes = {"ceilings": ceilings, "all_reduce": over}
    return runs("fp32-ieee", 0.01, gpus=gpus, kind=kind, batch_size=1, order=order, changes=changes, **told)


def ladder(*, slow: float = 1.0, reserved: int = 0) -> list[Record]:
    """Rungs from 8 to 64; 128 does not fit. `slow` is what the largest rung's step takes more."""
    steps = {8: 0.05, 16: 0.06, 32: 0.08, 64: 0.15 * slow}
    limit = Limit(steps=50, seconds=20.0)
    found: list[Record] = []
    for place, (batch, seconds) in enumerate(steps.items()):
        memory = Memory(allocated_peak_bytes=GIB, reserved_peak_bytes=reserved * batch // 64 or None)
        changes = {"memory": memory}
        found += runs("amp-fp16", seconds, batch_size=batch, limit=limit, order=10 * place, changes=changes)
    asked = build.trial(CONVNET, "amp-fp16", 1, batch_size=128, data="synthetic", limit=limit)
    failed = build.record(asked, None, on=ON, session=LEAD, order=90, failure=build.out_of_memory())
    return [*found, failed]


def mnist(precision: str, seconds: float, mode: str, wait: float, order: int) -> list[Record]:
    """Waits for input as told; a summary is computed anew, since it carries that share."""
    kind = {"workload": "mnist_cnn", "protocol": "published/1", "model": "cnn", "image_size": None}
    made = runs(precision, seconds, kind=kind, mode=mode, order=order)
    return [build.changed(record, summary__input_share=wait) for record in made]
