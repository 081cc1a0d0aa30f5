"""AMD's cards, what they are and how they do: through amdsmi where it is, else what the kernel shows of them.

amdsmi raises KeyError and prints where ROCm is missing, so its import is guarded and silenced. No index has
the official one: ROCm keeps it in a folder of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.files import Files, unit_of
from harness.gpu import amdgpu, constant, query

VIOLATIONS = (
    ("acc_ppt_pwr", "power"),
    ("acc_socket_thrm", "thermal"),
    ("acc_vr_thrm", "regulator_thermal"),
    ("acc_hbm_thrm", "memory_thermal"),
    ("acc_prochot_thrm", "prochot"),
)


def library(rocm: str | None = None) -> Any | None:
    """The amdsmi module: this Python's own, else that of ROCm's folder; None where neither has it."""
    folder = os.path.join(rocm or os.environ.get("ROCM_PATH") or "/opt/rocm", "share", "amd_smi")  # noqa: PTH118
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        return _imported() or _imported(folder)


def _imported(*folders: str) -> Any | None:
    """The module as it is found with these folders looked in first."""
    sys.path[:0] = folders
    try:
        return importlib.import_module("amdsmi")
    except Exception:
        # What a failed import leaves would stand in the way of the next.
        for name in [name for name in sys.modules if name.split(".")[0] == "amdsmi"]:
            del sys.modules[name]
        return None
    finally:
        del sys.path[: len(folders)]


def describe(smi: Any | None, files: Files) -> list[dict[str, Any]]:
    """The fields of record.Gpu for every device, and `uuid`, which stays in memory."""
    kernel_cards = [amdgpu.described(files, device) for device in amdgpu.devices(files)]
    by_bus = _library_cards(smi) if smi is not None else {}
    for card in kernel_cards:
        told = _told(by_bus.get(card["bus"], {}))
        if card.get("mig"):
            # The library's memory and name are the whole card's.
            told.pop("memory_bytes", None)
            if "name" in told:
                told["name"] = amdgpu.name_of(told["name"], card["mig"])
        card.update(told)
    unnamed = {"name": "unknown AMD card", "vendor": "AMD"}
    return kernel_cards or [{**unnamed, **by_bus[bus], "index": at} for at, bus in enumerate(sorted(by_bus))]


def _library_cards(smi: Any) -> dict[str, dict[str, Any]]:
    """PCI address → what amdsmi knows better than the kernel's files."""
    refused: dict[str, str] = {}
    query(smi, "amdsmi_init", missing=refused)
    if refused:
        return {}
    try:
        handles = query(smi, "amdsmi_get_processor_handles") or []
        cards = [_library_card(smi, handle) for handle in handles]
        return {card.pop("bus"): card for card in cards if card["bus"]}
    finally:
        query(smi, "amdsmi_shut_down")


def _library_card(smi: Any, handle: Any) -> dict[str, Any]:
    def ask(name: str) -> dict[str, Any]:
        return _told(query(smi, name, handle) or {})

    asic, vram = ask("amdsmi_get_gpu_asic_info"), ask("amdsmi_get_gpu_vram_info")
    cap, bus = ask("amdsmi_get_power_cap_info"), query(smi, "amdsmi_get_gpu_device_bdf", handle)
    megabytes = vram.get("vram_size", vram.get("vram_size_mb"))
    return {
        "bus": bus.lower() if bus else None,
        "name": asic.get("market_name"),
        "architecture": asic.get("target_graphics_version"),
        "memory_bytes": megabytes * 2**20 if megabytes else None,
        "driver": ask("amdsmi_get_gpu_driver_info").get("driver_version"),
        "vbios": ask("amdsmi_get_gpu_vbios_info").get("version"),
        "power_limit_watts": _cap_watts(cap.get("power_cap")),
        "power_limit_default_watts": _cap_watts(cap.get("default_power_cap")),
    }


def _cap_watts(value: int | None) -> float | None:
    """amdsmi gives microwatts; its first versions gave watts."""
    if not value:
        return None
    return value / 1_000_000 if value >= 10_000 else float(value)


