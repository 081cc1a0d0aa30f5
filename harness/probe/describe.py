"""The whole fingerprint in one call."""

from __future__ import annotations

from typing import Any

from harness.files import Files
from harness.gpu import amd, nvidia, nvml
from harness.probe import cpu, topology
from harness.probe.silent import silent
from harness.probe.system import system


def everything(files: Files | None = None) -> dict[str, Any]:
    """The fields of record.Machine but for id and label; each card has a raw `uuid` beside its fields."""
    files = files or Files()
    driver, cpus = nvml.library(), cpu.allowed()
    cards = nvidia.describe(driver, files) + amd.describe(amd.library(), files)
    return {
        **system(files),
        "cpu": {
            **cpu.cpu(files, None if cpus is None else len(cpus)),
            "numa_affinity": cpu.numa_affinity(files, cpus),
        },
        "gpus": cards,
        "silent_cards": list(silent(files, {card["bus"] for card in cards}, driver)),
        "links": topology.links(cards, driver, files),
    }
