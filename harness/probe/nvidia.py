"""NVIDIA's cards through nvidia-ml-py (module pynvml). No driver, no cards: cleanly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.probe.files import Files, unit_of


def library() -> Any | None:
    """The pynvml module; None where it is not installed."""
    try:
        import pynvml
    except ImportError:
        return None
    return pynvml


@contextmanager
def driver(nvml: Any | None) -> Iterator[bool]:
    """Opens the driver; gives False where it does not answer."""
    try:
        opened = nvml is not None
        if nvml is not None:
            nvml.nvmlInit()
    except nvml.NVMLError:  # type: ignore[union-attr]
        opened = False
    try:
        yield opened
    finally:
        if opened and nvml is not None:
            query(nvml, nvml.nvmlShutdown)


def query(nvml: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    """The driver's answer; None where the card or the driver does not know it."""
    try:
        return question(*arguments)
    except (nvml.NVMLError, UnicodeDecodeError):
        return None


@dataclass(frozen=True)
class Unit:
    """What CUDA takes for one device: a card, or a slice of one in MIG mode. A handle of None was refused."""

    index: int
    card: Any
    part: Any = None
    """The slice's own handle: its name, memory and processes. All else is the card's."""
    parent: int | None = None

    @property
    def own(self) -> Any:
        """The handle that this device alone answers to."""
        return self.card if self.part is None else self.part


