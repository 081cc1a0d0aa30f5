"""The names of this machine and its users, which must not leave it."""

from __future__ import annotations

import os
import platform
import pwd
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from harness.files import Files
from harness.redact import Names

_USER_VARIABLES = ("USER", "LOGNAME", "USERNAME", "SUDO_USER")
_HOST_VARIABLES = ("HOSTNAME", "HOST", "COMPUTERNAME", "SLURMD_NODENAME", "SLURM_SUBMIT_HOST")


def local_names() -> Names:
    """This machine's names."""
    users, hosts = (tuple(sorted(set(filter(None, found)))) for found in (_users(), _hosts(Files())))
    return Names(users, hosts)


def _users() -> Iterator[str]:
    yield from (os.environ.get(name, "") for name in _USER_VARIABLES)
    with suppress(RuntimeError):
        yield Path.home().name
    with suppress(KeyError):
        entry = pwd.getpwuid(os.getuid())
        yield from (entry.pw_name, entry.pw_gecos.split(",")[0].strip())


def _hosts(files: Files) -> Iterator[str]:
    hosts = [socket.gethostname(), platform.node(), files.text("/etc/hostname") or ""]
    hosts += [os.environ.get(name, "") for name in _HOST_VARIABLES]
    for host in hosts:
        short, _, domain = host.partition(".")
        yield from (host, short, domain if "." in domain else "")
    for line in (files.text("/etc/resolv.conf") or "").splitlines():
        words = line.split()
        if words[:1] in (["search"], ["domain"]):
            yield from (word for word in words[1:] if "." in word.strip("."))
