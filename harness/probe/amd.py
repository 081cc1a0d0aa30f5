"""AMD's cards: through amdsmi where its library is there, else what the kernel shows of them.

amdsmi raises KeyError and prints where ROCm is missing, so its import is guarded and silenced. No index has
the official one: ROCm keeps it in a folder of its own.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import sys
from collections.abc import Callable
from typing import Any

from harness.probe.files import Files, unit_of

_DRM = "/sys/class/drm"
KFD = "/sys/class/kfd/kfd/topology/nodes"
_VENDOR = "0x1002"
_GENERATIONS = ((2.5, 1), (5.0, 2), (8.0, 3), (16.0, 4), (32.0, 5), (64.0, 6))


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


def cards(smi: Any | None, files: Files) -> list[dict[str, Any]]:
    """The fields of record.Gpu for every card, and `uuid`, which stays in memory."""
    kernel_cards = _kernel_cards(files)
    by_bus = _library_cards(smi) if smi is not None else {}
    for card in kernel_cards:
        card.update({key: value for key, value in by_bus.get(card["bus"], {}).items() if value is not None})
    return kernel_cards or [_with_index(by_bus[bus], at) for at, bus in enumerate(sorted(by_bus))]


def _with_index(card: dict[str, Any], index: int) -> dict[str, Any]:
    return {"name": "unknown AMD card", **card, "index": index, "vendor": "AMD"}


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


def _kernel_cards(files: Files) -> list[dict[str, Any]]:
    chips = _chips(files)
    return [
        _with_index({**_kernel_card(files, folder), **chips.get(bus, {}), "bus": bus}, at)
        for at, (bus, folder) in enumerate(kernel_folders(files))
    ]


def _kernel_card(files: Files, device: str) -> dict[str, Any]:
    uuid = files.text(f"{device}/unique_id") or None
    power = next((f"{device}/hwmon/{name}" for name in files.names(f"{device}/hwmon")), device)
    return {
        "name": files.text(f"{device}/product_name") or _device_name(files, device),
        "uuid": uuid,
        "unit": unit_of(uuid),
        "pci_id": _pci_id(files, device),
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
        "numa_node": _not_negative(files.number(f"{device}/numa_node")),
    }


def _device_name(files: Files, device: str) -> str:
    return f"AMD device {files.text(f'{device}/device') or 'unknown'}"


def _pci_id(files: Files, device: str) -> str | None:
    """The chip and its revision as "744c:c8": cards of one chip may differ in the revision alone."""
    chip, revision = files.text(f"{device}/device"), files.text(f"{device}/revision")
    return f"{chip[2:]}:{(revision or '')[2:] or '?'}".lower() if chip else None


def _chips(files: Files) -> dict[str, dict[str, Any]]:
    """PCI address → gfx name and compute units."""
    return {
        bus: {"architecture": gfx_name(int(fields["gfx_target_version"])), "compute_units": _units(fields)}
        for _, bus, fields in kfd_nodes(files)
    }


def kfd_nodes(files: Files) -> list[tuple[str, str, dict[str, str]]]:
    """(name, PCI address, properties) of each of the compute driver's nodes that is a card."""
    nodes = []
    for name in files.names(KFD):
        fields = files.fields(f"{KFD}/{name}/properties", " ")
        if int(fields.get("gfx_target_version", 0)):
            bus = _bus(int(fields.get("domain", 0)), int(fields.get("location_id", 0)))
            nodes.append((name, bus, fields))
    return nodes


def _bus(domain: int, place: int) -> str:
    return f"{domain:04x}:{place >> 8 & 0xFF:02x}:{place >> 3 & 0x1F:02x}.{place & 7}"


def _units(fields: dict[str, str]) -> int | None:
    simds, per_unit = int(fields.get("simd_count", 0)), int(fields.get("simd_per_cu", 0))
    return simds // per_unit if simds and per_unit else None


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


def _not_negative(value: int | None) -> int | None:
    return value if value is not None and value >= 0 else None


def _library_cards(smi: Any) -> dict[str, dict[str, Any]]:
    """PCI address → what amdsmi knows better than the kernel's files."""
    try:
        smi.amdsmi_init()
    except smi.AmdSmiException:
        return {}
    try:
        handles = _query(smi, smi.amdsmi_get_processor_handles) or []
        cards = [_library_card(smi, handle) for handle in handles]
        return {card.pop("bus"): card for card in cards if card["bus"]}
    finally:
        _query(smi, smi.amdsmi_shut_down)


def _query(smi: Any, question: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return question(*arguments)
    except smi.AmdSmiException:
        return None


def _library_card(smi: Any, handle: Any) -> dict[str, Any]:
    def ask(question: Callable[..., Any]) -> dict[str, Any]:
        return {key: value for key, value in (_query(smi, question, handle) or {}).items() if value != "N/A"}

    asic, vram, cap = (
        ask(smi.amdsmi_get_gpu_asic_info),
        ask(smi.amdsmi_get_gpu_vram_info),
        ask(smi.amdsmi_get_power_cap_info),
    )
    bus = _query(smi, smi.amdsmi_get_gpu_device_bdf, handle)
    megabytes = vram.get("vram_size")
    return {
        "bus": bus.lower() if bus else None,
        "name": asic.get("market_name"),
        "architecture": asic.get("target_graphics_version"),
        "memory_bytes": megabytes * 2**20 if megabytes else None,
        "driver": ask(smi.amdsmi_get_gpu_driver_info).get("driver_version"),
        "vbios": ask(smi.amdsmi_get_gpu_vbios_info).get("version"),
        "power_limit_watts": _cap_watts(cap.get("power_cap")),
        "power_limit_default_watts": _cap_watts(cap.get("default_power_cap")),
    }


def _cap_watts(value: int | None) -> float | None:
    """amdsmi gives microwatts; its first versions gave watts."""
    if not value:
        return None
    return value / 1_000_000 if value >= 10_000 else float(value)
