"""AMD's part of the telemetry: through amdsmi where ROCm's library is there, else the kernel's files."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.probe.amd import kernel_folders, library
from harness.probe.files import Files, unit_of

VIOLATIONS = (
    ("acc_ppt_pwr", "power"),
    ("acc_socket_thrm", "thermal"),
    ("acc_vr_thrm", "regulator_thermal"),
    ("acc_hbm_thrm", "memory_thermal"),
    ("acc_prochot_thrm", "prochot"),
)


def open_cards(marks: list[str], root: str = "/") -> Any:
    """The cards by the library, or by the kernel's files where it does not answer."""
    smi = library()
    cards = AmdsmiCards(smi, marks, root) if smi is not None else None
    return cards if cards is not None and cards.described else KernelCards(marks, root)


def _chosen(described: dict[str, Any], uuid: str | None, marks: list[str]) -> bool:
    return not marks or bool({str(described["index"]), uuid, described["unit"]} & set(marks))


class KernelCards:
    """What amdgpu shows in /sys: no energy counter, no time limited, no processes."""

    source = "sysfs"

    def __init__(self, marks: list[str], root: str) -> None:
        self.missing: dict[str, str] = {
            "energy": "amdsmi does not answer",
            "limited": "amdsmi does not answer",
        }
        self.described: list[dict[str, Any]] = []
        self._files = Files(Path(root))
        self._folders: list[str] = []
        for index, (_, folder) in enumerate(kernel_folders(self._files)):
            uuid = self._files.text(f"{folder}/unique_id") or None
            name = self._files.text(f"{folder}/product_name")
            card = {"index": index, "unit": unit_of(uuid), "name": name}
            if _chosen(card, uuid, marks):
                self.described.append(card)
                self._folders.append(folder)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Each card's values."""
        return [self._card(folder) for folder in self._folders]

    def close(self) -> None:
        """Nothing is open."""

    def _card(self, folder: str) -> dict[str, Any]:
        number = self._files.number
        sensors = next((f"{folder}/hwmon/{name}" for name in self._files.names(f"{folder}/hwmon")), folder)
        power = number(f"{sensors}/power1_average")
        power = number(f"{sensors}/power1_input") if power is None else power
        heat, clock = number(f"{sensors}/temp1_input"), number(f"{sensors}/freq1_input")
        memory_clock = number(f"{sensors}/freq2_input")
        return {
            "sm_mhz": None if clock is None else clock / 1e6,
            "memory_mhz": None if memory_clock is None else memory_clock / 1e6,
            "temperature_c": None if heat is None else heat / 1000,
            "power_watts": None if power is None else power / 1e6,
            "utilization_percent": number(f"{folder}/gpu_busy_percent"),
            "memory_utilization_percent": number(f"{folder}/mem_busy_percent"),
            "memory_used_bytes": number(f"{folder}/mem_info_vram_used"),
        }


