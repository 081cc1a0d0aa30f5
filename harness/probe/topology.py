"""The ways between cards: NVLink as NVML reports it, XGMI by the kernel's files, else PCI Express."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from harness.files import Files
from harness.gpu import amd, query
from harness.gpu.nvml import bus_from, bus_of, driver, units


def links(cards: Sequence[dict[str, Any]], nvml: Any | None, files: Files) -> list[dict[str, Any]]:
    """Return the fields of record.Link for each pair of cards of one maker; slices of one card have none."""
    by_bus = {(card["vendor"], card["bus"]): card["index"] for card in reversed(cards) if card.get("bus")}
    fast = {**_nvlinks(nvml), **_xgmi(files)}
    return [
        {
            "vendor": maker,
            "first": min(first, second),
            "second": max(first, second),
            **(fast.get((near, far)) or {"way": "PCIe"}),
        }
        for ((maker, near), first), ((other, far), second) in combinations(sorted(by_bus.items()), 2)
        if maker == other
    ]


def _nvlinks(nvml: Any | None) -> dict[tuple[str, str], dict[str, Any]]:
    """(PCI address, PCI address) → the NVLinks that are up between two cards, or from both to a switch."""
    with driver(nvml) as refused:
        if refused or nvml is None:
            return {}
        ends = {
            bus_of(nvml, unit.card): list(_ends(nvml, unit.card))
            for unit in units(nvml)
            if unit.card is not None
        }
    ways = {}
    for near, far in combinations(sorted(bus for bus in ends if bus), 2):
        direct = ends[near].count(far)
        switched = min(ends[near].count("switch"), ends[far].count("switch"))
        if direct or switched:
            way, lanes = ("NVLink", direct) if direct else ("NVSwitch", switched)
            ways[near, far] = {"way": way, "lanes": lanes}
    return ways


def _ends(nvml: Any, card: Any) -> Iterator[str | None]:
    """Yield where each of a card's NVLinks that are up ends: a PCI address, or "switch"."""
    for number in range(getattr(nvml, "NVML_NVLINK_MAX_LINKS", None) or 0):
        state = query(nvml, "nvmlDeviceGetNvLinkState", card, number)
        if state is None:
            return
        if state != getattr(nvml, "NVML_FEATURE_ENABLED", None):
            continue
        kind = query(nvml, "nvmlDeviceGetNvLinkRemoteDeviceType", card, number)
        if kind == getattr(nvml, "NVML_NVLINK_DEVICE_TYPE_SWITCH", None):
            yield "switch"
        else:
            yield query(nvml, "nvmlDeviceGetNvLinkRemotePciInfo", card, number, read=bus_from)


_XGMI = "11"


def _xgmi(files: Files) -> dict[tuple[str, str], dict[str, Any]]:
    """(PCI address, PCI address) → the XGMI way that the compute driver lists from one node to another."""
    nodes = {name: bus for name, bus, _ in amd.kfd_nodes(files)}
    ways = {}
    for name in nodes:
        folder = f"{amd.KFD}/{name}/io_links"
        for link in files.names(folder):
            fields = files.fields(f"{folder}/{link}/properties", " ")
            near, far = (nodes.get(fields.get(end, "")) for end in ("node_from", "node_to"))
            if fields.get("type") == _XGMI and near and far and near < far:
                ways[near, far] = {"way": "XGMI"}
    return ways
