"""AMD's cards, what they are and how they do, as the kernel's driver amdgpu shows them in /sys.

These files need no library and are in every container. What they lack is null with its reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.files import Files, unit_hash

_DRM = "/sys/class/drm"
KFD = "/sys/class/kfd/kfd/topology/nodes"
_PROCESSES = "/sys/class/kfd/kfd/proc"
_VENDOR = "0x1002"
METRICS_FORMAT, FIRST_OF_PROCESSORS = 2, 2
"""The place of the format's number in a card's metrics, and the first format that processors have."""
_GENERATIONS = {"2.5": 1, "5": 2, "8": 3, "16": 4, "32": 5, "64": 6}


def kernel_folders(files: Files) -> list[tuple[str, str]]:
    """Return (PCI address, folder) of each card that the kernel shows.

    In the order in which HIP counts them: that of their addresses, whatever the order of /dev/dri.
    """
    names = [name for name in files.names(_DRM) if name.startswith("card") and name[4:].isdigit()]
    folders = {name: f"{_DRM}/{name}/device" for name in names}
    return sorted(
        (files.fields(f"{folder}/uevent", "=").get("PCI_SLOT_NAME", name).lower(), folder)
        for name, folder in folders.items()
        if files.text(f"{folder}/vendor") == _VENDOR
    )


@dataclass(frozen=True)
class AmdDevice:
    """One card, in the order in which HIP counts them."""

    index: int
    bus: str
    folder: str
    uuid: str | None
    node: str | None = None
    """Its name in the compute driver's list."""
    chip: dict[str, int] = field(default_factory=dict)
    """What that driver says of it."""


def find_devices(files: Files) -> list[AmdDevice]:
    """Return every card in HIP's order, with the compute driver's first node of it.

    The kernel shows a container all cards; only the cards of its compute runtime are devices.
    """
    nodes, devices = compute_nodes(files), []
    cards = [(bus, folder) for bus, folder in kernel_folders(files) if bus in nodes or not nodes]
    for index, (bus, folder) in enumerate(cards):
        uuid = files.text(f"{folder}/unique_id") or None
        devices.append(AmdDevice(index, bus, folder, uuid, *nodes.get(bus, ())))
    return devices


def division(files: Files, folder: str) -> str | None:
    """Return how a card is divided, as "CPX NPS4", in which it is several devices; None of a whole one."""
    modes = (files.text(f"{folder}/current_{what}_partition") for what in ("compute", "memory"))
    form = " ".join(mode for mode in modes if mode and mode != "UNKNOWN")
    return None if not form or form.startswith("SPX") else form


def describe(files: Files) -> list[dict[str, Any]]:
    """Return the fields of record.Gpu for every card, and its `uuid`, which stays in memory."""
    return [_describe_device(files, device) for device in find_devices(files)]


def _describe_device(files: Files, card: AmdDevice) -> dict[str, Any]:
    device, version = card.folder, card.chip.get("gfx_target_version")
    simds, per_unit = card.chip.get("simd_count", 0), card.chip.get("simd_per_cu", 0)
    name, chip = files.text(f"{device}/product_name"), files.text(f"{device}/device")
    power, node = _sensors(files, device), files.number(f"{device}/numa_node")
    # Cards of one chip may differ in the revision alone.
    revision = files.text(f"{device}/revision")
    return {
        "index": card.index,
        "vendor": "AMD",
        "bus": card.bus,
        "name": name or f"AMD device {chip or 'unknown'}",
        "uuid": card.uuid,
        "unit": unit_hash(card.uuid),
        "architecture": gfx_name(version) if version else None,
        "compute_units": simds // per_unit if simds and per_unit else None,
        "pci_id": f"{chip[2:]}:{(revision or '')[2:] or '?'}".lower() if chip else None,
        "memory_bytes": _memory(files, device, "total"),
        "driver": files.text("/sys/module/amdgpu/version"),
        "vbios": files.text(f"{device}/vbios_version"),
        "power_limit_watts": _divide(files.number(f"{power}/power1_cap"), 1e6),
        "power_limit_default_watts": _divide(files.number(f"{power}/power1_cap_default"), 1e6),
        "mig": division(files, device),
        "clocks_locked": held_clocks(files, device),
        "clock_max_mhz": _highest_mhz(files.text(f"{device}/pp_dpm_sclk")),
        "clock_memory_max_mhz": _highest_mhz(files.text(f"{device}/pp_dpm_mclk")),
        "pcie_generation": pcie_generation(files.text(f"{device}/current_link_speed")),
        "pcie_width": files.number(f"{device}/current_link_width"),
        "pcie_generation_max": pcie_generation(files.text(f"{device}/max_link_speed")),
        "pcie_width_max": files.number(f"{device}/max_link_width"),
        "numa_node": node if node is not None and node >= 0 else None,
    }


def shares_host_memory(files: Files, folder: str) -> bool:
    """Return whether a card is a part of the processor, by the format of its metrics (kgd_pp_interface.h)."""
    header = files.content(f"{folder}/gpu_metrics") or b""
    return len(header) > METRICS_FORMAT and header[METRICS_FORMAT] >= FIRST_OF_PROCESSORS


def _memory(files: Files, folder: str, what: str) -> int | None:
    """Return bytes of its own memory, and where it shares the host's, of what it may take of that."""
    own = files.number(f"{folder}/mem_info_vram_{what}")
    shared = files.number(f"{folder}/mem_info_gtt_{what}") if shares_host_memory(files, folder) else None
    return own + shared if own is not None and shared is not None else own


def _sensors(files: Files, device: str) -> str:
    return next((f"{device}/hwmon/{name}" for name in files.names(f"{device}/hwmon")), device)


