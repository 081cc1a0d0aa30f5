"""Whether a container engine gives its containers the cards of a trial, and by which names."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from harness.engine.base import EngineFacts
from harness.engine.container import DeviceRequest
from harness.engines import ENGINES
from harness.files import Files

CDI_REMEDY = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
ALL_CARDS = "nvidia.com/gpu=all"
CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")

PODMAN_GIVES_GPUS = (5, 4, 0)
"""Before it, the compatible API accepts a request for a GPU and silently gives none."""

_KIND = re.compile(r"^kind:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_NAME = re.compile(r"^\s*(?:-\s+)?name:\s*[\"']?([^\s\"']+)", re.MULTILINE)
_READ_AND_WRITE = 0o006


def cdi_devices(files: Files, folders: Iterable[str] = CDI_FOLDERS) -> tuple[str, ...]:
    """The devices that the CDI specifications in these folders name, such as nvidia.com/gpu=0."""
    return tuple(sorted({device for text in _specifications(files, folders) for device in _named(text)}))


def _specifications(files: Files, folders: Iterable[str]) -> Iterator[str]:
    for folder in folders:
        for name in files.names(folder):
            if name.endswith((".yaml", ".yml", ".json")):
                yield files.text(f"{folder}/{name}") or ""


def _named(text: str) -> list[str]:
    """One specification's devices. YAML is read as nvidia-ctk writes it: `name` is a key of devices alone."""
    try:
        specification = json.loads(text)
        names = [str(device["name"]) for device in specification["devices"]]
        return [f"{specification['kind']}={name}" for name in names]
    except ValueError:
        kind = _KIND.search(text)
        return [f"{kind[1]}={name}" for name in _NAME.findall(text)] if kind else []
    except (KeyError, TypeError):
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


def refusal(facts: EngineFacts, device: DeviceRequest, files: Files) -> str | None:
    """Why this engine's containers would not get to these cards, in one clause; null where they do."""
    if device.kind != "cpu" and facts.name == "podman" and not facts.cdi:
        needed = ".".join(map(str, PODMAN_GIVES_GPUS))
        return (
            f"Podman {facts.version} accepts a request for a GPU on this socket and silently gives none; "
            f"{needed} and newer give it"
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
