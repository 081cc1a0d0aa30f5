"""What an engine can do, read from what it tells of itself."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.engine.build import Client
from harness.engine.connection import Connection
from harness.facts import EngineFacts

PODMAN_GIVES_GPUS = (5, 4, 0)
"""Before it, the compatible API accepts a request for a GPU and silently gives none."""


def facts(connection: Connection, info: Mapping[str, Any], client: Client | None) -> EngineFacts:
    """The facts of an engine, of its info API's answer and of the client that can build for it."""
    options = [str(option) for option in info.get("SecurityOptions") or ()]
    devices = info.get("DiscoveredDevices") or ()
    return EngineFacts(
        name=connection.kind,
        version=connection.version,
        api_version=connection.api_version,
        buildkit=client is not None,
        buildx=client is not None and client.buildx,
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        cdi=_honours_cdi(connection, info),
        cdi_devices=tuple(str(device["ID"]) for device in devices if device.get("Source") == "cdi"),
        rootless=any("name=rootless" in option for option in options),
        selinux=any("name=selinux" in option for option in options),
        data_root_free_bytes=_free_bytes(info.get("DockerRootDir")),
    )


def _honours_cdi(connection: Connection, info: Mapping[str, Any]) -> bool:
    if connection.kind == "podman":
        return _numbers(connection.version) >= PODMAN_GIVES_GPUS
    return bool(info.get("CDISpecDirs"))


def _numbers(version: str | None) -> tuple[int, ...]:
    """'5.4.0-rc1' as (5, 4, 0)."""
    found = re.match(r"\d+(\.\d+)*", version or "")
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _free_bytes(folder: str | None) -> int | None:
    """Free bytes where an engine keeps its images, read at the nearest folder that this user may see."""
    if not folder:
        return None
    for path in (Path(folder), *Path(folder).parents):
        with contextlib.suppress(OSError):
            return shutil.disk_usage(path).free
    return None
