"""NVIDIA's part of the telemetry, through nvidia-ml-py (module pynvml)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harness.probe.files import unit_of
from harness.probe.nvidia import Unit, units

POLICIES = ("POWER", "THERMAL", "SYNC_BOOST", "BOARD_LIMIT", "LOW_UTILIZATION", "RELIABILITY")
REASONS = (
    (0x1, "idle"),
    (0x2, "application_clocks"),
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake"),
    (0x100, "display_clock"),
)
"""The bits of NVML's clocks event reasons."""
XIDS_KEPT = 20
NO_INSTANCE = 0xFFFFFFFF
"""What an event has for the slice where it is of the whole card."""


class NvmlCards:
    """The watched cards. `missing` keeps, by card and quantity, the first reason that something is null."""

    source = "nvml"

    def __init__(self, nvml: Any | None, marks: list[str]) -> None:
        self._nvml: Any = nvml
        self._open = False
        self.missing: dict[str, str] = {}
        self.described: list[dict[str, Any]] = []
        self._units: list[Unit] = []
        self._instances: list[int | None] = []
        self._ears: list[Any] = []
        self._xids: list[list[int]] = []
        self._seen: list[int | None] = []
        if nvml is None:
            self.missing["cards"] = "nvidia-ml-py is not installed"
            return
        try:
            nvml.nvmlInit()
        except nvml.NVMLError as error:
            self.missing["cards"] = type(error).__name__
            return
        self._open = True
        self._find(marks)

    def _find(self, marks: list[str]) -> None:
        for unit in units(self._nvml):
            index = unit.index
            if unit.card is None:
                self._ask(f"cards.{index}", self._nvml.nvmlDeviceGetHandleByIndex, index)
                continue
            uuid = self._ask(f"{index}.uuid", self._nvml.nvmlDeviceGetUUID, unit.own)
            if marks and not {str(index), uuid, unit_of(uuid)} & set(marks):
                continue
            name = self._ask(f"{index}.name", self._nvml.nvmlDeviceGetName, unit.own)
            sliced = unit.part is not None
            instance = self._nvml.nvmlDeviceGetGpuInstanceId if sliced else None
            self._units.append(unit)
            self._instances.append(self._ask(f"{index}.instance", instance, unit.part) if instance else None)
            self._ears.append(self._ear(f"{index}.xids", unit.card))
            self._xids.append([])
            self._seen.append(None)
            self.described.append({"index": index, "unit": unit_of(uuid), "name": name})

    def _ear(self, what: str, handle: Any) -> Any:
        """A set of events in which the driver tells of a card's faults; None where it has none."""

        def listen() -> Any:
            ear = self._nvml.nvmlEventSetCreate()
            self._nvml.nvmlDeviceRegisterEvents(handle, self._nvml.nvmlEventTypeXidCriticalError, ear)
            return ear

        return self._ask(what, listen)

    def _heard(self, at: int) -> list[int] | None:
        """The Xid numbers so far, but for those of another slice; asking does not wait."""
        if self._ears[at] is None:
            return None
        try:
            while len(self._xids[at]) < XIDS_KEPT:
                event = self._nvml.nvmlEventSetWait_v2(self._ears[at], 0)
                if self._instances[at] in (None, event.gpuInstanceId) or event.gpuInstanceId == NO_INSTANCE:
                    self._xids[at].append(int(event.eventData))
        except Exception as error:
            if type(error).__name__ != "NVMLError_Timeout":
                self.missing.setdefault(f"{self.described[at]['index']}.xids", type(error).__name__)
        return list(self._xids[at])

    def close(self) -> None:
        """Lets the driver go."""
        if self._open:
            self._ask("close", self._nvml.nvmlShutdown)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Each card's values; counters are cumulative."""
        return [self._card(at, unit, ours, slow) for at, unit in enumerate(self._units)]

    def _ask(self, what: str, question: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except Exception as error:
            # The library raises ctypes' and Unicode's errors beside its own when a driver goes away.
            self.missing.setdefault(what, type(error).__name__)
            return None

    def _card(self, at: int, unit: Unit, ours: Any, slow: bool) -> dict[str, Any]:
        nvml, index = self._nvml, unit.index

        def ask(what: str, name: str, *arguments: Any) -> Any:
            question = getattr(nvml, name, None)
            if question is None:
                self.missing.setdefault(f"{index}.{what}", "the library is older")
                return None
            return self._ask(f"{index}.{what}", question, unit.card, *arguments)

        memory = self._ask(f"{index}.memory", nvml.nvmlDeviceGetMemoryInfo, unit.own)
        busy = ask("utilization", "nvmlDeviceGetUtilizationRates")
        millijoules = ask("energy", "nvmlDeviceGetTotalEnergyConsumption")
        values = {
            "sm_mhz": ask("sm_mhz", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_SM),
            "memory_mhz": ask("memory_mhz", "nvmlDeviceGetClockInfo", nvml.NVML_CLOCK_MEM),
            "temperature_c": ask("temperature", "nvmlDeviceGetTemperature", nvml.NVML_TEMPERATURE_GPU),
            "memory_temperature_c": self._field(ask, "memory_temperature", "NVML_FI_DEV_MEMORY_TEMP"),
            "performance_state": ask("performance_state", "nvmlDeviceGetPerformanceState"),
            "power_watts": self._power(ask),
            "utilization_percent": None if busy is None else busy.gpu,
            "memory_utilization_percent": None if busy is None else busy.memory,
            "memory_used_bytes": None if memory is None else memory.used,
            "energy_joules": None if millijoules is None else millijoules / 1000,
            "limited_seconds": self._limited(ask),
            "reasons": self._reasons(ask),
            "others": self._others(at, unit, ours),
            "xids": self._heard(at),
        }
        return {**values, **self._slowly(ask)} if slow else values

    def _power(self, ask: Callable[..., Any]) -> float | None:
        """The average over a second where the driver gives it by that name, else what it calls the usage."""
        average = self._field(ask, "power_average", "NVML_FI_DEV_POWER_AVERAGE")
        if average is not None:
            return average / 1000
        usage = ask("power", "nvmlDeviceGetPowerUsage")
        return None if usage is None else usage / 1000

    def _field(self, ask: Callable[..., Any], what: str, name: str) -> int | None:
        """A value that the driver has under a field's number; null where it has none, or 0."""
        field = getattr(self._nvml, name, None)
        answers = ask(what, "nvmlDeviceGetFieldValues", [field]) if field is not None else None
        return (answers[0].value.uiVal or None) if answers and answers[0].nvmlReturn == 0 else None

    def _limited(self, ask: Callable[..., Any]) -> dict[str, Any] | None:
        seconds = {}
        for policy in POLICIES:
            name = policy.lower()
            number = getattr(self._nvml, "NVML_PERF_POLICY_" + policy)
            spent = ask("limited." + name, "nvmlDeviceGetViolationStatus", number)
            if spent is not None:
                seconds[name] = spent.violationTime / 1e9
        return seconds or None

    def _reasons(self, ask: Callable[..., Any]) -> list[str] | None:
        """The driver's event reasons; before driver 535 they were called throttle reasons."""
        bits = ask("reasons", "nvmlDeviceGetCurrentClocksEventReasons")
        if bits is None:
            bits = ask("throttle_reasons", "nvmlDeviceGetCurrentClocksThrottleReasons")
        return None if bits is None else [name for bit, name in REASONS if bits & bit]

    def _others(self, at: int, unit: Unit, ours: Any) -> dict[str, Any] | None:
        """Other processes on this card, or in this slice of it: in another they take nothing of ours."""
        if ours.unknown_because:
            return None
        listed = self._nvml.nvmlDeviceGetComputeRunningProcesses
        running = self._ask(f"{unit.index}.processes", listed, unit.own)
        if running is None:
            return None
        own = ours.among({process.pid for process in running})
        foreign = [process for process in running if process.pid not in own]
        return {
            "processes": len(foreign),
            "memory_bytes": sum(process.usedGpuMemory or 0 for process in foreign),
            "utilization_percent": self._used(at, {process.pid for process in foreign}),
        }

    def _used(self, at: int, pids: set[int]) -> float | None:
        """Percent of the card that these processes used since the last sample; null in the first one."""
        before = self._seen[at]
        try:
            samples = self._nvml.nvmlDeviceGetProcessUtilization(self._units[at].own, before or 0)
        except Exception as error:
            if type(error).__name__ != "NVMLError_NotFound":
                what = f"{self.described[at]['index']}.process_utilization"
                self.missing.setdefault(what, type(error).__name__)
                return None
            # The driver has nothing newer: no process used the card.
            samples = []
        self._seen[at] = max((sample.timeStamp for sample in samples), default=before or 0)
        if before is None:
            # What the driver remembers now may be of the time before.
            return None
        used: dict[int, list[int]] = {}
        for sample in samples:
            if sample.pid in pids:
                used.setdefault(sample.pid, []).append(min(sample.smUtil, 100))
        return sum(sum(shares) / len(shares) for shares in used.values())

    def _slowly(self, ask: Callable[..., Any]) -> dict[str, Any]:
        nvml = self._nvml
        mode, limit = (
            ask("mig", "nvmlDeviceGetMigMode"),
            ask("power_limit", "nvmlDeviceGetEnforcedPowerLimit"),
        )
        volatile, bad = nvml.NVML_VOLATILE_ECC, nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED
        good = nvml.NVML_MEMORY_ERROR_TYPE_CORRECTED
        return {
            "ecc_uncorrected": ask("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", bad, volatile),
            "ecc_corrected": ask("ecc_corrected", "nvmlDeviceGetTotalEccErrors", good, volatile),
            "power_limit_watts": None if limit is None else limit / 1000,
            "mig": None if mode is None else mode[0] == nvml.NVML_DEVICE_MIG_ENABLE,
            "fan_percent": ask("fan", "nvmlDeviceGetFanSpeed"),
            "pcie_generation": ask("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": ask("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        }
