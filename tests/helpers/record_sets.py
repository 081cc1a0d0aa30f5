"""Sets of constructed records, at least one for each kind of thing that a report tells. None was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from harness.record import Flops, LossScale, Memory, Record, Variant, finding
from tests.helpers import records_builder as build
from tests.helpers import records_devices as devices
from tests.helpers import records_watched as doubted

LEAD, OTHER, OLDER = "20260131-aaaaaa", "20260130-bbbbbb", "20260129-cccccc"
A, B, C = "Constructed Card A", "Constructed Card B", "Constructed Card C"
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"
TURING, PASCAL, T4 = "NVIDIA GeForce RTX 2080 Ti", "NVIDIA GeForce GTX 1080 Ti", "Tesla T4"


def series(precision: str = "fp32-ieee", seconds: float = 0.1, **changes: Any) -> list[Record]:
    """Repeats of one work on card A, in the leading session."""
    kind = changes.pop("kind", build.LM)
    on = build.machine(A, label="card-a", digits="a")
    values: dict[str, Any] = {"on": on, "card": A, "session": LEAD, "batch_size": 20, "repeats": 2}
    return build.series_of(kind, precision, seconds, **{**values, **changes})


def elsewhere(precision: str = "fp32-ieee", seconds: float = 0.08, **changes: Any) -> list[Record]:
    """The same on card B, in an older session."""
    on = build.machine(B, label="card-b", digits="b")
    return series(precision, seconds, **{"on": on, "card": B, "session": OTHER, **changes})


def measured_as(records: Sequence[Record], **changes: Any) -> list[Record]:
    """The records with other fields of their measurements."""
    return [
        one.model_copy(update={"measurement": one.measurement.model_copy(update=changes)})
        for one in records
        if one.measurement
    ]


def judged_as(records: Sequence[Record], **changes: Any) -> list[Record]:
    """The records with other fields of their summaries."""
    return [
        one.model_copy(update={"summary": one.summary.model_copy(update=changes)})
        for one in records
        if one.summary
    ]


def blocks() -> list[Record]:
    """Two cards and two precisions, twice in each of three blocks of time; in the third all are slower."""
    found = []
    for place, made in enumerate((series, elsewhere)):
        for turn, (precision, seconds) in enumerate((("fp32-ieee", 0.1), ("amp-bf16", 0.06))):
            spread = 0.01 + 0.004 * (place + 2 * turn)
            order = 100 * place + 50 * turn
            for one in made(precision, seconds, repeats=6, spread=spread, first_order=order):
                block = 1 + (one.trial.repeat - 1) // 2
                slower = 1.04 if block == 3 else 1.0
                total, rate = one.summary.protocol_seconds * slower, one.summary.throughput / slower
                (judged,) = judged_as([one], protocol_seconds=total, throughput=rate)
                window = one.measurement.window
                seconds_then = window.model_copy(update={"seconds": window.seconds * slower})
                (judged,) = measured_as([judged], window=seconds_then)
                started = one.started_at + timedelta(hours=2 * (block - 1))
                found.append(judged.model_copy(update={"block": block, "started_at": started}))
    return found


def units() -> list[Record]:
    """Three units each of two cards, so that the band of other units is a measured one."""
    found: list[Record] = []
    for card, digits, seconds in ((A, "abc", 0.1), (B, "def", 0.05)):
        for place, digit in enumerate(digits):
            at: dict[str, Any] = {
                "on": build.machine(card, label=f"card-{digit}", digits=digit),
                "card": card,
                "session": LEAD if digit == "a" else f"20260130-{digit * 6}",
            }
            made = series(seconds=seconds * (1 + 0.01 * place), **at)
            device = made[0].measurement.device.model_copy(update={"unit": digit * 16})
            found += measured_as(made, device=device)
    return found


def unlike() -> list[Record]:
    """Work of another session that differs in one field each, and older sessions of one machine."""
    fair = {**build.LM, "protocol": "fair/2"}
    found = [*series(kind=fair), *series(kind=fair, batch_size=64, first_order=10)]
    changes: tuple[dict[str, Any], ...] = (
        {"batch_size": 40},
        {"mode": "device"},
        {"layout": "channels_last"},
        {"profile": "tuned"},
        {"gpus": 2},
        {"options": {"tied": True}},
        {"model": "gru"},
        {"data": "synthetic"},
        {"weights": "random"},
        {"kind": {**fair, "sequence_length": 70}},
        {"kind": {**fair, "epochs": 6}},
    )
    for place, change in enumerate(changes):
        found += elsewhere(**{"kind": fair, "first_order": 10 * place, **change})
    older = elsewhere(kind=fair, session=OLDER, seconds=0.2)
    return [*found, *(one.model_copy(update={"started_at": one.started_at.replace(day=29)}) for one in older)]


def doubtful() -> list[Record]:
    """Figures that cannot be, windows that were not proven, and runs that stand apart or waited for input."""
    on = build.machine(A100, label="a100", digits="d")
    at: dict[str, Any] = {"on": on, "card": A100, "repeats": 5}
    nan, waits = finding("not-finite", loss="nan", step=3), finding("input-bound", input_share=0.41)
    beyond = series(batch_size=40, first_order=10, **at)[:2]
    waiting = series(batch_size=120, causes=(waits,), first_order=50, **at)[:2]
    return [
        *series(**at)[:3],
        *measured_as(beyond, flops=Flops(per_sample=1e15)),
        *series(batch_size=60, first_order=20, **at)[:4],
        *series(batch_size=60, seconds=0.12, verdict="unproven", first_order=20, **at)[4:],
        *series(batch_size=80, first_order=30, **at)[:2],
        *series(batch_size=80, verdict="invalid", causes=(nan,), first_order=30, **at)[2:3],
        *series(batch_size=100, first_order=40, **at)[:4],
        *series(batch_size=100, seconds=0.13, first_order=40, **at)[4:],
        *judged_as(waiting, input_share=0.41),
    ]


def watched() -> list[Record]:
    """Trials whose summaries are made anew from samples and telemetry: a hot start."""
    cards = [doubted.card(start_temperature_c=found) for found in (60.0, 61.0, 70.0)]
    seen = [doubted.telemetry(card) for card in cards]
    found = [doubted.record(seen=one, repeat=at, session=LEAD) for at, one in enumerate(seen, 1)]
    return [
        *found,
        *(
            doubted.record(precision="amp-fp16", step_seconds=0.2, repeat=at, session=LEAD, order=10 + at)
            for at in (1, 2, 3)
        ),
    ]


def ceilings() -> list[Record]:
    """Works whose operations are counted on a card whose ceilings were measured later, and are doubtful."""
    on = build.machine(H100, label="h100", digits="f")
    at: dict[str, Any] = {"on": on, "card": H100}
    counted = (
        (build.CIFAR, "amp-bf16", 64 / 5e5, Flops(per_sample=840e6, bytes_per_sample=1e6)),
        (build.CIFAR, "amp-fp16", 64 / 5e5, Flops(per_sample=840e6, bytes_per_sample=1e6)),
        (build.CIFAR, "fp32-ieee", 64 / 6e4, Flops(per_sample=840e6, bytes_per_sample=2e6)),
        (build.LM, "amp-bf16", 64 / 5e5, Flops(per_sample=44e6, bytes_per_sample=3e6)),
        (build.LM, "fp32-tf32", 64 / 4e5, Flops()),
    )
    found: list[Record] = []
    for place, (kind, precision, seconds, flops) in enumerate(counted):
        made = series(precision, seconds, kind=kind, batch_size=64, first_order=10 * place, **at)
        found += judged_as(measured_as(made, flops=flops), host_bound_share=0.0, input_share=0.0)
    kind = {**build.LM, "workload": "ceilings", "model": "gemm", "quality": None}
    last: dict[str, Any] = {"session": "20260131-cccccc", "repeats": 3, "first_order": 200}
    made = series(kind=kind, verdict="unproven", **last, **at)
    for one, bf16, fp16 in zip(made, (480.0, 495.0, 500.0), (140.0, 141.0, 139.0), strict=True):
        reached = {"gemm_bf16_tflops": bf16, "gemm_fp16_tflops": fp16, "copy_gb_per_second": 2800.0}
        found += measured_as([one], ceilings=reached)
    return found


def _falling(level: float, *, seed: int) -> tuple[tuple[int, float], ...]:
    noise = random.Random(seed)
    return tuple((step, level * 0.98**step * (1 + noise.gauss(0, 0.01))) for step in range(1, 51))


def convergence() -> list[Record]:
    """Whole runs over seeds: one precision ends as well as fp32-ieee, one worse, one has too few."""
    arms: tuple[tuple[str, float, float, tuple[float, ...]], ...] = (
        ("fp32-ieee", 0.15, 1.0, (0.820, 0.824, 0.818, 0.822, 0.821)),
        ("amp-bf16", 0.08, 1.0, (0.821, 0.823, 0.819, 0.822, 0.821)),
        ("amp-fp16", 0.07, 2.0, (0.790, 0.792, 0.788, 0.791, 0.789)),
        ("pure-bf16", 0.06, 1.0, (0.821, 0.823, 0.819)),
    )
    scale = LossScale(kind="dynamic", first=65536, last=512, skipped_steps=7)
    found: list[Record] = []
    for place, (precision, seconds, norm, ends) in enumerate(arms):
        made = series(
            precision, seconds, kind=build.CIFAR, batch_size=64, repeats=len(ends), first_order=10 * place
        )
        for one, end in zip(made, ends, strict=True):
            seed = one.trial.repeat
            epochs = [epoch.model_copy(update={"quality": end}) for epoch in one.measurement.epochs]
            told = one.measurement.precision.model_copy(
                update={"loss_scale": scale if precision == "amp-fp16" else None}
            )
            found += measured_as(
                [one],
                epochs=tuple(epochs),
                losses=_falling(5.0 * (1.05 if precision == "pure-bf16" else 1.0), seed=10 * place + seed),
                gradient_norms=_falling(norm, seed=100 + seed),
                precision=told,
            )
    return found


def sharing() -> list[Record]:
    """Devices that share work in three ways, each with its memory and load; one is faster than can be."""
    few = [one for one in devices.shared() if _is_of_few(one.trial.asked.variant)]
    faster = devices.runs("fp32-tf32", 0.03, way="ddp", gpus=2, order=310)
    return [*few, *devices.runs("fp32-tf32", 0.07, order=300), *faster]


def _is_of_few(asked: Variant) -> bool:
    """Both precisions on one device and on two by ddp, fp32 on four; the other ways on two, in fp32 alone."""
    if asked.options.get("parallel") in (None, "ddp"):
        return asked.gpus < 4 or asked.precision == "fp32-ieee"
    return asked.gpus == 2 and asked.precision == "fp32-ieee"


def sweep() -> list[Record]:
    """Growing batches up to one that does not fit, beside a fixed batch of the same work.

    The largest is so slow that memory may have spilled, and fills the device to the brim.
    """
    return [*devices.runs("amp-fp16", 0.079, order=200), *devices.ladder(slow=2.0, reserved=23 * devices.GIB)]


def profiles_and_modes() -> list[Record]:
    """A tuned profile, loaders that are waited for, and a work that is smaller than its protocol."""
    return [
        *devices.runs("fp32-ieee", 0.1, changes={"notes": ("scaled down: width 512 (published 4096)",)}),
        *devices.runs("amp-fp16", 0.05, order=10),
        *devices.runs("fp32-ieee", 0.08, profile="tuned", order=20),
        *devices.mnist("fp32-ieee", 0.100, "host", 0.80, 40),
        *devices.mnist("amp-fp16", 0.098, "host", 0.85, 50),
        *devices.mnist("fp32-ieee", 0.020, "device", 0.01, 60),
        *devices.mnist("amp-fp16", 0.010, "device", 0.02, 70),
    ]


def published() -> list[Record]:
    """Two cards of a published study, each precision at its own batch; some seconds are not as published."""
    found: list[Record] = []
    for card, digits, session, seconds in (
        (TURING, "a", LEAD, (1692.0, 1708.0, 4578.0, 4200.0)),
        (PASCAL, "b", OTHER, (2126.0, 2048.0, 5200.0, 5092.0)),
    ):
        on = _driven(card, digits, "415.27")
        works = (
            ("resnet18", "fp32-ieee", 408),
            ("resnet18", "fp16-master", 720),
            ("resnet50", "fp32-ieee", 98),
            ("resnet50", "fp16-master", 164),
        )
        for place, ((model, precision, batch), total) in enumerate(zip(works, seconds, strict=True)):
            at: dict[str, Any] = {"on": on, "card": card, "session": session, "first_order": 10 * place}
            kind = {**build.CIFAR, "model": model}
            made = _lasting(kind, precision, total, batch_size=batch, mode="host", **at)
            found += measured_as(made, structure={"train_items": 48_000, "valid_items": 12_001})
    return found


def published_products() -> list[Record]:
    """A study of matrix products and of a small network on one card: seconds, memory and counts."""
    mlp = {
        "workload": "tensorcore_mlp",
        "model": "mlp",
        "steps_per_epoch": 50,
        "epochs": 3,
        "image_size": None,
    }
    cnn = {"workload": "mnist_cnn", "model": "cnn", "steps_per_epoch": 118, "epochs": 20, "image_size": None}
    works: tuple[tuple[dict[str, Any], str, int, str, float, int, int], ...] = (
        (mlp, "fp32-ieee", 512, "cached", 7.02, 1_350_681_600, 50_343_936),
        (mlp, "amp-fp16", 512, "cached", 2.6, 1_577_232_384, 50_343_936),
        (cnn, "fp32-ieee", 512, "host", 107.228, 300_000_000, 1_199_000),
        (cnn, "amp-fp16", 512, "host", 70.0, 175_422_976, 1_199_000),
        (cnn, "amp-fp16", 1024, "host", 100.6, 320_654_848, 1_199_000),
    )
    on = _driven(T4, "c", "470.57.02")
    found: list[Record] = []
    for place, (kind, precision, batch, mode, total, peak, parameters) in enumerate(works):
        at: dict[str, Any] = {"on": on, "card": T4, "session": LEAD, "first_order": 10 * place}
        made = _lasting({**build.CIFAR, **kind}, precision, total, batch_size=batch, mode=mode, **at)
        found += measured_as(
            made,
            versions={"torch": "1.11.0", "cuda": "11.4"},
            structure={"parameters": parameters},
            memory=Memory(allocated_peak_bytes=peak),
            device=made[0].measurement.device.model_copy(update={"capability": "7.5"}),
        )
    return found


def _driven(card: str, digits: str, driver: str) -> Any:
    on = build.machine(card, label=f"card-{digits}", digits=digits)
    return on.model_copy(update={"gpus": (on.gpus[0].model_copy(update={"driver": driver}),)})


def _lasting(kind: dict[str, Any], precision: str, total: float, **at: Any) -> list[Record]:
    """Whole runs of a protocol that take `total` seconds in the mean."""
    step = total / 1.1 / kind["steps_per_epoch"] / kind["epochs"]
    made = build.series_of(kind, precision, step, spread=0.004, repeats=2, **at)
    mean = math.fsum(one.summary.protocol_seconds for one in made) / len(made)
    return [
        judged
        for one in made
        for judged in judged_as([one], protocol_seconds=one.summary.protocol_seconds * total / mean)
    ]
