"""The facts of a container engine, and whether its containers get to a card."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from packaging.version import Version

from harness.engine.cdi import ALL_CARDS, CDI_FOLDERS, cdi_devices, cdi_names
from harness.engine.container import DeviceRequest
from harness.engines import ENGINES, ContainerEngine
from harness.files import Files, free_bytes
from harness.image.images import leading_release


def engine_facts(
    connection: Connection,
    info: Mapping[str, Any],
    files: Files,
    podman: Mapping[str, Any] | None = None,
) -> EngineFacts:
    """Return an engine's facts by its info API and CDI's files.

    `podman` is what Podman tells by its own API, since the compatible one may leave out SELinux and rootless.
    """
    options = " ".join(map(str, info.get("SecurityOptions") or ()))
    folders = info.get("CDISpecDirs") or CDI_FOLDERS
    host = (podman or {}).get("host") or {}
    security = host.get("security") or {}
    discovered = [
        str(device["ID"]) for device in info.get("DiscoveredDevices") or () if device.get("Source") == "cdi"
    ]
    return EngineFacts(
        name=connection.kind,
        version=connection.version,
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        cdi=leading_release(connection.version) >= PODMAN_GIVES_GPUS
        if connection.kind == "podman"
        else bool(info.get("CDISpecDirs")),
        cdi_devices=tuple(dict.fromkeys((*discovered, *cdi_devices(files, folders)))),
        rootless=bool(info.get("Rootless") or security.get("rootless") or "name=rootless" in options),
        userns_remap="name=userns" in options,
        selinux=bool(security.get("selinuxEnabled") or "name=selinux" in options),
        data_root_free_bytes=free_bytes(Path(root)) if (root := info.get("DockerRootDir")) else None,
    )


@dataclass(frozen=True, slots=True)
class Connection:
    """An engine that answered: which it is by its own component list, and where."""

    kind: ContainerEngine
    host: str
    """As DOCKER_HOST has it."""
    version: str | None
    api_version: str


@dataclass(frozen=True, slots=True)
class Client:
    """A command-line client that can build here, and what its environment needs."""

    path: str
    buildx: bool
    environment: Mapping[str, str]


PODMAN_GIVES_GPUS = Version("5.4")
"""Before it, the compatible API accepts a request for a GPU and silently gives none."""

_READ_AND_WRITE = 0o006


def device_refusal(facts: EngineFacts, device: DeviceRequest, files: Files) -> str | None:
    """Return why this engine's containers would not get to these cards, in one clause; null where they do."""
    if device.kind != "cpu" and facts.name == "podman" and not facts.cdi:
        return (
            f"Podman {facts.version} accepts a request for a GPU on this socket and silently gives none; "
            f"{PODMAN_GIVES_GPUS} and newer give it"
        )
    if device.kind == "cuda":
        return _cuda_refusal(facts, device)
    if device.kind == "rocm":
        return _rocm_refusal(facts, files)
    return None


def _cuda_refusal(facts: EngineFacts, device: DeviceRequest) -> str | None:
    title = ENGINES[facts.name].title
    if not facts.wants_cdi and "nvidia" not in facts.runtimes:
        return f"{title} has neither NVIDIA's runtime nor CDI"
    if facts.wants_cdi and not cdi_names(device, facts.cdi_devices):
        if ALL_CARDS in facts.cdi_devices and len(facts.cdi_devices) == 1:
            return f"{title} knows the NVIDIA cards by '{ALL_CARDS}' alone, and these are some of them"
        marks = ", ".join(map(str, device.indices)) or "asked for"
        return f"no CDI specification that {title} reads names the NVIDIA card {marks}"
    return None


def _rocm_refusal(facts: EngineFacts, files: Files) -> str | None:
    if not files.exists("/dev/kfd"):
        return "/dev/kfd is not there"
    if not facts.rootless or files.mode("/dev/kfd") & _READ_AND_WRITE == _READ_AND_WRITE:
        return None
    if facts.name == "docker":
        return "rootless Docker leaves outside the group that may open /dev/kfd"
    if not files.may_open("/dev/kfd"):
        return "this user is outside the group that may open /dev/kfd, and rootless Podman gives no other"
    return None


@dataclass(frozen=True, slots=True)
class EngineFacts:
    """One container engine. What it does not report is null, or empty."""

    name: ContainerEngine
    version: str | None
    runtimes: tuple[str, ...]
    cdi: bool
    """It honours requests for CDI devices."""
    cdi_devices: tuple[str, ...]
    """Such as nvidia.com/gpu=0: the devices that the engine reports or its specifications name."""
    rootless: bool
    userns_remap: bool
    """Root inside is another user outside, for every container that does not ask for the host's users."""
    selinux: bool
    data_root_free_bytes: int | None

    @property
    def wants_cdi(self) -> bool:
        """Return whether CUDA devices are requested by CDI: in Podman, or without NVIDIA's runtime."""
        return self.cdi and (self.name == "podman" or "nvidia" not in self.runtimes)
