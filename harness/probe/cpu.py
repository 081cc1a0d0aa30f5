"""The processor as the operating system shows it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Set
from typing import Any

from harness.files import Files
from harness.probe import system

FEATURES = ("avx2", "avx512f", "avx512_bf16", "amx_bf16", "amx_int8", "neon", "sve")
NATIVE_16_BIT = {
    "bf16": (("avx512_bf16",), ("amx_bf16",), ("bf16",), ("svebf16",)),
    "fp16": (("avx512_fp16",), ("amx_fp16",), ("fphp", "asimdhp")),
}
"""By type, the sets of the kernel's flags any of which says that the processor computes in it."""
_KNOWN_BY_FLAGS = ("fpu", "fp")
"""One of these has every x86 or Arm processor whose flags the kernel lists; another maker's are not known."""
_CPU = "/sys/devices/system/cpu"
_NODES = "/sys/devices/system/node"


def describe_cpu(files: Files, cpus: Set[int]) -> dict[str, Any]:
    """Return the fields of record.Cpu; `cpus` are the numbers of the processors that this process may use."""
    blocks = _blocks(files)
    first = blocks[0] if blocks else {}
    flags = set((first.get("flags") or first.get("Features") or "").split())
    threads = len(blocks) or os.cpu_count()
    counts = [float(count) for count in (threads, len(cpus), system.cpu_quota(files)) if count]
    sockets, cores = _topology(files, blocks)
    return {
        "model": " ".join(first.get("model name", "").split()) or _arm_model(files, blocks),
        "sockets": sockets,
        "cores": cores,
        "threads": threads,
        "usable": round(min(counts), 3) if counts else None,
        "governor": _governor(files),
        "turbo": _turbo(files),
        "smt": _smt(files, cores, threads),
        "features": [name for name in FEATURES if name in flags or (name == "neon" and "asimd" in flags)],
        "native_16_bit": _native_16_bit(flags),
        "numa_affinity": numa_affinity(files, cpus),
        "usable_kinds": usable_kinds(files, cpus),
    }


_ARM_PARTS = {
    "0xd03": "Cortex-A53",
    "0xd05": "Cortex-A55",
    "0xd08": "Cortex-A72",
    "0xd0b": "Cortex-A76",
    "0xd0c": "Neoverse-N1",
    "0xd40": "Neoverse-V1",
    "0xd41": "Cortex-A78",
    "0xd42": "Cortex-A78AE",
    "0xd49": "Neoverse-N2",
    "0xd4f": "Neoverse-V2",
    "0xd84": "Neoverse-V3",
    "0xd85": "Cortex-X925",
    "0xd87": "Cortex-A725",
}
"""Arm's own cores by the part's number, as the kernel's cputype.h has them."""


def _arm_model(files: Files, blocks: list[dict[str, str]]) -> str | None:
    """Return the board of the device tree and its kinds of cores, each with its count; null where unknown."""
    ids = Counter((block.get("CPU implementer"), block.get("CPU part")) for block in blocks)
    kinds = [
        f"{count} x {_ARM_PARTS.get(part, part) if maker == '0x41' else f'{maker} {part}'}"
        for (maker, part), count in ids.items()
        if maker and part
    ]
    return ", ".join(filter(None, (files.text("/proc/device-tree/model"), *kinds))) or None


def _blocks(files: Files) -> list[dict[str, str]]:
    blocks = []
    for block in (files.text("/proc/cpuinfo") or "").split("\n\n"):
        pairs = (line.partition(":") for line in block.splitlines())
        fields = {key.strip(): value.strip() for key, mark, value in pairs if mark}
        if "processor" in fields:
            blocks.append(fields)
    return blocks


def _topology(files: Files, blocks: list[dict[str, str]]) -> tuple[int | None, int | None]:
    places = {(block.get("physical id"), block.get("core id")) for block in blocks}
    if not places or any(None in place for place in places):
        numbers = [name for name in files.names(_CPU) if name[:3] == "cpu" and name[3:].isdigit()]
        places = {
            (files.text(f"{_CPU}/{name}/topology/physical_package_id"),
             files.text(f"{_CPU}/{name}/topology/core_id"))
            for name in numbers
        }  # fmt: skip
    places = {place for place in places if None not in place}
    if not places:
        return None, None
    packages = {package for package, _ in places}
    return (None if packages == {"-1"} else len(packages)), len(places)


def _governor(files: Files) -> str | None:
    names = [name for name in files.names(f"{_CPU}/cpufreq") if name.startswith("policy")]
    governors = {files.text(f"{_CPU}/cpufreq/{name}/scaling_governor") for name in names}
    return ",".join(sorted(governor for governor in governors if governor)) or None


def _turbo(files: Files) -> bool | None:
    off = files.number(f"{_CPU}/intel_pstate/no_turbo")
    if off is not None:
        return off == 0
    boost = files.number(f"{_CPU}/cpufreq/boost")
    return None if boost is None else boost == 1


def _smt(files: Files, cores: int | None, threads: int | None) -> bool | None:
    active = files.number(f"{_CPU}/smt/active")
    if active is not None:
        return active == 1
    return threads > cores if cores and threads else None


def _native_16_bit(flags: set[str]) -> list[str] | None:
    """Return the 16-bit types that it computes in by itself; None where the system does not say."""
    if flags.isdisjoint(_KNOWN_BY_FLAGS):
        return None
    return [name for name, ways in NATIVE_16_BIT.items() if any(flags.issuperset(way) for way in ways)]


def numa_affinity(files: Files, cpus: Set[int]) -> list[int] | None:
    """Return the nodes that these CPUs belong to; None where the system does not say."""
    nodes = [int(name[4:]) for name in files.names(_NODES) if re.fullmatch(r"node\d+", name)]
    affine = [node for node in nodes if cpus & _parse_range(files.text(f"{_NODES}/node{node}/cpulist") or "")]
    return sorted(affine) or None


_X86_KINDS = {"cpu_core": "performance", "cpu_atom": "efficiency", "cpu_lowpower": "low-power"}


def usable_kinds(files: Files, cpus: Set[int]) -> dict[str, int]:
    """Return how many of these CPUs are of each kind of core; empty where all are of one kind."""
    listed = {kind: files.text(f"/sys/devices/{name}/cpus") or "" for name, kind in _X86_KINDS.items()}
    kinds = {number: kind for kind, text in listed.items() for number in _parse_range(text)}
    if not kinds:
        parts = ((block["processor"], block.get("CPU part")) for block in _blocks(files))
        kinds = {
            int(number): _ARM_PARTS.get(part, part) for number, part in parts if part and number.isdigit()
        }
    if len(set(kinds.values())) < 2:
        return {}
    return dict(Counter(kinds[number] for number in sorted(kinds) if number in cpus))


def _parse_range(text: str) -> set[int]:
    """Return the numbers of a kernel's list such as "0-3,8"."""
    numbers: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.strip().isdigit():
            numbers |= set(range(int(first), int(last or first) + 1))
    return numbers
