"""AMD's cards as the kernel's driver shows them in /sys."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.files import Files, unit_of

_DRM = "/sys/class/drm"
KFD = "/sys/class/kfd/kfd/topology/nodes"
_VENDOR = "0x1002"
_GENERATIONS = ((2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6))


def kernel_folders(files: Files) -> list[tuple[str, str]]:
    """(PCI address, folder) of each card that the kernel shows.

    In the order in which HIP counts them: that of their addresses, whatever the order of /dev/dri.
    """
    names = [name for name in files.names(_DRM) if name.startswith("card") and name[4:].isdigit()]
    folders = {name: f"{_DRM}/{name}/device" for name in names}
    return sorted(
        (files.fields(f"{folder}/uevent", "=").get("PCI_SLOT_NAME", name).lower(), folder)
        for name, folder in folders.items()
        if files.text(f"{folder}/vendor") == _VENDOR
    )


def described(files: Files) -> list[dict[str, Any]]:
    """The fields of record.Gpu for every card that the kernel shows, with its `bus` and its `uuid`."""
    chips = {bus: _chip(fields) for _, bus, fields in kfd_nodes(files)}
    return [
        {"index": at, "vendor": "AMD", **_card(files, folder), **chips.get(bus, {}), "bus": bus}
        for at, (bus, folder) in enumerate(kernel_folders(files))
    ]


def _chip(fields: dict[str, str]) -> dict[str, Any]:
    simds, per_unit = int(fields.get("simd_count", 0)), int(fields.get("simd_per_cu", 0))
    return {
        "architecture": gfx_name(int(fields["gfx_target_version"])),
        "compute_units": simds // per_unit if simds and per_unit else None,
    }


def _card(files: Files, device: str) -> dict[str, Any]:
    uuid = files.text(f"{device}/unique_id") or None
    name, chip = files.text(f"{device}/product_name"), files.text(f"{device}/device")
    power, node = _sensors(files, device), files.number(f"{device}/numa_node")
    # Cards of one chip may differ in the revision alone.
    revision = files.text(f"{device}/revision")
    return {
        "name": name or f"AMD device {chip or 'unknown'}",
        "uuid": uuid,
        "unit": unit_of(uuid),
        "pci_id": f"{chip[2:]}:{(revision or '')[2:] or '?'}".lower() if chip else None,
        "memory_bytes": files.number(f"{device}/mem_info_vram_total"),
        "driver": files.text("/sys/module/amdgpu/version"),
        "vbios": files.text(f"{device}/vbios_version"),
        "power_limit_watts": _watts(files.number(f"{power}/power1_cap")),
        "power_limit_default_watts": _watts(files.number(f"{power}/power1_cap_default")),
        "clock_max_mhz": _highest(files.text(f"{device}/pp_dpm_sclk")),
        "clock_memory_max_mhz": _highest(files.text(f"{device}/pp_dpm_mclk")),
        "pcie_generation": generation(files.text(f"{device}/current_link_speed")),
        "pcie_width": files.number(f"{device}/current_link_width"),
        "pcie_generation_max": generation(files.text(f"{device}/max_link_speed")),
        "pcie_width_max": files.number(f"{device}/max_link_width"),
        "numa_node": node if node is not None and node >= 0 else None,
    }


def _sensors(files: Files, device: str) -> str:
    return next((f"{device}/hwmon/{name}" for name in files.names(f"{device}/hwmon")), device)


def kfd_nodes(files: Files) -> list[tuple[str, str, dict[str, str]]]:
    """(name, PCI address, properties) of each of the compute driver's nodes that is a card."""
    nodes = []
    for name in files.names(KFD):
        fields = files.fields(f"{KFD}/{name}/properties", " ")
        if int(fields.get("gfx_target_version", 0)):
            domain, place = int(fields.get("domain", 0)), int(fields.get("location_id", 0))
            bus = f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"
            nodes.append((name, bus, fields))
    return nodes


def gfx_name(version: int) -> str:
    """90402 → gfx942, 90010 → gfx90a, 110000 → gfx1100."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def generation(speed: str | float | None) -> int | None:
    """PCI Express generation of a link speed: "16.0 GT/s PCIe", or a number in GT/s or MT/s."""
    try:
        number = float(str(speed).split()[0])
    except (ValueError, IndexError):
        return None
    number = number / 1000 if number >= 1000 else number
    return next((count for most, count in _GENERATIONS if abs(number - most) < 0.1), None)


def _watts(microwatts: int | None) -> float | None:
    return None if microwatts is None else microwatts / 1_000_000


def _highest(table: str | None) -> int | None:
    words = [word for word in (table or "").replace("*", " ").split() if word.lower().endswith("mhz")]
    return max((int(word[:-3]) for word in words if word[:-3].isdigit()), default=None)


def chosen(card: dict[str, Any], uuid: str | None, marks: list[str]) -> bool:
    """Whether a card is among those that `marks` name (index, UUID or unit); all are where none is named."""
    return not marks or bool({str(card["index"]), uuid, card["unit"]} & set(marks))


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
            if chosen(card, uuid, marks):
                self.described.append(card)
                self._folders.append(folder)

    def sample(self, ours: Any, slow: bool) -> list[dict[str, Any]]:
        """Each card's values."""
        return [self._card(folder) for folder in self._folders]

    def close(self) -> None:
        """Nothing is open."""

    def _card(self, folder: str) -> dict[str, Any]:
        number = self._files.number
        sensors = _sensors(self._files, folder)
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
