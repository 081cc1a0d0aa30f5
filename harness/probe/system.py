"""The limits of the control groups this process lives in: version 1, 2, or a mixture of both."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from typing import Any

from harness.files import Files

_ROOT = "/sys/fs/cgroup"


def cpu_quota(files: Files) -> float | None:
    """Return CPUs' worth of time that the tightest group allows; None where nothing limits it."""
    quotas = []
    for folder in _folders(files, "cpu"):
        words = (files.text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
        quota, period = (files.number(f"{folder}/cpu.cfs_{what}_us") for what in ("quota", "period"))
        if quota is not None and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(files: Files, installed_bytes: int | None) -> int | None:
    """Return the tightest memory limit in bytes; None where there is none below what is installed."""
    names = ("memory.max", "memory.limit_in_bytes")
    limits = (files.number(f"{folder}/{name}") for folder in _folders(files, "memory") for name in names)
    most = installed_bytes or 2**60
    return min((limit for limit in limits if limit is not None and limit < most), default=None)


def _folders(files: Files, controller: str) -> Iterator[str]:
    for line in (files.text("/proc/self/cgroup") or "").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controllers == "":
            roots = (_ROOT, f"{_ROOT}/unified")
        elif controller in controllers.split(","):
            roots = (f"{_ROOT}/{controllers}", f"{_ROOT}/{controller}")
        else:
            continue
        parts = [part for part in path.split("/") if part and part != ".."]
        for root in roots:
            for depth in range(len(parts), -1, -1):
                yield "/".join((root, *parts[:depth]))


_CONTAINED = re.compile(r"docker|libpod|kubepods|containerd|/lxc|garden|actions_job")


def describe_system(files: Files) -> dict[str, Any]:
    """Return the fields of record.Machine that are neither processor nor cards."""
    memory = _kilobytes(files, "MemTotal")
    nodes = [name for name in files.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    balancing = files.number("/proc/sys/kernel/numa_balancing")
    return {
        "system": platform.system() or "unknown",
        "kernel": platform.release() or None,
        "distribution": _distribution(files),
        "libc": " ".join(platform.libc_ver()).strip() or None,
        "architecture": platform.machine() or "unknown",
        "virtual": hypervisor(files, platform.release()),
        "container": is_container(files),
        "memory_bytes": memory,
        "memory_limit_bytes": memory_limit(files, memory),
        "shared_memory_bytes": _volume_bytes(files, "/dev/shm"),
        "numa_nodes": len(nodes) or None,
        "numa_balancing": None if balancing is None else balancing > 0,
    }


def available_bytes(files: Files) -> int | None:
    """Return memory that can be had without swapping, within the tightest control group."""
    free = _kilobytes(files, "MemAvailable")
    limit = memory_limit(files, _kilobytes(files, "MemTotal"))
    return min(free, limit) if free and limit else free


def _kilobytes(files: Files, key: str) -> int | None:
    words = files.fields("/proc/meminfo", ":").get(key, "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _volume_bytes(files: Files, folder: str) -> int | None:
    try:
        volume = os.statvfs(files.root / folder.lstrip("/"))
    except OSError:
        return None
    return volume.f_blocks * volume.f_frsize


def _distribution(files: Files) -> str | None:
    paths = ("/etc/os-release", "/usr/lib/os-release")
    names = (files.fields(path, "=").get("PRETTY_NAME", "").strip("\"'") for path in paths)
    return next(filter(None, names), None)


def hypervisor(files: Files, kernel: str) -> str | None:
    """Return "wsl", "gvisor", "unknown hypervisor", "none" on bare metal, None where it is not known."""
    if "microsoft" in kernel.lower():
        return "wsl"
    if "gVisor" in (files.text("/proc/version") or ""):
        return "gvisor"
    flags = files.fields("/proc/cpuinfo", ":").get("flags", "").split()
    if not flags:
        return None
    return "unknown hypervisor" if "hypervisor" in flags else "none"


def sees_processes(files: Files) -> bool:
    """Return whether all processes of this machine are seen from here, as in some containers too.

    The kernel's first namespace has a fixed number (`PROC_PID_INIT_INO`); gVisor has a kernel of its own.
    """
    if not is_container(files):
        return True
    gvisor = "gVisor" in (files.text("/proc/version") or "")
    return not gvisor and files.link("/proc/self/ns/pid") == "pid:[4026531836]"


def is_container(files: Files) -> bool:
    """Return whether this is a container."""
    if any(files.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")):
        return True
    if "KUBERNETES_SERVICE_HOST" in os.environ or "container=" in (files.text("/proc/1/environ") or ""):
        return True
    return bool(_CONTAINED.search(files.text("/proc/1/cgroup") or ""))