def units(nvml: Any) -> list[Unit]:
    """Every card by the driver's index; a divided one's slices stand for it, counted on after the last."""
    count = query(nvml, nvml.nvmlDeviceGetCount) or 0
    handles = [query(nvml, nvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
    slices = [() if handle is None else _slices(nvml, handle) for handle in handles]
    whole = [Unit(index, handle) for index, handle in enumerate(handles) if not slices[index]]
    parts = [(parent, part) for parent, of_card in enumerate(slices) for part in of_card]
    return whole + [
        Unit(count + at, handles[parent], part, parent) for at, (parent, part) in enumerate(parts)
    ]


def _slices(nvml: Any, card: Any) -> tuple[Any, ...]:
    mode = query(nvml, nvml.nvmlDeviceGetMigMode, card)
    if mode is None or mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return ()
    most = query(nvml, nvml.nvmlDeviceGetMaxMigDeviceCount, card) or 0
    parts = (query(nvml, nvml.nvmlDeviceGetMigDeviceHandleByIndex, card, at) for at in range(most))
    return tuple(part for part in parts if part is not None)


def cards(nvml: Any | None, files: Files) -> list[dict[str, Any]]:
    """The fields of record.Gpu for every card or slice, and `uuid` and `bus`, which stay in memory."""
    with driver(nvml) as opened:
        if not opened or nvml is None:
            return []
        return [_card(nvml, files, unit) for unit in units(nvml) if unit.card is not None]


def _card(nvml: Any, files: Files, unit: Unit) -> dict[str, Any]:
    def ask(name: str, *arguments: Any) -> Any:
        question = getattr(nvml, name, None)
        return None if question is None else query(nvml, question, unit.card, *arguments)

    name, uuid = (
        query(nvml, nvml.nvmlDeviceGetName, unit.own),
        query(nvml, nvml.nvmlDeviceGetUUID, unit.own),
    )
    memory, ecc = query(nvml, nvml.nvmlDeviceGetMemoryInfo, unit.own), ask("nvmlDeviceGetEccMode")
    bar1, bus = ask("nvmlDeviceGetBAR1MemoryInfo"), bus_of(nvml, unit.card)
    return {
        "index": unit.index,
        "vendor": "NVIDIA",
        "name": name or "unknown NVIDIA card",
        "bus": bus,
        "uuid": uuid,
        "unit": unit_of(uuid),
        "architecture": _architecture(ask),
        "memory_bytes": memory.total if memory is not None else None,
        "driver": query(nvml, nvml.nvmlSystemGetDriverVersion),
        "driver_cuda": _cuda(query(nvml, nvml.nvmlSystemGetCudaDriverVersion_v2)),
        "vbios": ask("nvmlDeviceGetVbiosVersion"),
        "power_limit_watts": _watts(ask("nvmlDeviceGetEnforcedPowerLimit")),
        "power_limit_default_watts": _watts(ask("nvmlDeviceGetPowerManagementDefaultLimit")),
        "power_limit_max_watts": _highest_limit(ask("nvmlDeviceGetPowerManagementLimitConstraints")),
        "clock_max_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_SM),
        "clock_memory_max_mhz": ask("nvmlDeviceGetMaxClockInfo", nvml.NVML_CLOCK_MEM),
        "clocks_locked": _locked(nvml, ask),
        "ecc": None if ecc is None else ecc[0] == nvml.NVML_FEATURE_ENABLED,
        "remapped_rows": _remapped(nvml, ask),
        "bar1_bytes": bar1.bar1Total if bar1 is not None else None,
        "compute_mode": _compute_mode(nvml, ask("nvmlDeviceGetComputeMode")),
        "mig": _mig(nvml, ask, name, unit.parent),
        "persistence": _switch(nvml, ask("nvmlDeviceGetPersistenceMode")),
        "display_attached": _switch(nvml, ask("nvmlDeviceGetDisplayActive")),
        "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        "numa_node": _numa_node(files, bus),
    }


def bus_of(nvml: Any, card: Any) -> str | None:
    """A card's PCI address as the kernel writes it."""
    place = query(nvml, nvml.nvmlDeviceGetPciInfo, card)
    return None if place is None else bus_from(place)


def bus_from(place: Any) -> str:
    """The PCI address in NVML's answer, as the kernel writes it."""
    bus: str = place.busId.decode() if isinstance(place.busId, bytes) else place.busId
    return bus[-12:].lower()


def _numa_node(files: Files, bus: str | None) -> int | None:
    node = files.number(f"/sys/bus/pci/devices/{bus}/numa_node") if bus else None
    return node if node is not None and node >= 0 else None


def _architecture(ask: Callable[..., Any]) -> str | None:
    capability = ask("nvmlDeviceGetCudaComputeCapability")
    return None if capability is None else f"sm_{capability[0]}{capability[1]}"


def _cuda(version: int | None) -> str | None:
    return None if version is None else f"{version // 1000}.{version % 1000 // 10}"


def _watts(milliwatts: int | None) -> float | None:
    return None if milliwatts is None else milliwatts / 1000


def _highest_limit(ends: Any) -> float | None:
    return None if ends is None else _watts(ends[1])


def _remapped(nvml: Any, ask: Callable[..., Any]) -> int | None:
    """Rows that Ampere and newer replaced; else pages that were retired for either kind of error."""
    rows = ask("nvmlDeviceGetRemappedRows")
    if rows is not None:
        return int(rows[0] + rows[1])
    causes = (
        nvml.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS,
        nvml.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR,
    )
    pages = [ask("nvmlDeviceGetRetiredPages", cause) for cause in causes]
    return None if any(page is None for page in pages) else sum(len(page) for page in pages)


def _compute_mode(nvml: Any, mode: int | None) -> str | None:
    if mode is None:
        return None
    named = {nvml.NVML_COMPUTEMODE_DEFAULT: "default", nvml.NVML_COMPUTEMODE_PROHIBITED: "prohibited"}
    return named.get(mode, "exclusive")


def _switch(nvml: Any, state: int | None) -> bool | None:
    return None if state is None else state == nvml.NVML_FEATURE_ENABLED


def _locked(nvml: Any, ask: Callable[..., Any]) -> bool | None:
    """True where a user's clocks hold the card below what it could do."""
    reasons = ask("nvmlDeviceGetCurrentClocksEventReasons")
    if reasons is None:
        reasons = ask("nvmlDeviceGetCurrentClocksThrottleReasons")
    if reasons is None:
        return None
    return bool(reasons & nvml.nvmlClocksThrottleReasonApplicationsClocksSetting)


def _mig(nvml: Any, ask: Callable[..., Any], name: str | None, parent: int | None) -> str | None:
    """ "off", "on" where no slice is made yet, a slice's profile; None where the card has no such mode."""
    if parent is not None:
        return f"{(name or 'unknown slice').rsplit('MIG ', 1)[-1]} of card {parent}"
    mode = ask("nvmlDeviceGetMigMode")
    if mode is None:
        return None
    return "on" if mode[0] == nvml.NVML_DEVICE_MIG_ENABLE else "off"


def foreign(nvml: Any | None, ours: frozenset[int]) -> tuple[int, int] | None:
    """(processes, bytes) on all cards that are not `ours`; None where the driver does not say."""
    with driver(nvml) as opened:
        if not opened or nvml is None:
            return None
        held_bytes: dict[int, int] = {}
        for unit in units(nvml):
            if unit.card is None:
                return None
            processes = query(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, unit.own)
            if processes is None:
                return None
            for process in processes:
                if process.pid not in ours:
                    held_bytes[process.pid] = held_bytes.get(process.pid, 0) + (process.usedGpuMemory or 0)
        return len(held_bytes), sum(held_bytes.values())
