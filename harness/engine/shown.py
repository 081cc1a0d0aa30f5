"""A container's creation as a line that a person can type."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from typing import Any


def run_line(client: str, name: str, body: Mapping[str, Any]) -> str:
    """`docker run …` with the same effect as creating and starting a container from this body."""
    host = body["HostConfig"]
    words = [client, "run", "--detach", "--name", name, *_host(host), *_inside(body)]
    return shlex.join([*words, body["Image"] or "IMAGE", *body["Cmd"]])


def _inside(body: Mapping[str, Any]) -> Iterator[str]:
    yield from ("--user", body["User"], "--workdir", body["WorkingDir"])
    for variable in body["Env"]:
        yield from ("--env", variable)
    for name, value in body["Labels"].items():
        yield from ("--label", f"{name}={value}")


def _host(host: Mapping[str, Any]) -> Iterator[str]:
    yield from ("--network", host["NetworkMode"])
    if host["ReadonlyRootfs"]:
        yield "--read-only"
    for mount in host["Mounts"]:
        read_only = ",readonly" if mount["ReadOnly"] else ""
        yield from ("--mount", f"type=bind,source={mount['Source']},target={mount['Target']}{read_only}")
    for target, options in host["Tmpfs"].items():
        yield from ("--tmpfs", f"{target}:{options}")
    yield from ("--shm-size", str(host["ShmSize"]))
    repeated = {
        "CapDrop": "--cap-drop",
        "CapAdd": "--cap-add",
        "SecurityOpt": "--security-opt",
        "GroupAdd": "--group-add",
    }
    for key, option in repeated.items():
        for value in host.get(key, ()):
            yield from (option, value)
    single = {
        "IpcMode": "--ipc",
        "UsernsMode": "--userns",
        "Memory": "--memory",
        "MemorySwap": "--memory-swap",
    }
    for key, option in single.items():
        if key in host:
            yield from (option, str(host[key]))
    yield from _devices(host)


def _devices(host: Mapping[str, Any]) -> Iterator[str]:
    for device in host.get("Devices", ()):
        yield from ("--device", device["PathOnHost"])
    for request in host.get("DeviceRequests", ()):
        if request["Driver"] == "cdi":
            for device in request["DeviceIDs"]:
                yield from ("--device", device)
        else:
            yield from ("--gpus", f'"device={",".join(request["DeviceIDs"])}"')
