"""What a container engine is and gives: its facts, its refusals, and the cards that its containers get to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import docker.errors
import requests
import urllib3.exceptions
import yaml
from packaging.version import Version

from harness.engine.container import DeviceRequest
from harness.engine.interface import EngineFacts
from harness.engines import ENGINES, ContainerEngine
from harness.errors import MachineError, NoDevice, NoEngine, NoSpace
from harness.files import Files, free_bytes
from harness.image.images import leading_release

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
def engine_errors(engine: str, doing: str) -> Iterator[None]:
    """Raises NoEngine where the service does not answer, and what its refusal means where it says no."""
    try:
        yield
    except docker.errors.APIError as refusal:
        raise refusal_error(engine, doing, refusal.explanation or str(refusal)) from None
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


def refusal_error(engine: str, doing: str, explanation: str) -> MachineError:
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


def engine_facts(
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


CDI_REMEDY = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
ALL_CARDS = "nvidia.com/gpu=all"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")

PODMAN_GIVES_GPUS = Version("5.4")
"""Before it, the compatible API accepts a request for a GPU and silently gives none."""

_READ_AND_WRITE = 0o006


def cdi_devices(files: Files, folders: Iterable[str] = CDI_FOLDERS) -> tuple[str, ...]:
    """The devices that the CDI specifications in these folders name, such as nvidia.com/gpu=0."""
    return tuple(
        sorted({device for text in _specifications(files, folders) for device in _specified_devices(text)})
    )


def _specifications(files: Files, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for name in files.names(folder):
            if name.endswith((".yaml", ".yml", ".json")):
                yield files.text(f"{folder}/{name}") or ""


def _specified_devices(text: str) -> list[str]:
    """Return one specification's devices, of YAML or JSON, which YAML includes; none where it is neither."""
    try:
        specification = yaml.safe_load(text)
        return [f"{specification['kind']}={device['name']}" for device in specification["devices"]]
    except (yaml.YAMLError, KeyError, TypeError):
        return []


def cdi_names(device: DeviceRequest, named: Sequence[str]) -> tuple[str, ...]:
    """The request's cards as a specification names them: by UUID, by index, or all together; else none."""
    names = []
    for place in range(max(len(device.ids), len(device.indices))):
        marks = (*device.ids[place : place + 1], *map(str, device.indices[place : place + 1]))
        name = next((name for mark in marks if (name := f"nvidia.com/gpu={mark}") in named), None)
        if name is None:
            return (ALL_CARDS,) if device.every and ALL_CARDS in named else ()
        names.append(name)
    return tuple(names)


def device_refusal(facts: EngineFacts, device: DeviceRequest, files: Files) -> str | None:
    """Why this engine's containers would not get to these cards, in one clause; null where they do."""
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