def open_cards(marks: list[str], root: str = "/") -> Any:
    """The cards by the library, or by the kernel's files where it does not know them all."""
    smi, kernel = library(), amdgpu.KernelCards(marks, root)
    cards = AmdsmiCards(smi, marks, root) if smi is not None else None
    return cards if cards and len(cards.described) >= max(len(kernel.described), 1) else kernel


class AmdsmiCards:
    """The watched cards through amdsmi; `missing` keeps the first reason of each null."""

    source = "amdsmi"

    def __init__(self, smi: Any, marks: list[str], root: str = "/") -> None:
        self._smi = smi
        self.missing: dict[str, str] = {}
        self.described: list[dict[str, Any]] = []
        self._devices: list[amdgpu.Device] = []
        self._handles: list[Any] = []
        self._counts: list[Any] = []
        self._units: list[int | None] = []
        self._ask("cards", "amdsmi_init")
        self._open = "cards" not in self.missing
        if self._open:
            self._find(marks, root)

    def _find(self, marks: list[str], root: str) -> None:
        # The compute runtime counts by bus number, which is not always this library's order.
        self._files = Files(Path(root))
        handles = self._ask("cards", "amdsmi_get_processor_handles") or []
        by_bus = {
            (self._ask("bus", "amdsmi_get_gpu_device_bdf", handle) or "").lower(): handle
            for handle in handles
        }
        if "" in by_bus:
            # Without it no card can be counted as the compute runtime counts.
            self.missing["cards"] = "amdsmi gives no PCI address"
            return
        unknown = [amdgpu.Device(at, bus, "", None) for at, bus in enumerate(sorted(by_bus))]
        for device in amdgpu.devices(self._files) or unknown:
            if device.bus not in by_bus:
                continue
            handle, index = by_bus[device.bus], device.index
            asic = self._ask(f"{index}.name", "amdsmi_get_gpu_asic_info", handle) or {}
            card = {"index": index, "unit": unit_of(device.uuid), "name": _known(asic.get("market_name"))}
            if amdgpu.chosen(card, device.uuid, marks):
                self.described.append(card)
                self._devices.append(device)
                self._handles.append(handle)
                self._counts.append(None)
                self._units.append(_known(asic.get("num_compute_units")))

    def close(self) -> None:
        """Lets the library go."""
        if self._open:
            self._ask("close", "amdsmi_shut_down")

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Each card's values, from the kernel's files where the library has none; counters are cumulative."""
        return [
            {
                **amdgpu.sampled(self._files, self._devices[at], ours),
                **_told(self._card(at, handle, ours, slow)),
            }
            for at, handle in enumerate(self._handles)
        ]

    def _ask(self, what: str, name: str, *arguments: Any) -> Any:
        return query(self._smi, name, *arguments, missing=self.missing, what=what)

    def _card(self, at: int, handle: Any, ours: Any, slow: bool) -> dict[str, Any]:
        smi, index = self._smi, self.described[at]["index"]

        def ask(what: str, name: str, *arguments: Any) -> Any:
            return self._ask(f"{index}.{what}", name, handle, *arguments)

        busy = ask("utilization", "amdsmi_get_gpu_activity") or {}
        memory = ask("memory", "amdsmi_get_gpu_vram_usage") or {}
        used = _known(memory.get("vram_used"))
        sm, hbm = (
            ask(what, "amdsmi_get_clock_info", constant(smi, "AmdSmiClkType", name)) or {}
            for what, name in (("sm_mhz", "GFX"), ("memory_mhz", "MEM"))
        )
        now = constant(smi, "AmdSmiTemperatureMetric", "CURRENT")
        hot, memory_hot = (
            _known(ask(what, "amdsmi_get_temp_metric", constant(smi, "AmdSmiTemperatureType", name), now))
            for what, name in (("temperature", "HOTSPOT"), ("memory_temperature", "VRAM"))
        )
        values = {
            "sm_mhz": _known(sm.get("clk", sm.get("cur_clk"))),
            "memory_mhz": _known(hbm.get("clk", hbm.get("cur_clk"))),
            "temperature_c": hot,
            "memory_temperature_c": memory_hot,
            "power_watts": _power(ask("power", "amdsmi_get_power_info") or {}),
            "utilization_percent": _known(busy.get("gfx_activity")),
            "memory_utilization_percent": _known(busy.get("umc_activity")),
            "memory_used_bytes": None if used is None else used * 2**20,
            "energy_joules": _energy(ask("energy", "amdsmi_get_energy_count") or {}),
            "limited_seconds": self._limits(at, ask),
            "reasons": _reasons(
                ask("reasons", "amdsmi_get_gpu_metrics_info") or {}, locked=sm.get("clk_locked") is True
            ),
            "others": self._others(at, ask, ours),
        }
        if slow:
            errors = ask("ecc", "amdsmi_get_gpu_total_ecc_count") or {}
            values["ecc_uncorrected"] = _known(errors.get("uncorrectable_count"))
            values["ecc_corrected"] = _known(errors.get("correctable_count"))
        return values

    def _limits(self, at: int, ask: Callable[..., Any]) -> dict[str, Any] | None:
        """Seconds limited since the first sample: the share of the library's own ticks, times the time."""
        status = ask("limited", "amdsmi_get_violation_status") or {}
        counts = {name: _known(status.get(key)) for key, name in (("acc_counter", "ticks"), *VIOLATIONS)}
        counts = {name: count for name, count in counts.items() if count is not None}
        if "ticks" not in counts or len(counts) < 2:
            return None
        began, first = self._counts[at] = self._counts[at] or (time.monotonic(), dict(counts))
        ticks, seconds = counts.pop("ticks") - first["ticks"], time.monotonic() - began
        return {
            name: round((count - first.get(name, count)) / ticks * seconds, 6) if ticks else 0.0
            for name, count in counts.items()
        }

    def _others(self, at: int, ask: Callable[..., Any], ours: Any) -> dict[str, Any] | None:
        if ours.unknown_because:
            return None
        listed = ask("processes", "amdsmi_get_gpu_process_list")
        if listed is None:
            return None
        # Before ROCm 6.2 the list holds handles, and each is asked for.
        running = [
            one
            if isinstance(one, dict)
            else self._ask("processes", "amdsmi_get_gpu_process_info", self._handles[at], one)
            for one in listed
        ]
        if any(process is None or "pid" not in process for process in running):
            return None
        own = ours.among({process["pid"] for process in running})
        foreign = [process for process in running if process["pid"] not in own and _is_here(process)]
        return {
            "processes": len(foreign),
            "memory_bytes": sum(_known(process.get("mem")) or 0 for process in foreign),
            "utilization_percent": _occupied(foreign, self._units[at]),
        }


