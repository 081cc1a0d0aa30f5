"""Constructed records of cards that were watched while a trial ran: no figure here was measured."""

from __future__ import annotations

import random
from typing import Any

from harness.record import (
    CardTelemetry,
    Cpu,
    Energy,
    Gpu,
    KernelTime,
    Load,
    LossScale,
    Machine,
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

CARD = "Constructed Card"
UNIT = "0123456789abcdef"


def gpu(**changes: Any) -> Gpu:
    """A card at its default settings."""
    told: dict[str, Any] = {
        "index": 0,
        "vendor": "NVIDIA",
        "name": CARD,
        "unit": UNIT,
        "driver": "580.00",
        "power_limit_watts": 300.0,
        "power_limit_default_watts": 300.0,
        "clock_max_mhz": 2000,
        "clocks_locked": False,
        "ecc": True,
        "mig": "off",
        "persistence": True,
        "pcie_generation": 1,
        "pcie_width": 16,
        "pcie_generation_max": 4,
        "pcie_width_max": 16,
        "numa_node": 0,
    }
    return Gpu(**{**told, **changes})


def machine(*gpus: Gpu, cpu: dict[str, Any] | None = None, **changes: Any) -> Machine:
    """A machine of eight cores that is nobody's guest."""
    processor = {"cores": 8, "threads": 8, "usable": 8.0, "governor": "performance", "numa_affinity": (0,)}
    told: dict[str, Any] = {
        "id": "c" * 12,
        "label": "constructed",
        "system": "Linux",
        "architecture": "x86_64",
        "cpu": Cpu(**{**processor, **(cpu or {})}),
        "gpus": gpus or (gpu(),),
    }
    return Machine(**{**told, **changes})


def card(**changes: Any) -> CardTelemetry:
    """An undisturbed card at 1,800 MHz, linked at full speed under load."""
    seconds = range(91)
    told: dict[str, Any] = {
        "index": 0,
        "unit": UNIT,
        "sm_mhz": TraceStats(
            mean=Trace.from_values([300.0 if second < 10 else 1800.0 for second in seconds], 1.0)
        ),
        "utilization_percent": TraceStats(
            mean=Trace.from_values([0.0 if second < 10 else 97.0 for second in seconds], 0.1)
        ),
        "limited_share": {"power": 0.0, "thermal": 0.0},
        "others": OtherProcesses(processes=0, memory_bytes=0, samples_share=0.0),
        "ecc_uncorrected": 0,
        "power_limit_watts": 300.0,
        "power_limit_changed": False,
        "pcie_generation": 4,
        "pcie_width": 16,
        "start_temperature_c": 60.0,
    }
    return CardTelemetry(**{**told, **changes})


def telemetry(*cards: CardTelemetry, **changes: Any) -> Telemetry:
    """Ninety seconds, of which the window takes seventy."""
    told: dict[str, Any] = {
        "source": "nvml",
        "interval_seconds": 1.0,
        "seconds": 90.0,
        "samples": 91,
        "times": Trace.from_values([float(second) for second in range(91)], 0.01),
        "windows": ((10.0, 80.0),),
        "cards": cards or (card(),),
        "ended": "stopped",
    }
    return Telemetry(**{**told, **changes})


def record(
    *,
    on: Machine | None = None,
    seen: Telemetry | None = None,
    repeat: int = 1,
    precision: str = "fp32-ieee",
    step_seconds: float = 0.3,
    measured: dict[str, Any] | None = None,
    **changes: Any,
) -> Record:
    """A clean trial of 300 steps on a watched card, with nothing else to do for its machine."""
    asked = build.trial(build.CIFAR, precision, repeat)
    found = build.measurement(
        build.CIFAR, asked, step_seconds, card=CARD, steps=300, seed=repeat, **(measured or {})
    )
    return build.record(
        asked,
        found,
        on=on or machine(),
        **{
            "order": repeat,
            "summary": None,
            "telemetry": seen or telemetry(),
            "load": Load(busy_cpus=0.1),
            **changes,
        },
    )


def watched(record: Record, *, waits: float = 0.12, host: float = 0.15, steps: int = 300) -> Record:
    """The record as if its devices had been watched: a cut warm-up, waits, a clock of the device, energy."""
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
    scale = LossScale(kind="dynamic", first=65536, last=32768, skipped_steps=1)
    precision = measured.precision.model_copy(update={"loss_scale": scale if mixed else None})
    samples = measured.window.samples * steps // measured.window.steps
    window = Window(seconds=sum(series) / 1e6, steps=steps, samples=samples)
    measured = measured.model_copy(
        update={
            "window": window,
            "step_us": Series.from_microseconds(series),
            "input_us": Series.from_microseconds([round(value * waits) for value in series]),
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
    energy = Energy(
        joules=17_500.0,
        joules_per_sample=0.43 + 0.001 * record.trial.repeat,
        method="counter",
        window_seconds=75.0,
        band=0.05,
    )
    found = telemetry(energy=energy)
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
