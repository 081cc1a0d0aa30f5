"""The kinds of device that trials run on: the one list that plans, records, engines and estimates follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

DeviceKind = Literal["cpu", "cuda", "rocm"]
Vendor = Literal["NVIDIA", "AMD"]


@dataclass(frozen=True)
class DeviceTraits:
    """What holds of every use of a kind of device."""

    vendor: Vendor | None
    """Who makes it, as records name them; null for a processor."""
    setup_seconds: float
    """About how long a trial takes beside its steps."""
    card_seconds: float
    """How long the workload `card` takes before its window."""
    visible: str
    """The variable by which a process sees some of its devices alone."""
    id_prefix: str = ""
    """What the variable has before a device's own id."""


DEVICE_KINDS: Mapping[DeviceKind, DeviceTraits] = {
    "cpu": DeviceTraits(None, 10.0, 8.0, "CUDA_VISIBLE_DEVICES"),
    "cuda": DeviceTraits("NVIDIA", 20.0, 50.0, "CUDA_VISIBLE_DEVICES"),
    "rocm": DeviceTraits("AMD", 40.0, 50.0, "ROCR_VISIBLE_DEVICES", "GPU-"),
}

BY_VENDOR: Mapping[str, DeviceKind] = {row.vendor: kind for kind, row in DEVICE_KINDS.items() if row.vendor}
"""By a card's maker, the kind of device that frameworks take it for."""
