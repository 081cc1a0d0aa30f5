"""Constructed records of frameworks that train one network on one machine: no figure here was measured."""

from __future__ import annotations

from typing import Any

from harness.record import FrameworkUsed, Limit, Memory, Rank, Record, Window
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
        differs=("torchvision's network",),
    ),
    "pytorch-loss-per-gpu": FrameworkUsed(
        name="PyTorch, loss per GPU", version="2.13.0", ways={"dp": "DataParallel"}
    ),
    "tensorflow": FrameworkUsed(
        name="TensorFlow", version="2.21.0", compiled="tf.function", ways=WAYS, differs=("channels last",)
    ),
    "keras-tensorflow": FrameworkUsed(
        name="Keras",
        version="3.15.1",
        compiled="XLA",
        ways=WAYS,
        differs=("channels last", "a callback is the clock"),
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


def runs(framework: str, seconds: float, *, repeats: int = 5, **told: Any) -> list[Record]:
    """Repeats in a framework's own image and session; a step takes so many seconds in the mean."""
    kind = {**CHEXNET, "protocol": told.pop("protocol", "fair/1")}
    on = told.pop("on", build.machine(CARD, label="card-a", digits="a"))
    way, gpus = told.pop("way", None), told.pop("gpus", 1)
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