class AmdsmiCards:
    """The watched cards through amdsmi; `missing` keeps the first reason of each null."""

    source = "amdsmi"

    def __init__(self, smi: Any, marks: list[str], root: str = "/") -> None:
        self._smi = smi
        self.missing: dict[str, str] = {}
        self.described: list[dict[str, Any]] = []
        self._handles: list[Any] = []
        self._counts: list[Any] = []
        self._units: list[int | None] = []
        self._open = self._ask("cards", smi.amdsmi_init, none="opened") is not None
        if self._open:
            self._find(marks, root)

    def _find(self, marks: list[str], root: str) -> None:
        # The compute runtime counts by bus number, which is not always this library's order.
        files = Files(Path(root))
        uuids = {bus: files.text(f"{folder}/unique_id") for bus, folder in kernel_folders(files)}
        handles = self._ask("cards", self._smi.amdsmi_get_processor_handles) or []
        placed = [
            ((self._ask("bus", self._smi.amdsmi_get_gpu_device_bdf, handle) or "").lower(), handle)
            for handle in handles
        ]
        if not all(bus for bus, _ in placed):
            # Without it no card can be counted as the compute runtime counts.
            self.missing["cards"] = "amdsmi gives no PCI address"
            return
        for index, (bus, handle) in enumerate(sorted(placed, key=lambda pair: pair[0])):
            asic = self._ask(f"{index}.name", self._smi.amdsmi_get_gpu_asic_info, handle) or {}
            card = {"index": index, "unit": unit_of(uuids.get(bus)), "name": _known(asic.get("market_name"))}
            if _chosen(card, uuids.get(bus), marks):
                self.described.append(card)
                self._handles.append(handle)
                self._counts.append(None)
                self._units.append(_known(asic.get("num_compute_units")))

    def close(self) -> None:
        """Lets the library go."""
        if self._open:
            self._ask("close", self._smi.amdsmi_shut_down)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Each card's values; counters are cumulative."""
        return [self._card(at, handle, ours, slow) for at, handle in enumerate(self._handles)]

    def _ask(self, what: str, question: Callable[..., Any], *arguments: Any, none: Any = None) -> Any:
        try:
            answer = question(*arguments)
        except Exception as error:
            self.missing.setdefault(what, type(error).__name__)
            return None
        return none if answer is None else answer

    def _card(self, at: int, handle: Any, ours: Any, slow: bool) -> dict[str, Any]:
        smi, index = self._smi, self.described[at]["index"]

        def ask(what: str, question: Callable[..., Any], *arguments: Any) -> Any:
            return self._ask(f"{index}.{what}", question, handle, *arguments)

        busy = ask("utilization", smi.amdsmi_get_gpu_activity) or {}
        memory = ask("memory", smi.amdsmi_get_gpu_vram_usage) or {}
        used = _known(memory.get("vram_used"))
        clock, heat = smi.AmdSmiClkType, smi.AmdSmiTemperatureType
        sm = ask("sm_mhz", smi.amdsmi_get_clock_info, clock.GFX) or {}
        hbm = ask("memory_mhz", smi.amdsmi_get_clock_info, clock.MEM) or {}
        now = smi.AmdSmiTemperatureMetric.CURRENT
        values = {
            "sm_mhz": _known(sm.get("clk")),
            "memory_mhz": _known(hbm.get("clk")),
            "temperature_c": ask("temperature", smi.amdsmi_get_temp_metric, heat.HOTSPOT, now),
            "memory_temperature_c": _known(
                ask("memory_temperature", smi.amdsmi_get_temp_metric, heat.VRAM, now)
            ),
            "power_watts": _power(ask("power", smi.amdsmi_get_power_info) or {}),
            "utilization_percent": _known(busy.get("gfx_activity")),
            "memory_utilization_percent": _known(busy.get("umc_activity")),
            "memory_used_bytes": None if used is None else used * 2**20,
            "energy_joules": _energy(ask("energy", smi.amdsmi_get_energy_count) or {}),
            "limited_seconds": self._limits(at, ask),
            "reasons": _reasons(
                ask("reasons", smi.amdsmi_get_gpu_metrics_info) or {}, locked=sm.get("clk_locked") is True
            ),
            "others": self._others(at, ask, ours),
        }
        if slow:
            errors = ask("ecc", smi.amdsmi_get_gpu_total_ecc_count) or {}
            values["ecc_uncorrected"] = _known(errors.get("uncorrectable_count"))
            values["ecc_corrected"] = _known(errors.get("correctable_count"))
        return values

    def _limits(self, at: int, ask: Callable[..., Any]) -> dict[str, Any] | None:
        """Seconds limited since the first sample: the share of the library's own ticks, times the time."""
        status = ask("limited", self._smi.amdsmi_get_violation_status) or {}
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
        running = ask("processes", self._smi.amdsmi_get_gpu_process_list)
        if running is None:
            return None
        own = ours.among({process["pid"] for process in running})
        foreign = [process for process in running if process["pid"] not in own and _is_here(process)]
        return {
            "processes": len(foreign),
            "memory_bytes": sum(_known(process.get("mem")) or 0 for process in foreign),
            "utilization_percent": _occupied(foreign, self._units[at]),
        }


def _known(value: Any) -> Any:
    return None if value in ("N/A", "", None) else value


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
