"""A stand-in for nvidia-ml-py that replays a trace, with the real library's names, constants and errors."""

# The names are the real library's.
# ruff: noqa: N802, N803

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pynvml

POLICIES = {
    pynvml.NVML_PERF_POLICY_POWER: "power",
    pynvml.NVML_PERF_POLICY_THERMAL: "thermal",
    pynvml.NVML_PERF_POLICY_SYNC_BOOST: "sync_boost",
    pynvml.NVML_PERF_POLICY_BOARD_LIMIT: "board_limit",
    pynvml.NVML_PERF_POLICY_LOW_UTILIZATION: "low_utilization",
    pynvml.NVML_PERF_POLICY_RELIABILITY: "reliability",
}

CARD = {
    "nvmlDeviceGetName": "NVIDIA GeForce RTX 4090",
    "nvmlDeviceGetUUID": "GPU-3f2a1b2c-1111-2222-3333-123456789abc",
    "nvmlDeviceGetSerial": "1563820012345",
    "nvmlDeviceGetBoardPartNumber": "900-1G136-2530-000",
    "nvmlDeviceGetVbiosVersion": "95.02.18.80.5E",
    "nvmlDeviceGetCudaComputeCapability": [8, 9],
    "nvmlDeviceGetEnforcedPowerLimit": 450_000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 450_000,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetCurrPcieLinkGeneration": 4,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 4,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetCurrentClocksEventReasons": 0,
    "nvmlDeviceGetTotalEnergyConsumption": 1_000_000,
    "nvmlDeviceGetPowerUsage": 300_000,
    "nvmlDeviceGetPerformanceState": 2,
    "nvmlDeviceGetFanSpeed": 45,
    "nvmlDeviceGetComputeRunningProcesses": [],
    "memory": {"total": 24 * 2**30, "used": 2**30},
    "utilization": {"gpu": 98, "memory": 40},
    "temperature": 65,
    "sm_mhz": 2520,
    "mem_mhz": 10_501,
    "max_sm_mhz": 3105,
    "max_mem_mhz": 10_501,
    "bus": "00000000:01:00.0",
}
"""One card as NVML would answer; a name that is left out is not supported."""

SLICES = [
    CARD | {"nvmlDeviceGetMigMode": [1, 1], "nvmlDeviceGetMaxMigDeviceCount": 7},
    CARD | {"nvmlDeviceGetUUID": "GPU-4f2a1b2c-1111-2222-3333-123456789abc", "nvmlDeviceGetMigMode": [0, 0]},
    *(
        {
            "of": 0,
            "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB MIG 3g.20gb",
            "nvmlDeviceGetUUID": f"MIG-{instance}f2a1b2c-1111-2222-3333-123456789abc",
            "nvmlDeviceGetGpuInstanceId": instance,
            "memory": {"total": 20 * 2**30, "used": instance * 2**30},
            "nvmlDeviceGetComputeRunningProcesses": [{"pid": 100 * instance, "usedGpuMemory": 2**30}],
        }
        for instance in (1, 2)
    ),
]
"""A card that is divided into two slices, and a whole one: NVML refuses most questions about a slice."""


