"""What an engine tells of itself, for `invoke doctor` and for how a device is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One container engine. What it does not tell is null, or empty."""

    name: Literal["docker", "podman"]
    version: str | None
    api_version: str | None
    buildkit: bool
    """A command-line client here can build with BuildKit; Podman's own builder counts."""
    buildx: bool
    runtimes: tuple[str, ...]
    cdi: bool
    """It honours requests for CDI devices."""
    cdi_devices: tuple[str, ...]
    """Such as nvidia.com/gpu=0; only newer Docker Engines tell."""
    rootless: bool
    selinux: bool
    data_root_free_bytes: int | None

    @property
    def wants_cdi(self) -> bool:
        """CUDA devices are asked for by CDI: always in Podman, in Docker where no NVIDIA runtime is."""
        return self.cdi and (self.name == "podman" or "nvidia" not in self.runtimes)