def compute_nodes(files: Files) -> dict[str, tuple[str, dict[str, int]]]:
    """Return PCI address → name and properties of the compute driver's first node of each card here."""
    nodes: dict[str, tuple[str, dict[str, int]]] = {}
    for name in sorted(filter(str.isdecimal, files.names(KFD)), key=int):
        fields = files.counts(f"{KFD}/{name}/properties", " ")
        minor = fields.get("drm_render_minor")
        here = minor is None or files.exists(f"/dev/dri/renderD{minor}")
        if fields.get("gfx_target_version") and here:
            domain, place = fields.get("domain", 0), fields.get("location_id", 0)
            bus = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
            nodes.setdefault(bus, (name, fields))
    return nodes


def gfx_name(version: int) -> str:
    """Return the name of a version number: 90402 is gfx942, 90010 gfx90a, 110000 gfx1100."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def pcie_generation(speed: str | None) -> int | None:
    """Return PCI Express generation of a link speed, as "16.0 GT/s PCIe"; older kernels say "16 GT/s"."""
    return _GENERATIONS.get((speed or "").partition(" ")[0].removesuffix(".0"))


def _highest_mhz(table: str | None) -> int | None:
    words = [word for word in (table or "").replace("*", " ").split() if word.lower().endswith("mhz")]
    return max((int(word[:-3]) for word in words if word[:-3].isdigit()), default=None)


def held_clocks(files: Files, folder: str) -> bool | None:
    """Return whether a user's performance level holds the clocks; at "auto" the driver chooses them."""
    level = files.text(f"{folder}/power_dpm_force_performance_level")
    return None if not level or level == "unknown" else level != "auto"


def held_bytes(files: Files) -> dict[int, dict[str, int]] | None:
    """Return process → number of a device → bytes that it holds of it; None without the compute driver."""
    if not files.exists(_PROCESSES):
        return None
    return {
        int(pid): {
            name[len("vram_") :]: files.number(f"{_PROCESSES}/{pid}/{name}") or 0
            for name in files.names(f"{_PROCESSES}/{pid}")
            if name.startswith("vram_")
        }
        for pid in files.names(_PROCESSES)
        if pid.isdigit()
    }


def _divide(value: int | None, divisor: float) -> float | None:
    return None if value is None else value / divisor


MISSING = {
    "energy": "the kernel's files have no energy counter",
    "limited": "the kernel's files do not say for how long a card was held back",
    "process_utilization": "the kernel's files do not say how busy a process keeps a card",
}


class AmdCards:
    """The watched devices: the ones that `marks` name by index, UUID or unit; all without marks."""

    source = "sysfs"

    def __init__(self, marks: list[str], root: str = "/") -> None:
        self.missing = dict(MISSING)
        self.described: list[dict[str, Any]] = []
        self._files = Files(Path(root))
        self._devices: list[AmdDevice] = []
        for device in find_devices(self._files):
            unit, name = unit_hash(device.uuid), self._files.text(f"{device.folder}/product_name")
            if not marks or {str(device.index), device.uuid, unit} & set(marks):
                self.described.append({"index": device.index, "unit": unit, "name": name})
                self._devices.append(device)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Return each device's values."""
        return [
            self._sampled(device, ours) | (self._ecc_errors(device) if slow else {})
            for device in self._devices
        ]

    def close(self) -> None:
        """Do nothing: nothing is open."""

    def _sampled(self, device: AmdDevice, ours: Any) -> dict[str, Any]:
        files, folder = self._files, device.folder
        number, sensors = files.number, _sensors(files, folder)
        labels = {files.text(f"{sensors}/temp{at}_label"): f"{sensors}/temp{at}_input" for at in range(1, 4)}
        hottest = labels.get("junction") or labels.get("edge") or f"{sensors}/temp1_input"
        power = number(f"{sensors}/power1_average")
        return {
            "sm_mhz": _divide(number(f"{sensors}/freq1_input"), 1e6),
            "memory_mhz": _divide(number(f"{sensors}/freq2_input"), 1e6),
            "temperature_c": _divide(number(hottest), 1000),
            "memory_temperature_c": _divide(number(labels.get("mem", "")), 1000),
            "power_watts": _divide(number(f"{sensors}/power1_input") if power is None else power, 1e6),
            "power_limit_watts": _divide(number(f"{sensors}/power1_cap"), 1e6),
            "utilization_percent": number(f"{folder}/gpu_busy_percent"),
            "memory_used_bytes": _memory(files, folder, "used"),
            "reasons": ["application_clocks"] if held_clocks(files, folder) else None,
            "mig": division(files, folder) is not None or None,
            "others": self._others(device, ours),
        }

    def _ecc_errors(self, device: AmdDevice) -> dict[str, Any]:
        folder = f"{device.folder}/ras"
        blocks = [
            self._files.counts(f"{folder}/{name}", ":")
            for name in self._files.names(folder)
            if name.endswith("_err_count")
        ]
        if not blocks:
            self.missing.setdefault(f"{device.index}.ecc", "the kernel's files count no memory errors")
            return {}
        counts = (("ecc_uncorrected", "ue"), ("ecc_corrected", "ce"))
        return {name: sum(block.get(key, 0) for block in blocks) for name, key in counts}

    def _others(self, device: AmdDevice, ours: Any) -> dict[str, Any] | None:
        held = held_bytes(self._files)
        number = self._files.text(f"{KFD}/{device.node}/gpu_id")
        if ours.unknown_because or held is None or number is None:
            self.missing.setdefault(
                f"{device.index}.processes", ours.unknown_because or "the compute driver lists no processes"
            )
            return None
        here = {pid: of[number] for pid, of in held.items() if of.get(number)}
        foreign = set(here) - ours.among(set(here))
        return {"processes": len(foreign), "memory_bytes": sum(here[pid] for pid in foreign)}
