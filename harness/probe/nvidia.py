"""NVIDIA's cards through nvidia-ml-py (module pynvml). No driver, no cards: cleanly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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


def cards(nvml: Any | None, files: Files) -> list[dict[str, Any]]:
    """The fields of record.Gpu for every card, and `uuid`, which stays in memory."""
    with driver(nvml) as opened:
        if not opened or nvml is None:
            return []
        count = query(nvml, nvml.nvmlDeviceGetCount) or 0
        handles = [(index, query(nvml, nvml.nvmlDeviceGetHandleByIndex, index)) for index in range(count)]
        return [_card(nvml, files, index, handle) for index, handle in handles if handle is not None]


def _card(nvml: Any, files: Files, index: int, handle: Any) -> dict[str, Any]:
    def ask(name: str, *arguments: Any) -> Any:
        question = getattr(nvml, name, None)
        return None if question is None else query(nvml, question, handle, *arguments)

    memory, ecc, uuid = ask("nvmlDeviceGetMemoryInfo"), ask("nvmlDeviceGetEccMode"), ask("nvmlDeviceGetUUID")
    bar1 = ask("nvmlDeviceGetBAR1MemoryInfo")
    return {
        "index": index,
        "vendor": "NVIDIA",
        "name": ask("nvmlDeviceGetName") or "unknown NVIDIA card",
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
        "mig": _mig(nvml, ask),
        "persistence": _switch(nvml, ask("nvmlDeviceGetPersistenceMode")),
        "display_attached": _switch(nvml, ask("nvmlDeviceGetDisplayActive")),
        "pcie_generation": ask("nvmlDeviceGetCurrPcieLinkGeneration"),
        "pcie_width": ask("nvmlDeviceGetCurrPcieLinkWidth"),
        "pcie_generation_max": ask("nvmlDeviceGetMaxPcieLinkGeneration"),
        "pcie_width_max": ask("nvmlDeviceGetMaxPcieLinkWidth"),
        "numa_node": _numa_node(files, ask),
    }


def _numa_node(files: Files, ask: Callable[..., Any]) -> int | None:
    place = ask("nvmlDeviceGetPciInfo")
    if place is None:
        return None
    bus = place.busId.decode() if isinstance(place.busId, bytes) else place.busId
    node = files.number(f"/sys/bus/pci/devices/{bus[-12:].lower()}/numa_node")
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


def _mig(nvml: Any, ask: Callable[..., Any]) -> str | None:
    """ "off", or "on" with the slices' profiles; None where the card has no such mode."""
    mode = ask("nvmlDeviceGetMigMode")
    if mode is None:
        return None
    if mode[0] != nvml.NVML_DEVICE_MIG_ENABLE:
        return "off"
    names = []
    for at in range(ask("nvmlDeviceGetMaxMigDeviceCount") or 0):
        part = ask("nvmlDeviceGetMigDeviceHandleByIndex", at)
        name = None if part is None else query(nvml, nvml.nvmlDeviceGetName, part)
        if name:
            names.append(name.rsplit("MIG ", 1)[-1])
    return " ".join(["on", *names])


def foreign(nvml: Any | None, ours: frozenset[int]) -> tuple[int, int] | None:
    """(processes, bytes) on all cards that are not `ours`; None where the driver does not say."""
    with driver(nvml) as opened:
        if not opened or nvml is None:
            return None
        held_bytes: dict[int, int] = {}
        for index in range(query(nvml, nvml.nvmlDeviceGetCount) or 0):
            handle = query(nvml, nvml.nvmlDeviceGetHandleByIndex, index)
            if handle is None:
                return None
            processes = query(nvml, nvml.nvmlDeviceGetComputeRunningProcesses, handle)
            if processes is None:
                return None
            for process in processes:
                if process.pid not in ours:
                    held_bytes[process.pid] = held_bytes.get(process.pid, 0) + (process.usedGpuMemory or 0)
        return len(held_bytes), sum(held_bytes.values())
