"""Constructed telemetry, clocks and loss scales on constructed records: nothing here was measured."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable
from typing import Any

from harness.record import (
    CardTelemetry,
    CpuTelemetry,
    Energy,
    KernelTime,
    Load,
    LossScale,
    OtherProcesses,
    PrecisionFound,
    Record,
    Series,
    Steady,
    Telemetry,
    Trace,
    TraceStats,
    Window,
)
from tests.helpers import records_builder as build

SECONDS = 90


def spread(values: Iterable[float | None], scale: float) -> TraceStats:
    return TraceStats(mean=Trace.of(tuple(values), scale))


def telemetry(seed: int = 0, *, seconds: int = SECONDS, energy: Energy | None = None) -> Telemetry:
    """A card that warms up, then holds its clock."""
    noise = random.Random(seed)
    at = range(seconds)
    rising = [1 - math.exp(-second / 20) for second in at]
    card = CardTelemetry(
        index=0,
        name="Constructed Card",
        sm_mhz=spread((1950 - 120 * part + noise.gauss(0, 8) for part in rising), 1.0),
        temperature_c=spread((38 + 34 * part + noise.gauss(0, 0.5) for part in rising), 1.0),
        power_watts=spread((60 + 190 * part + noise.gauss(0, 6) for part in rising), 0.1),
        utilization_percent=spread((min(100, 100 * part + 20) for part in rising), 1.0),
        memory_used_bytes=spread((2e9 + 6e9 * (part > 0.2) for part in rising), 2.0**20),
        others=OtherProcesses(processes=0, memory_bytes=0, samples_share=0.0),
    )
    cpu = CpuTelemetry(
        utilization_percent=spread((25 + noise.gauss(0, 4) for _ in at), 1.0),
        memory_used_bytes=spread((9e9 + 1e7 * second for second in at), 2.0**20),
    )
    told = Energy(
        joules=17_500.0,
        joules_per_sample=0.43 * noise.gauss(1, 0.01),
        method="counter",
        scope="cards",
        window_seconds=seconds - 15.0,
        samples=seconds - 15,
        band=0.05,
    )
    return Telemetry(
        source="nvml",
        interval_seconds=1.0,
        seconds=float(seconds),
        samples=seconds,
        seconds_per_value=1.0,
        times=Trace.of([float(second) for second in at], 0.001),
        windows=((10.0, seconds - 5.0),),
        cards=(card,),
        cpu=cpu,
        energy=energy or told,
        ended="told to",
    )


def watched(record: Record, *, waits: float = 0.12, host: float = 0.15, steps: int = 300) -> Record:
    """The record as if its devices had been watched: a warm-up that was cut, waits, a clock of the device."""
    measured, summary = record.measurement, record.summary
    if measured is None or summary is None:
        return record
    noise = random.Random(record.order)
    step = measured.window.seconds / measured.window.steps
    cut = steps // 10
    series = [
        round(step * 1e6 * noise.gauss(1, 0.01) * (1.4 if place < cut else 1)) for place in range(steps)
    ]
    mixed = "fp16" in measured.precision.label
    scale = LossScale(
        kind="dynamic", first=65536, last=32768, skipped_steps=1, history=((0, 65536), (steps // 3, 32768))
    )
    precision = measured.precision.model_copy(update={"loss_scale": scale if mixed else None})
    samples = measured.window.samples * steps // measured.window.steps
    window = Window(seconds=sum(series) / 1e6, steps=steps, samples=samples)
    measured = measured.model_copy(
        update={
            "window": window,
            "step_us": Series.of(series),
            "input_us": Series.of([round(value * waits) for value in series]),
            "kernels": KernelTime(steps=1, busy_seconds=(1 - host) * sum(series) / 1e6 / steps),
            "precision": PrecisionFound.model_validate(precision.model_dump()),
        }
    )
    summary = summary.model_copy(
        update={
            "throughput": (samples - cut * measured.samples_per_step) / (sum(series[cut:]) / 1e6),
            "input_share": waits,
            "host_bound_share": host,
            "steady": Steady(kind="warm-up", first_step=cut, changes=(cut,), slope=0.001),
        }
    )
    load = Load(busy_cpus=0.2, memory_available_bytes=2**34, other_gpu_processes=0)
    found = telemetry(record.order)
    update = {"measurement": measured, "summary": summary, "telemetry": found, "load": load}
    update["wall_seconds"] = max(record.wall_seconds, window.seconds + 5.0)
    return record.model_copy(update=update)


def comparison(cards: int = 4, *, repeats: int = 5, models: int = 5) -> list[Record]:
    """Constructed cards × models × three precisions × repeats, all watched, and one that did not fit."""
    found: list[Record] = []
    names = ("resnet18", "resnet34", "resnet50", "resnet101", "resnet152")[:models]
    for place in range(cards):
        letter, digits = "ABCDEFGH"[place], "abcdef012"[place]
        card = f"Constructed Card {letter}"
        at: dict[str, Any] = {
            "on": build.machine(card, label=f"card-{letter.lower()}", digits=digits),
            "card": card,
            "session": f"202601{31 - place}-{digits * 6}",
            "repeats": repeats,
        }
        for depth, model in enumerate(names):
            for turn, precision in enumerate(("fp32-ieee", "fp32-tf32", "amp-fp16")):
                found += build.series_of(
                    build.CIFAR,
                    precision,
                    0.05 * (depth + 1) * (1 + 0.3 * place) / (1 + turn * (0.4 + 0.1 * depth)),
                    model=model,
                    batch_size=64,
                    first_order=1000 * place + 100 * depth + 20 * turn,
                    **at,
                )
    asked = build.trial(build.CIFAR, "fp32-ieee", 1, batch_size=256, model=names[-1])
    on = build.machine("Constructed Card A", label="card-a", digits="a")
    found.append(
        build.record(asked, None, on=on, session="20260131-aaaaaa", order=9000, failure=build.out_of_memory())
    )
    return [watched(one) for one in found]
