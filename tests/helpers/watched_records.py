"""Constructed records of a card that was watched while a trial ran: no figure here was measured."""

from __future__ import annotations

from typing import Any

from harness.record import (
    CardTelemetry,
    Cpu,
    Gpu,
    Load,
    Machine,
    OtherProcesses,
    Record,
    Telemetry,
    Trace,
    TraceStats,
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
        "display_attached": False,
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
        "sm_mhz": TraceStats(mean=Trace.of([300.0 if second < 10 else 1800.0 for second in seconds], 1.0)),
        "utilization_percent": TraceStats(
            mean=Trace.of([0.0 if second < 10 else 97.0 for second in seconds], 0.1)
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
        "seconds_per_value": 1.0,
        "times": Trace.of([float(second) for second in range(91)], 0.01),
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
