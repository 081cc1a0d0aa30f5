"""The devices that specifications of the Container Device Interface (CDI) name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import yaml

from harness.engine.container import DeviceRequest
from harness.files import Files

CDI_REMEDY = "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


ALL_CARDS = "nvidia.com/gpu=all"


CDI_FOLDERS = ("/etc/cdi", "/var/run/cdi", "/run/cdi")


def cdi_devices(files: Files, folders: Iterable[str]) -> tuple[str, ...]:
    """Return the devices that the CDI specifications in these folders name, such as nvidia.com/gpu=0."""
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
    """Return the request's cards as a specification names them: by UUID, by index, or as all; else none."""
    names = []
    for place in range(max(len(device.ids), len(device.indices))):
        marks = (*device.ids[place : place + 1], *map(str, device.indices[place : place + 1]))
        name = next((name for mark in marks if (name := f"nvidia.com/gpu={mark}") in named), None)
        if name is None:
            return (ALL_CARDS,) if device.every and ALL_CARDS in named else ()
        names.append(name)
    return tuple(names)
