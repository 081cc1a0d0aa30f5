"""Computers beside each other: every field in which they differ, as the page calls and writes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from harness.record import Machine, differing_fields
from report.text import clean, gibibytes

NAMES = {
    "cpu.model": "processor",
    "cpu.sockets": "processor sockets",
    "cpu.cores": "cores",
    "cpu.threads": "hardware threads",
    "cpu.usable": "CPUs that a process may use",
    "cpu.mhz_max": "highest clock of the processor, MHz",
    "cpu.governor": "CPU governor",
    "cpu.turbo": "turbo",
    "cpu.smt": "simultaneous threads",
    "cpu.features": "instructions",
    "cpu.numa_affinity": "NUMA nodes used",
    "memory_bytes": "host memory",
    "memory_limit_bytes": "limit on host memory",
    "shared_memory_bytes": "shared memory",
    "numa_nodes": "NUMA nodes",
    "numa_balancing": "NUMA balancing",
    "virtual": "virtual machine",
    "gpus": "number of devices",
    "links": "ways between the devices",
}
_TAILS = {
    "pcie_generation": "PCIe generation at rest",
    "pcie_width": "PCIe lanes at rest",
    "pcie_generation_max": "PCIe generation",
    "pcie_width_max": "PCIe lanes",
    "vbios": "VBIOS",
    "bar1_bytes": "BAR1",
    "remapped_rows": "rows of memory replaced",
    "power_limit_max_watts": "highest power limit, W",
    "ecc": "ECC",
    "mig": "MIG",
    "numa_node": "NUMA node",
}


@dataclass(frozen=True, slots=True)
class Differences:
    """A column for each machine, and a row for each field in which they are not alike."""

    machines: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The field's name, then its value of each machine."""


def differences(machines: Sequence[Machine], labels: Sequence[str]) -> Differences | None:
    """Every field in which these machines are not alike; null where none differs.

    Bytes that differ by a page or two read alike, and make no machine faster.
    """
    differing: dict[str, list[Any]] = {}
    for place, other in enumerate(machines[1:], 1):
        for field, mine, theirs in differing_fields(machines[0], other):
            values = differing.setdefault(field, [mine] * len(machines))
            values[place] = theirs
    written = [
        (name_of(field), *(shown(field, each) for each in values)) for field, values in differing.items()
    ]
    rows = tuple(row for row in written if len(set(row[1:])) > 1)
    return Differences(tuple(labels), rows) if rows else None


def name_of(field: str) -> str:
    """A field of the fingerprint as the page calls it."""
    if field.startswith("gpu "):
        _, place, name = field.split(" ", 2)
        return f"device {place}: {_TAILS.get(name, name.replace('_', ' '))}"
    return NAMES.get(field, field.replace("cpu.", "processor ").replace("_", " "))


def shown(field: str, value: Any) -> str:
    """A field's value in its unit; unknown where it is not known."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field.endswith("_bytes") and isinstance(value, int):
        return gibibytes(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, tuple):
        return clean(" ".join(map(str, value)) or "none", 60)
    return clean(value, 60)
