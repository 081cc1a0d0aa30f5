"""Constructed records of a network that learns, on devices and virtual ranks: nothing was measured."""

from __future__ import annotations

import math
import random
from typing import Any

from harness.record import Epoch, Rank, Record, TrialSpec, Window
from tests.helpers import records_builder as build
from tests.helpers.records_devices import CARD, LEAD, ON

TARGETS = (0.6, 0.7, 0.75, 0.8)
EPOCHS = 40
IMAGES = 50_000
RESNET44: dict[str, Any] = {
    "workload": "cifar_resnet44",
    "protocol": "published/1",
    "model": "resnet44",
    "image_size": 32,
    "quality": "accuracy",
    "unit": "image",
    "epochs": EPOCHS,
    "valid_batches": 0,
}


def learned(
    ranks: int,
    *,
    virtual: bool = False,
    best: float = 0.88,
    bounce: float = 0.0,
    repeats: int = 3,
    batch: int = 128,
    targets: tuple[float, ...] = TARGETS,
    order: int = 0,
    **options: Any,
) -> list[Record]:
    """Runs whose accuracy rises to `best`, the slower the more ranks share a step; each costs 2 % of speed.

    `bounce` is what every second of the first ten epochs falls back by.
    """
    gpus = 1 if virtual else ranks
    steps = IMAGES // (batch * ranks)
    kind = {**RESNET44, "steps_per_epoch": steps}
    step = 0.05 * ranks if virtual else 0.05 / (1 - 0.02 * (ranks - 1))
    told = {**options}
    if ranks > 1:
        told |= {"virtual_ranks": ranks} if virtual else {"parallel": "ddp"}
    found = []
    for repeat in range(1, repeats + 1):
        noise = random.Random(1000 * ranks + repeat)
        asked = build.trial(
            kind, "fp32-ieee", repeat, batch_size=batch, mode="device", gpus=gpus, options=told
        ).model_copy(update={"targets": targets})
        seconds = step * noise.gauss(1, 0.005)
        measured = build.measurement(
            kind,
            asked,
            seconds,
            card=CARD,
            seed=repeat,
            epochs=_epochs(steps, seconds, ranks, best, bounce, noise),
            samples_per_step=batch * ranks,
            window=Window(seconds=60 * seconds, steps=60, samples=60 * batch * ranks),
            parallel="ddp" if gpus > 1 else None,
            ranks=tuple(Rank(rank=n, samples=60 * batch, seconds=60 * seconds) for n in range(gpus))
            if gpus > 1
            else (),
        )
        found.append(_record(asked, measured, order + repeat))
    return found


def _record(asked: TrialSpec, measured: Any, order: int) -> Record:
    return build.record(asked, measured, on=ON, session=LEAD, order=order)


def _epochs(
    steps: int, step_seconds: float, ranks: int, best: float, bounce: float, noise: random.Random
) -> tuple[Epoch, ...]:
    pace = 4.0 * ranks**0.4
    found = []
    for index in range(1, EPOCHS + 1):
        value = 0.1 + (best - 0.1) * (1 - math.exp(-index / pace)) + noise.gauss(0, 0.004)
        if bounce and index <= 10 and index % 2 == 0:
            value -= bounce * noise.uniform(0.8, 1.2)
        train = steps * step_seconds
        loss = 2.3 * (1 - value)
        found.append(
            Epoch(
                index=index,
                steps=steps,
                train_seconds=train,
                valid_seconds=0.1 * train,
                train_loss=loss,
                valid_loss=loss + 0.1,
                quality=value,
            )
        )
    return tuple(found)


def on_devices() -> list[Record]:
    """One to twelve devices; twelve do not have 80 % in 40 epochs."""
    records: list[Record] = []
    for place, ranks in enumerate((1, 2, 4, 8, 12)):
        records += learned(ranks, best=0.80 if ranks == 12 else 0.88, order=20 * place)
    return records


def emulated() -> list[Record]:
    """The same learning by virtual ranks of one device."""
    records: list[Record] = []
    for place, ranks in enumerate((1, 2, 4, 8, 12)):
        best = 0.79 if ranks == 12 else 0.88
        records += learned(ranks, virtual=True, best=best, order=20 * place)
    return records
