"""The boxes around the cards: what differs between them by name, and what is to be said of each once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from harness.record import Machine, differing_fields
from report import words
from report.frame import Row
from report.view import Table

MOST_DIFFERENCES = 40

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


def first_of(rows: Iterable[Row]) -> dict[str, Machine]:
    """Each machine by its id, as its first record describes it."""
    found: dict[str, Machine] = {}
    for row in rows:
        found.setdefault(row.machine, row.record.machine)
    return found


def apart(machines: Sequence[Machine]) -> Table | None:
    """Every field in which these machines are not alike, a column for each; null where nothing differs."""
    if len(machines) < 2:
        return None
    found: dict[str, list[Any]] = {}
    for place, other in enumerate(machines[1:], 1):
        for field, mine, theirs in differing_fields(machines[0], other):
            values = found.setdefault(field, [mine] * len(machines))
            values[place] = theirs
    if not found:
        return None
    rows = tuple(
        (name_of(field), *(shown(field, value) for value in values))
        for field, values in list(found.items())[:MOST_DIFFERENCES]
    )
    caption = "What differs between the machines: any of it may be what makes one faster."
    if len(found) > MOST_DIFFERENCES:
        caption += f" {len(found) - MOST_DIFFERENCES} more fields are not listed."
    labels = tuple(words.clean(machine.label, 40) for machine in machines)
    return Table(caption, ("Differs in", *labels), rows)


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
        return words.gibibytes(value)
    if isinstance(value, tuple):
        return words.clean(" ".join(map(str, value)) or "none", 60)
    return words.clean(value, 60)
