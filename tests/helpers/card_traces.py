"""What cards tell NVML over 90 s, constructed from the fields that it documents: no device made it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pynvml

SECONDS = 90
ENERGY = "nvmlDeviceGetTotalEnergyConsumption"
POWER = "nvmlDeviceGetPowerUsage"
PROCESSES = "nvmlDeviceGetComputeRunningProcesses"
REASONS = "nvmlDeviceGetCurrentClocksEventReasons"
MIG = "nvmlDeviceGetMigMode"

OWN = {"pid": 100, "usedGpuMemory": 2 * 2**30}
LOST = {"error": pynvml.NVML_ERROR_GPU_IS_LOST}
UNSUPPORTED = {"error": pynvml.NVML_ERROR_NOT_SUPPORTED}


@dataclass(frozen=True)
class CardTrace:
    """What a steady card at 300 W says otherwise: all the time, and from a second on."""

    card: Mapping[str, Any] = field(default_factory=dict)
    changes: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)


def limited(thermal: int = 0) -> dict[str, int]:
    """For how many nanoseconds each limit held the card, in all."""
    held = dict.fromkeys(("power", "sync_boost", "board_limit", "low_utilization", "reliability"), 0)
    return {**held, "thermal": thermal}


STEADY: dict[str, Any] = {ENERGY: 1_000_000, PROCESSES: [OWN], "violation_ns": limited()}
HOT = {"temperature": 91, "sm_mhz": 1410, REASONS: 72}


def foreign(mebibytes: int) -> list[dict[str, int]]:
    return [OWN, {"pid": 200, "usedGpuMemory": mebibytes * 2**20}]


TRACES = {
    "clean": CardTrace({"fields": {"82": 74}}),
    "throttling": CardTrace(
        changes={
            second: {**HOT, "violation_ns": limited(thermal=800_000_000 * (second - 30))}
            for second in range(30, SECONDS + 2)
        }
    ),
    "ecc_errors": CardTrace(
        {"ecc_uncorrected": 3, "ecc_corrected": 7, "nvmlDeviceGetEccMode": [1, 1]},
        {40: {"ecc_uncorrected": 5, "ecc_corrected": 60}},
    ),
    "foreign_process": CardTrace(changes={50: {PROCESSES: foreign(1024)}, 60: {PROCESSES: [OWN]}}),
    "foreign_busy": CardTrace(
        {"process_sm_percent": {"100": 95}},
        {50: {PROCESSES: foreign(100), "process_sm_percent": {"100": 75, "200": 20}}},
    ),
    "locked_clocks": CardTrace({"sm_mhz": 1410, REASONS: 2}),
    "xid": CardTrace(changes={30: {"xids": [63]}}),
    "mig": CardTrace(
        {MIG: [0, 0], "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB"},
        {45: {MIG: [1, 1], "utilization": UNSUPPORTED, POWER: UNSUPPORTED}},
    ),
    "before_volta": CardTrace(
        {
            "nvmlDeviceGetName": "NVIDIA GeForce GTX 1080 Ti",
            "violation_ns": UNSUPPORTED,
            ENERGY: UNSUPPORTED,
            REASONS: {"error": pynvml.NVML_ERROR_FUNCTION_NOT_FOUND},
            "nvmlDeviceGetCurrentClocksThrottleReasons": 4,
        }
    ),
    "falls_off_the_bus": CardTrace(
        changes={
            20: dict.fromkeys(
                (
                    *("violation_ns", "utilization", "memory", "temperature", "sm_mhz", "mem_mhz", "fields"),
                    *(ENERGY, POWER, PROCESSES, REASONS, MIG),
                    "nvmlDeviceGetCurrentClocksThrottleReasons",
                    "nvmlDeviceGetEnforcedPowerLimit",
                    "nvmlDeviceGetCurrPcieLinkGeneration",
                    "nvmlDeviceGetCurrPcieLinkWidth",
                    "nvmlDeviceGetFanSpeed",
                    "nvmlDeviceGetPerformanceState",
                ),
                LOST,
            )
        }
    ),
}
