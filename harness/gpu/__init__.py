"""What drivers report about cards, one module a vendor: `describe` once, `sample` each second.

Probe and sampler run where our packages are not: they need the standard library and NVIDIA's binding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from harness.device_kinds import DeviceKind
from harness.files import Files
from harness.gpu import amd, nvidia, nvml


class CardMaker(NamedTuple):
    """How a maker's cards are found: all of them with their fields, and the watched ones by their marks."""

    describe: Callable[[Files], list[dict[str, Any]]]
    watch: Callable[[list[str]], Any]


MAKERS: Mapping[DeviceKind, CardMaker] = {
    "cuda": CardMaker(
        lambda files: nvidia.describe(nvml.load_library(), files),
        lambda marks: nvidia.NvidiaCards(nvml.load_library(), marks),
    ),
    "rocm": CardMaker(amd.describe, amd.AmdCards),
}
"""Whose cards are described and watched: a row for each kind of device but the processor."""