_UNKNOWN = ("N/A", "", 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF)
"""The library says so in words from ROCm 6.2 on, before that by the largest number of a field."""


def _known(value: Any) -> Any:
    return None if value in _UNKNOWN else value


def _told(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if _known(value) is not None}


def _is_here(process: dict[str, Any]) -> bool:
    """Whether a process has to do with this card: amdsmi lists each under every card (rocm-systems#8396)."""
    held = _known(process.get("mem"))
    return held is None or held > 0 or bool(_known(process.get("cu_occupancy")))


def _power(readings: dict[str, Any]) -> float | None:
    names = ("current_socket_power", "average_socket_power", "socket_power")
    values = [_known(readings.get(name)) for name in names]
    return next((float(value) for value in values if value), None)


def _energy(counter: dict[str, Any]) -> float | None:
    """The accumulator's ticks times their resolution in microjoules."""
    ticks, size = counter.get("energy_accumulator", counter.get("power")), counter.get("counter_resolution")
    return float(ticks * size / 1e6) if ticks and size else None


def _occupied(processes: list[dict[str, Any]], units: int | None) -> float | None:
    """Of the card's compute units, those that the processes occupy at this moment, percent."""
    counts = [_known(process.get("cu_occupancy")) for process in processes]
    if not units or any(count is None for count in counts):
        return None
    return min(100 * sum(map(float, counts)) / units, 100.0)


def _reasons(metrics: dict[str, Any], *, locked: bool) -> list[str] | None:
    states = [_known(metrics.get(name)) for name in ("throttle_status", "indep_throttle_status")]
    if all(state is None for state in states) and not locked:
        return None
    return ["throttle"] * any(states) + ["application_clocks"] * locked
