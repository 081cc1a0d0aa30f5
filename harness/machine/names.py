"""The names and numbers of this machine that must not leave it."""

from __future__ import annotations

import os
import platform
import re
import socket
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from harness.files import Files
from harness.gpu import query
from harness.gpu.nvml import driver, library
from harness.redact import Names

_DMI = ("product_uuid", "product_serial", "board_serial", "chassis_serial", "board_asset_tag")
_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "HOST", "COMPUTERNAME", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST")


def local_names() -> Names:
    """This machine's names."""
    files = Files()
    return Names(
        users=tuple(sorted(set(_users()))),
        hosts=tuple(sorted(set(_hosts(files)))),
        serials=_serials(files),
    )


def _home() -> Path | None:
    with suppress(RuntimeError):
        return Path.home()
    return None


def _users() -> Iterator[str]:
    yield from (os.environ[name] for name in _USER_VARIABLES if os.environ.get(name))
    home = _home()
    if home is not None and home.name:
        yield home.name
    with suppress(ImportError, KeyError):
        import pwd

        entry = pwd.getpwuid(os.getuid())
        yield entry.pw_name
        full = entry.pw_gecos.split(",")[0].strip()
        if full:
            yield full


def _hosts(files: Files) -> Iterator[str]:
    hosts = [socket.gethostname(), platform.node(), files.text("/etc/hostname") or ""]
    hosts += [os.environ.get(name, "") for name in _HOST_VARIABLES]
    for host in hosts:
        short, dot, domain = host.partition(".")
        yield from (part for part in (host, short, domain if "." in domain else "") if part and (dot or part))
    for line in (files.text("/etc/resolv.conf") or "").splitlines():
        words = line.split()
        if words[:1] in (["search"], ["domain"]):
            yield from (word for word in words[1:] if "." in word.strip("."))


@cache
def _serials(files: Files) -> tuple[str, ...]:
    texts = {files.text("/etc/machine-id"), files.text("/var/lib/dbus/machine-id")}
    texts |= {files.text(f"/sys/class/dmi/id/{name}") for name in _DMI}
    texts |= {files.text(f"/sys/class/net/{name}/address") for name in files.names("/sys/class/net")}
    for disk in files.names("/sys/block"):
        texts |= {files.text(f"/sys/block/{disk}/{place}") for place in ("serial", "device/serial")}
    texts |= set(_card_serials(library()))
    return tuple(sorted(serial for serial in texts if serial and _is_serial(serial)))


def _card_serials(nvml: Any | None) -> Iterator[str | None]:
    with driver(nvml) as opened:
        if not opened or nvml is None:
            return
        for index in range(query(nvml, "nvmlDeviceGetCount") or 0):
            handle = query(nvml, "nvmlDeviceGetHandleByIndex", index)
            for name in ("nvmlDeviceGetUUID", "nvmlDeviceGetSerial", "nvmlDeviceGetBoardPartNumber"):
                yield query(nvml, name, handle) if handle is not None else None


def _is_serial(text: str) -> bool:
    """Makers write "None", "0" or "To be filled" where they gave no number."""
    bare = re.sub(r"[^0-9A-Za-z]", "", text)
    return len(bare) >= 6 and len(set(bare)) > 1 and any(char.isdigit() for char in bare)
