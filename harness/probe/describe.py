"""The whole fingerprint in one call, with cards that the bus shows and no driver describes: silent ones."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from typing import Any

from harness.files import Files
from harness.gpu import MAKERS, amd, nvml
from harness.probe import cpu
from harness.probe.system import describe_system, is_container

_PCI = "/sys/bus/pci/devices"
_MAKERS = {"0x10de": ("NVIDIA", "nvidia"), "0x1002": ("AMD", "amdgpu")}
"""By the vendor's number: the maker, and the module of its driver."""
_CLASSES = ("0x03", "0x1200")
"""Displays and accelerators."""
_GIVEN_AWAY = ("vfio-pci", "pci-stub", "xen-pciback")
"""Modules that hold a card for a virtual machine."""
_OF_WINDOWS = "/dev/dxg"
"""What WSL2 has in place of each card of Windows, which the bus does not show."""
_UNLISTED = "its driver does not list it"
_REASONS = {
    "NVMLError_LibRmVersionMismatch": "its driver's module and library are of different versions",
    "NVMLError_LibraryNotFound": "its driver's library is not here",
    "nvidia-ml-py is not installed": "no nvidia-ml-py",
    "NVMLError_DriverNotLoaded": "its driver is not loaded",
}


def describe_machine(files: Files | None = None) -> dict[str, Any]:
    """Return the fields of record.Machine without id and label; each card has a raw `uuid` too."""
    files = files or Files()
    cards = [card for maker in MAKERS.values() for card in maker.describe(files)]
    return {
        **describe_system(files),
        "cpu": cpu.describe_cpu(files, os.sched_getaffinity(0)),
        "gpus": cards,
        "silent_cards": list(silent_cards(files, {card["bus"] for card in cards}, nvml.load_library())),
    }


def silent_cards(files: Files, described: Collection[str], library: Any | None) -> Iterator[str]:
    """Yield each card of a known maker whose PCI address is not `described`, with the reason.

    Where a container or a job was given some cards, the others are not its own.
    """
    if not described and files.exists(_OF_WINDOWS):
        yield f"the card behind {_OF_WINDOWS}: {_silence_reason('nvidia', 'nvidia', library)}"
    if not described and "nvidia,tegra" in (files.text("/proc/device-tree/compatible") or ""):
        yield f"the GPU of this {files.text('/proc/device-tree/model') or 'board'}: it has no NVML"
    described = {*described, *(bus for bus, _ in amd.kernel_folders(files))}
    given = bool(described) and ("SLURM_JOB_ID" in os.environ or is_container(files))
    for bus in files.names(_PCI):
        folder = f"{_PCI}/{bus}"
        vendor = files.text(f"{folder}/vendor") or ""
        bound = (files.real(f"{folder}/driver") or "").rpartition("/")[2]
        if (
            vendor in _MAKERS
            and (files.text(f"{folder}/class") or "").startswith(_CLASSES)
            and bus.lower() not in described
            and bound not in _GIVEN_AWAY
            and not files.exists(f"{folder}/physfn")
        ):
            maker, module = _MAKERS[vendor]
            chip = f"{vendor}:{files.text(f'{folder}/device') or '?'}".replace("0x", "")
            reason = _silence_reason(bound, module, library)
            if not (given and reason == _UNLISTED):
                yield f"{maker} card {chip}: {reason}"


def _silence_reason(bound: str, module: str, library: Any | None) -> str:
    if bound and bound != module:
        return f"the module '{bound}' holds it, and not '{module}'"
    if module == "nvidia":
        with nvml.driver_session(library) as refused:
            if refused is not None:
                return _REASONS.get(refused, f"its driver answers {refused}")
    return _UNLISTED if bound else f"no module '{module}' holds it"