class FakeNvml:
    """A card with "of" is a slice of the card of that number, and stands after all whole ones.

    `ticks[i]` overrides `cards` from time i on; a value {"error": code} is raised as NVML raises it."""

    NVMLError = pynvml.NVMLError

    def __init__(
        self,
        cards: list[dict[str, Any]] | None = None,
        ticks: list[list[dict[str, Any]]] | None = None,
        driver: bool = True,
    ) -> None:
        self._cards = cards if cards is not None else [CARD]
        self._ticks = ticks or []
        self._driver = driver
        self.at = -1

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("NVML_", "nvmlClocks", "nvmlEventType")):
            return getattr(pynvml, name)
        if name.startswith("nvmlDeviceGet") and hasattr(pynvml, name):
            return lambda handle, *arguments: self._value(handle, name)
        raise AttributeError(name)

    def _value(self, handle: int, field: str) -> Any:
        unknown = {"error": pynvml.NVML_ERROR_NOT_SUPPORTED}
        told = (*reversed(self._ticks[: self.at + 1]), self._cards)
        value = next((cards[handle][field] for cards in told if field in cards[handle]), unknown)
        if isinstance(value, dict) and "error" in value:
            raise pynvml.NVMLError(value["error"])
        return value

    def nvmlEventSetCreate(self) -> dict[str, int]:
        return {"heard": 0}

    def nvmlDeviceRegisterEvents(self, handle: int, eventTypes: int, eventSet: dict[str, int]) -> None:
        assert eventTypes == pynvml.nvmlEventTypeXidCriticalError
        eventSet["handle"] = handle

    def nvmlEventSetWait_v2(self, eventSet: dict[str, int], timeoutms: int) -> SimpleNamespace:
        told = self._value(eventSet["handle"], "xids") if "xids" in self._named(eventSet["handle"]) else []
        if eventSet["heard"] >= len(told):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_TIMEOUT)
        eventSet["heard"] += 1
        return SimpleNamespace(
            eventType=pynvml.nvmlEventTypeXidCriticalError,
            eventData=told[eventSet["heard"] - 1],
            gpuInstanceId=self._cards[eventSet["handle"]].get("xid_instance", 0xFFFFFFFF),
        )

    def _named(self, handle: int) -> set[str]:
        found = set(self._cards[handle])
        for tick in self._ticks[: self.at + 1]:
            found |= set(tick[handle])
        return found

    def nvmlInit(self) -> None:
        if not self._driver:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    def nvmlShutdown(self) -> None:
        pass

    def nvmlSystemGetDriverVersion(self) -> str:
        return "570.86.15"

    def nvmlSystemGetCudaDriverVersion_v2(self) -> int:
        return 12080

    def nvmlDeviceGetCount(self) -> int:
        return sum("of" not in card for card in self._cards)

    def nvmlDeviceGetMigDeviceHandleByIndex(self, device: int, index: int) -> int:
        parts = [at for at, card in enumerate(self._cards) if card.get("of") == device]
        if index >= len(parts):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return parts[index]

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        return index

    def nvmlDeviceGetMemoryInfo(self, handle: int, version: Any = None) -> SimpleNamespace:
        found = self._value(handle, "memory")
        return SimpleNamespace(total=found["total"], used=found["used"], free=found["total"] - found["used"])

    def nvmlDeviceGetUtilizationRates(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(**self._value(handle, "utilization"))

    def nvmlDeviceGetTemperature(self, handle: int, sensor: int) -> int:
        assert sensor == pynvml.NVML_TEMPERATURE_GPU
        return self._value(handle, "temperature")

    def nvmlDeviceGetClockInfo(self, handle: int, type: int) -> int:
        return self._value(handle, "sm_mhz" if type == pynvml.NVML_CLOCK_SM else "mem_mhz")

    def nvmlDeviceGetMaxClockInfo(self, handle: int, type: int) -> int:
        return self._value(handle, "max_sm_mhz" if type == pynvml.NVML_CLOCK_SM else "max_mem_mhz")

    def nvmlDeviceGetViolationStatus(self, device: int, perfPolicyType: int) -> SimpleNamespace:
        spent = self._value(device, "violation_ns")
        return SimpleNamespace(referenceTime=0, violationTime=spent[POLICIES[perfPolicyType]])

    def nvmlDeviceGetTotalEccErrors(self, handle: int, errorType: int, counterType: int) -> int:
        if counterType == pynvml.NVML_AGGREGATE_ECC:
            return self._value(handle, "ecc_uncorrected_ever")
        bad = errorType == pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        return self._value(handle, "ecc_uncorrected" if bad else "ecc_corrected")

    def nvmlDeviceGetComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(**one) for one in self._value(handle, "nvmlDeviceGetComputeRunningProcesses")]

    def nvmlDeviceGetGraphicsRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(**one) for one in self._value(handle, "graphics")]

    def nvmlDeviceGetMPSComputeRunningProcesses(self, handle: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(**one) for one in self._value(handle, "mps")]

    def nvmlDeviceGetFieldValues(self, handle: int, fieldIds: list[int]) -> list[SimpleNamespace]:
        told = self._value(handle, "fields")
        return [
            SimpleNamespace(
                fieldId=field,
                nvmlReturn=0 if str(field) in told else pynvml.NVML_ERROR_NOT_SUPPORTED,
                value=SimpleNamespace(uiVal=told.get(str(field), 0)),
            )
            for field in fieldIds
        ]

    def nvmlDeviceGetProcessUtilization(self, handle: int, timeStamp: int) -> list[SimpleNamespace]:
        told, now = self._value(handle, "process_sm_percent"), 1_000_000 * (self.at + 2)
        if timeStamp >= now or not any(told.values()):
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return [
            SimpleNamespace(pid=int(pid), timeStamp=now, smUtil=used, memUtil=0, encUtil=0, decUtil=0)
            for pid, used in told.items()
            if used
        ]

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:
        return SimpleNamespace(busId=self._value(handle, "bus"))
