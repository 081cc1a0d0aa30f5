"""NVIDIA's cards: what they are, and what they report during a trial."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any

from harness.files import Files, unit_hash
from harness.gpu.nvml import (
    NvmlDevice,
    driver_session,
    find_units,
    first_mode,
    handle,
    in_mig_mode,
    number,
    open_driver,
    query,
    text,
)

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
USERS_CLOCKS = 0x2
"""The bit of clocks that a user holds below what the card could do."""
XIDS_KEPT = 20
NO_INSTANCE = 0xFFFFFFFF
"""An event's number of a slice where the event is of the whole card."""


def describe(nvml: Any | None, files: Files) -> list[dict[str, Any]]:
    """Return the fields of record.Gpu for every card or slice, and `uuid`, which stays in memory."""
    with driver_session(nvml) as refused:
        if refused or nvml is None:
            return []
        return [_describe_device(nvml, files, unit) for unit in find_units(nvml) if unit.card is not None]


def _describe_device(nvml: Any, files: Files, unit: NvmlDevice) -> dict[str, Any]:
    def ask(name: str, *arguments: Any, read: Callable[[Any], Any] = number) -> Any:
        return query(nvml, name, unit.card, *arguments, read=read)

    def own(name: str, read: Callable[[Any], Any]) -> Any:
        return query(nvml, name, unit.own, read=read)

    name, uuid = own("nvmlDeviceGetName", text), own("nvmlDeviceGetUUID", text)
    ecc = ask("nvmlDeviceGetEccMode", read=first_mode)
    rows = ask("nvmlDeviceGetRemappedRows", read=_rows)
    mode, switched = ask("nvmlDeviceGetComputeMode"), getattr(nvml, "NVML_FEATURE_ENABLED", None)
    modes = {
        getattr(nvml, "NVML_COMPUTEMODE_DEFAULT", None): "default",
        getattr(nvml, "NVML_COMPUTEMODE_PROHIBITED", None): "prohibited",
    }
    persistence, reasons = ask("nvmlDeviceGetPersistenceMode"), _clock_reasons(ask)
    bus = ask("nvmlDeviceGetPciInfo", read=lambda place: text(place.busId)[-12:].lower())
    cuda = query(nvml, "nvmlSystemGetCudaDriverVersion_v2")
    node = files.number(f"/sys/bus/pci/devices/{bus}/numa_node") if bus else None
    return {
        "index": unit.index,
        "vendor": "NVIDIA",
        "name": name or "unknown NVIDIA card",
        "bus": bus,
        "uuid": uuid,
        "unit": unit_hash(uuid),
        "architecture": ask(
            "nvmlDeviceGetCudaComputeCapability", read=lambda pair: f"sm_{number(pair[0])}{number(pair[1])}"
        ),
        "memory_bytes": own("nvmlDeviceGetMemoryInfo", lambda memory: number(memory.total)),
        "driver": query(nvml, "nvmlSystemGetDriverVersion", read=text),
        "driver_cuda": f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda is not None else None,
        "vbios": ask("nvmlDeviceGetVbiosVersion", read=text),
        "power_limit_watts": _watts(ask("nvmlDeviceGetEnforcedPowerLimit")),
        "power_limit_default_watts": _watts(ask("nvmlDeviceGetPowerManagementDefaultLimit")),
        "power_limit_max_watts": _watts(
            ask("nvmlDeviceGetPowerManagementLimitConstraints", read=lambda limits: number(limits[1]))
        ),
        "clock_max_mhz": ask("nvmlDeviceGetMaxClockInfo", getattr(nvml, "NVML_CLOCK_SM", None)),
        "clock_memory_max_mhz": ask("nvmlDeviceGetMaxClockInfo", getattr(nvml, "NVML_CLOCK_MEM", None)),
        "clocks_locked": None if reasons is None else bool(reasons & USERS_CLOCKS),
        "ecc": None if ecc is None else ecc == switched,
        "remapped_rows": None if rows is None else rows[0] + rows[1],
        "bar1_bytes": ask("nvmlDeviceGetBAR1MemoryInfo", read=lambda memory: number(memory.bar1Total)),
        "compute_mode": None if mode is None else modes.get(mode, "exclusive"),
        "mig": _mig(nvml, ask, name, unit.parent),
        "persistence": None if persistence is None else persistence == switched,
        "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        "numa_node": node if node is not None and node >= 0 else None,
        "pcie_generation_of_card": ask("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
        "remapping": None if rows is None else "failed" if rows[3] else "pending" if rows[2] else None,
        "ecc_uncorrected_ever": ask(
            "nvmlDeviceGetTotalEccErrors",
            getattr(nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", None),
            getattr(nvml, "NVML_AGGREGATE_ECC", None),
        ),
        "vgpu_license": _vgpu_license(nvml, ask),
    }


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _rows(answer: Any) -> tuple[int, int, int, int]:
    """Return rows replaced after correctable and uncorrectable errors, that wait for it, and that failed."""
    correctable, uncorrectable, pending, failed = map(number, answer)
    return correctable, uncorrectable, pending, failed


def _vgpu_license(nvml: Any, ask: Callable[..., Any]) -> str | None:
    """Return whether a virtual card is licensed; null for any other card."""
    virtual = getattr(nvml, "NVML_GPU_VIRTUALIZATION_MODE_VGPU", None)
    if virtual is None or ask("nvmlDeviceGetVirtualizationMode") != virtual:
        return None
    licensed = ask("nvmlDeviceGetGridLicensableFeatures", read=_any_licensed)
    return None if licensed is None else "licensed" if licensed else "unlicensed"


def _any_licensed(answer: Any) -> bool:
    features = answer.gridLicensableFeatures[: answer.licensableFeaturesCount]
    return any(number(feature.featureState) for feature in features)


def _clock_reasons(ask: Callable[[str], int | None]) -> int | None:
    """Return the bits of the driver's event reasons, which before driver 535 were called throttle reasons."""
    bits = ask("nvmlDeviceGetCurrentClocksEventReasons")
    return ask("nvmlDeviceGetCurrentClocksThrottleReasons") if bits is None else bits


def _mig(nvml: Any, ask: Callable[..., Any], name: str | None, parent: int | None) -> str | None:
    """Return "off", "on" where no slice is made yet, or a slice's profile; None without such a mode."""
    if parent is not None:
        return f"{(name or 'unknown slice').rsplit('MIG ', 1)[-1]} of card {parent}"
    mode = ask("nvmlDeviceGetMigMode", read=first_mode)
    return None if mode is None else "on" if in_mig_mode(nvml, mode) else "off"


def _processes(answer: Any) -> list[tuple[int, int | None]]:
    """Return the number of each process, and the bytes that it holds; null where the driver does not say."""
    held = ((one.pid, one.usedGpuMemory) for one in answer)
    return [(number(pid), None if used is None else number(used)) for pid, used in held]


def total_bytes(held: Iterable[int | None]) -> int | None:
    """Return null where one of them is not known."""
    known = list(held)
    return None if None in known else sum(filter(None, known))


_OTHER_LISTS = ("nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetMPSComputeRunningProcesses")
"""Desktops, games, browsers and clients of MPS are in these, and not among the computing processes."""


def _held_bytes(
    nvml: Any, device: Any, missing: dict[str, str] | None = None, what: str = ""
) -> dict[int, int | None] | None:
    """Return process → bytes that it holds, by all lists; None without the first, the reason in `missing`."""
    name = "nvmlDeviceGetComputeRunningProcesses"
    computing = query(nvml, name, device, read=_processes, missing=missing, what=what)
    others = (query(nvml, name, device, read=_processes) for name in _OTHER_LISTS)
    return None if computing is None else dict(chain(*filter(None, others), computing))


def foreign_processes(nvml: Any | None, ours: frozenset[int]) -> tuple[int, int | None] | None:
    """Return (processes, bytes) on all cards that are not `ours`; None where the driver does not say."""
    with driver_session(nvml) as refused:
        if refused or nvml is None:
            return None
        processes: list[tuple[int, int | None]] = []
        for unit in find_units(nvml):
            held = None if unit.card is None else _held_bytes(nvml, unit.own)
            if held is None:
                return None
            processes += [(pid, size) for pid, size in held.items() if pid not in ours]
        return len({pid for pid, _ in processes}), total_bytes(size for _, size in processes)


def _field_value(answers: Any) -> int:
    """Return the value under a field's number; 0 where the driver has none."""
    return number(answers[0].value.uiVal) if number(answers[0].nvmlReturn) == 0 else 0


@dataclass
class _Watched:
    """One device that is sampled."""

    unit: NvmlDevice
    instance: int | None
    """The slice's number as events have it; None for a whole card."""
    listener: Any
    """A set of events in which the driver reports the card's faults; None where it has none."""
    xids: list[int]
    ours: set[int] = field(default_factory=set)
    """All processes of the trial that were seen on it, ended ones too."""
    seen_until: int | None = None
    """The driver's time of the last sample of processes; None before the first."""


class NvidiaCards:
    """The watched cards. `missing` keeps, by card and quantity, the first reason that something is null."""

    source = "nvml"

    def __init__(self, nvml: Any | None, marks: list[str]) -> None:
        self._nvml: Any = nvml
        self.missing: dict[str, str] = {}
        self.described: list[dict[str, Any]] = []
        self._watched: list[_Watched] = []
        refused = open_driver(nvml)
        if refused is not None:
            self.missing["cards"] = refused
            return
        for unit in find_units(nvml):
            self._watch(unit, marks)

    def _ask(self, what: str, name: str, *arguments: Any, read: Callable[[Any], Any] = number) -> Any:
        return query(self._nvml, name, *arguments, read=read, missing=self.missing, what=what)

    def _watch(self, unit: NvmlDevice, marks: list[str]) -> None:
        """Add a device that the marks name; every device where there are no marks."""
        index = unit.index
        if unit.card is None:
            self._ask(f"cards.{index}", "nvmlDeviceGetHandleByIndex", index, read=handle)
            return
        uuid = self._ask(f"{index}.uuid", "nvmlDeviceGetUUID", unit.own, read=text)
        if marks and not {str(index), uuid, unit_hash(uuid)} & set(marks):
            return
        name = self._ask(f"{index}.name", "nvmlDeviceGetName", unit.own, read=text)
        sliced = unit.part is not None
        instance = self._ask(f"{index}.instance", "nvmlDeviceGetGpuInstanceId", unit.part) if sliced else None
        listener = self._ask(f"{index}.xids", "nvmlEventSetCreate", read=handle)
        fault = getattr(self._nvml, "nvmlEventTypeXidCriticalError", None)
        if listener is not None:
            name_of_xids = f"{index}.xids"
            self._ask(name_of_xids, "nvmlDeviceRegisterEvents", unit.card, fault, listener, read=handle)
            listener = None if name_of_xids in self.missing else listener
        self._watched.append(_Watched(unit, instance, listener, []))
        self.described.append({"index": index, "unit": unit_hash(uuid), "name": name})

    def close(self) -> None:
        """Let the driver go."""
        query(self._nvml, "nvmlShutdown", read=handle)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Return each card's values; counters are cumulative."""
        return [self._sample(card, ours, slow) for card in self._watched]

    def _sample(self, card: _Watched, ours: Any, slow: bool) -> dict[str, Any]:
        nvml, unit = self._nvml, card.unit

        def ask(what: str, name: str, *arguments: Any, read: Callable[[Any], Any] = number) -> Any:
            return self._ask(f"{unit.index}.{what}", name, unit.card, *arguments, read=read)

        busy = ask(
            "utilization",
            "nvmlDeviceGetUtilizationRates",
            read=lambda rates: (number(rates.gpu), number(rates.memory)),
        )
        millijoules = ask("energy", "nvmlDeviceGetTotalEnergyConsumption")
        bits = _clock_reasons(partial(ask, "reasons"))
        values = {
            "sm_mhz": ask("sm_mhz", "nvmlDeviceGetClockInfo", getattr(nvml, "NVML_CLOCK_SM", None)),
            "memory_mhz": ask("memory_mhz", "nvmlDeviceGetClockInfo", getattr(nvml, "NVML_CLOCK_MEM", None)),
            "temperature_c": ask(
                "temperature", "nvmlDeviceGetTemperature", getattr(nvml, "NVML_TEMPERATURE_GPU", None)
            ),
            "memory_temperature_c": self._field(ask, "memory_temperature", "NVML_FI_DEV_MEMORY_TEMP"),
            "performance_state": ask("performance_state", "nvmlDeviceGetPerformanceState"),
            "power_watts": self._power(ask),
            "utilization_percent": None if busy is None else busy[0],
            "memory_used_bytes": self._ask(
                f"{unit.index}.memory",
                "nvmlDeviceGetMemoryInfo",
                unit.own,
                read=lambda memory: number(memory.used),
            ),
            "energy_joules": None if millijoules is None else millijoules / 1000,
            "limited_seconds": self._limited(ask),
            "reasons": None if bits is None else [name for bit, name in REASONS if bits & bit],
            "others": self._others(card, ours),
            "xids": self._faults(card),
        }
        return {**values, **self._slowly(ask)} if slow else values

    def _faults(self, card: _Watched) -> list[int] | None:
        """Return the Xid numbers so far without those of another slice; asking does not wait."""
        if card.listener is None:
            return None
        try:
            while len(card.xids) < XIDS_KEPT:
                event = self._nvml.nvmlEventSetWait_v2(card.listener, 0)
                if card.instance in (None, event.gpuInstanceId) or event.gpuInstanceId == NO_INSTANCE:
                    card.xids.append(int(event.eventData))
        except Exception as error:
            if type(error).__name__ != "NVMLError_Timeout":
                self.missing.setdefault(f"{card.unit.index}.xids", type(error).__name__)
        return list(card.xids)

    def _power(self, ask: Callable[..., Any]) -> float | None:
        """Return the driver's average over a second, in watts; else what it calls the usage."""
        average = self._field(ask, "power_average", "NVML_FI_DEV_POWER_AVERAGE")
        if average is not None:
            return average / 1000
        usage = ask("power", "nvmlDeviceGetPowerUsage")
        return None if usage is None else usage / 1000

    def _field(self, ask: Callable[..., Any], what: str, name: str) -> int | None:
        """Return a value that the driver has under a field's number; null where it has none, or 0."""
        field = getattr(self._nvml, name, None)
        if field is None:
            return None
        value: int | None = ask(what, "nvmlDeviceGetFieldValues", [field], read=_field_value)
        return value or None

    def _limited(self, ask: Callable[..., Any]) -> dict[str, Any] | None:
        seconds = {}
        for policy in POLICIES:
            name = policy.lower()
            policy_number = getattr(self._nvml, "NVML_PERF_POLICY_" + policy, None)
            function = "nvmlDeviceGetViolationStatus"
            spent = ask(
                "limited." + name, function, policy_number, read=lambda spent: number(spent.violationTime)
            )
            if spent is not None:
                seconds[name] = spent / 1e9
        return seconds or None

    def _others(self, card: _Watched, ours: Any) -> dict[str, Any] | None:
        """Return other processes on this card or slice; in another slice they take nothing of ours."""
        if ours.unknown_because:
            return None
        held = _held_bytes(self._nvml, card.unit.own, self.missing, f"{card.unit.index}.processes")
        if held is None:
            return None
        card.ours |= ours.among(set(held))
        foreign = {pid: size for pid, size in held.items() if pid not in card.ours}
        return {
            "processes": len(foreign),
            "memory_bytes": total_bytes(foreign.values()),
            "utilization_percent": self._used(card, ours),
        }

    def _used(self, card: _Watched, ours: Any) -> float | None:
        """Return the percentage that others, listed or not, used since the last sample; null in the first."""
        before = card.seen_until
        try:
            answer = self._nvml.nvmlDeviceGetProcessUtilization(card.unit.own, before or 0)
            samples = [(number(one.timeStamp), number(one.pid), number(one.smUtil)) for one in answer]
        except Exception as error:
            if type(error).__name__ != "NVMLError_NotFound":
                self.missing.setdefault(f"{card.unit.index}.process_utilization", type(error).__name__)
                return None
            # The driver has nothing newer: no process used the card.
            samples = []
        card.seen_until = max((at for at, _, _ in samples), default=before or 0)
        if before is None:
            # What the driver remembers now may be of the time before.
            return None
        card.ours |= ours.among({pid for _, pid, _ in samples})
        used: dict[int, list[int]] = {}
        for _, pid, share in samples:
            if pid and pid not in card.ours:
                used.setdefault(pid, []).append(min(share, 100))
        return sum(sum(shares) / len(shares) for shares in used.values())

    def _slowly(self, ask: Callable[..., Any]) -> dict[str, Any]:
        nvml = self._nvml
        mode = ask("mig", "nvmlDeviceGetMigMode", read=first_mode)
        limit = ask("power_limit", "nvmlDeviceGetEnforcedPowerLimit")
        # What somebody set; the enforced one a driver may move by itself, as laptops do.
        chosen = ask("power_limit_set", "nvmlDeviceGetPowerManagementLimit")
        volatile = getattr(nvml, "NVML_VOLATILE_ECC", None)
        bad = getattr(nvml, "NVML_MEMORY_ERROR_TYPE_UNCORRECTED", None)
        good = getattr(nvml, "NVML_MEMORY_ERROR_TYPE_CORRECTED", None)
        return {
            "ecc_uncorrected": ask("ecc_uncorrected", "nvmlDeviceGetTotalEccErrors", bad, volatile),
            "ecc_corrected": ask("ecc_corrected", "nvmlDeviceGetTotalEccErrors", good, volatile),
            "power_limit_watts": _watts(limit),
            "power_limit_set_watts": _watts(chosen),
            "mig": None if mode is None else in_mig_mode(nvml, mode),
            "fan_percent": ask("fan", "nvmlDeviceGetFanSpeed"),
            "pcie_generation": ask("pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration"),
            "pcie_width": ask("pcie_width", "nvmlDeviceGetCurrPcieLinkWidth"),
        }
