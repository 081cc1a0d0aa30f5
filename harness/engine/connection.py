"""What a container engine's silence and its refusals mean, as this project's errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker.errors
import requests
import urllib3.exceptions

from harness.engine.access import (
    CDI_FOLDERS,
    CDI_REMEDY,
    PODMAN_GIVES_GPUS,
    cdi_devices,
)
from harness.engine.base import EngineFacts
from harness.engines import ContainerEngine
from harness.errors import MachineError, NoDevice, NoEngine, NoSpace
from harness.files import Files, free_bytes
from harness.image.catalog import version_numbers

_SILENCE = (
    docker.errors.DockerException,
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    OSError,
)

_DEVICE_SIGNS = (
    "could not select device driver",
    "nvidia-container",
    "cdi device",
    "gathering device information",
    "unknown or invalid runtime",
    "stat /dev/kfd",
)


_CDI_SIGN = re.compile(r"\bcdi\b|(?:libcuda|libnvidia|/dev/nvidia).*no such file")
"""A specification that is stale, or that names no such card."""


@contextmanager
def answered(engine: str, doing: str) -> Iterator[None]:
    """Raises NoEngine where the service does not answer, and what its refusal means where it says no."""
    try:
        yield
    except docker.errors.APIError as refusal:
        raise refused(engine, doing, refusal.explanation or str(refusal)) from None
    except _SILENCE as silence:
        raise NoEngine(
            f"{engine} did not answer when asked to {doing} ({type(silence).__name__})",
            remedy="start it again, or use --engine venv",
        ) from None
    except (TypeError, KeyError, IndexError, ValueError, AttributeError, RecursionError) as strange:
        raise NoEngine(
            f"{engine} gave an answer that cannot be read when asked to {doing} ({type(strange).__name__})",
            remedy="update it or start it again, then give the same line again",
        ) from None


def refused(engine: str, doing: str, explanation: str) -> MachineError:
    """The error for an engine's explanation of why it would not do a thing."""
    clause = " ".join(str(explanation).split())
    lower = clause.lower()
    if "no space left" in lower:
        return NoSpace(
            f"the disk is full: {engine} could not {doing}", remedy="remove images that nobody needs any more"
        )
    if any(sign in lower for sign in _DEVICE_SIGNS) or _CDI_SIGN.search(lower):
        return NoDevice(
            f"{engine} cannot give a container the device: {clause}",
            remedy=CDI_REMEDY if _CDI_SIGN.search(lower) else "see `invoke doctor` for what is missing",
        )
    return MachineError(f"{engine} would not {doing}: {clause}", remedy="see `invoke doctor`")


def facts(
    connection: Connection,
    info: Mapping[str, Any],
    client: Client | None,
    files: Files,
    podman: Mapping[str, Any] | None = None,
) -> EngineFacts:
    """The facts of an engine: of its info API's answer, the client that can build for it, and CDI's files.

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
        buildkit=client is not None,
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        cdi=version_numbers(connection.version) >= PODMAN_GIVES_GPUS
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
