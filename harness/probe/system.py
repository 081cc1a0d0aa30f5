"""The operating system, what it runs inside, its memory and its nodes."""

from __future__ import annotations

import os
import platform
import re
from typing import Any

from harness.probe import cgroup
from harness.probe.files import Files

_PRODUCTS = (
    ("kvm", ("kvm", "qemu", "bochs", "rhev", "openstack")),
    ("google", ("google compute engine",)),
    ("amazon", ("amazon ec2",)),
    ("vmware", ("vmware",)),
    ("virtualbox", ("virtualbox", "innotek")),
    ("hyper-v", ("microsoft corporation virtual machine", "hyper-v")),
    ("xen", ("xen",)),
    ("parallels", ("parallels",)),
    ("apple", ("apple virtualization",)),
)
_CONTAINED = re.compile(r"docker|libpod|kubepods|containerd|/lxc|garden|actions_job")


def system(files: Files) -> dict[str, Any]:
    """The fields of record.Machine that are neither processor nor cards."""
    memory = _memory_bytes(files)
    nodes = [name for name in files.names("/sys/devices/system/node") if re.fullmatch(r"node\d+", name)]
    balancing = files.number("/proc/sys/kernel/numa_balancing")
    return {
        "system": platform.system() or "unknown",
        "kernel": platform.release() or None,
        "distribution": _distribution(files),
        "libc": _libc(),
        "architecture": platform.machine() or "unknown",
        "virtual": virtual(files, platform.release()),
        "container": contained(files) if platform.system() == "Linux" else None,
        "memory_bytes": memory,
        "memory_limit_bytes": cgroup.memory_limit(files, memory),
        "shared_memory_bytes": _size(files, "/dev/shm"),
        "numa_nodes": len(nodes) or None,
        "numa_balancing": None if balancing is None else balancing > 0,
    }


def _memory_bytes(files: Files) -> int | None:
    return _kilobytes(files, "MemTotal") or _installed_pages()


def _installed_pages() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return None


def available_bytes(files: Files) -> int | None:
    """Memory that can be had without swapping, within the tightest control group."""
    free = _kilobytes(files, "MemAvailable")
    limit = cgroup.memory_limit(files, _memory_bytes(files))
    return min(free, limit) if free and limit else free


def _kilobytes(files: Files, key: str) -> int | None:
    words = files.fields("/proc/meminfo", ":").get(key, "").split()
    return int(words[0]) * 1024 if words and words[0].isdigit() else None


def _size(files: Files, folder: str) -> int | None:
    try:
        found = os.statvfs(files.root / folder.lstrip("/"))
    except (OSError, AttributeError):
        return None
    return found.f_blocks * found.f_frsize


def _distribution(files: Files) -> str | None:
    for path in ("/etc/os-release", "/usr/lib/os-release"):
        name = files.fields(path, "=").get("PRETTY_NAME", "").strip("\"'")
        if name:
            return name
    version = platform.mac_ver()[0]
    return f"macOS {version}" if version else None


def _libc() -> str | None:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION")
    except (ValueError, OSError, AttributeError):
        return " ".join(part for part in platform.libc_ver() if part) or None


def virtual(files: Files, kernel: str) -> str | None:
    """The hypervisor's kind, "none" on bare metal, None where nothing tells."""
    if "microsoft" in kernel.lower():
        return "wsl"
    if "gVisor" in (files.text("/proc/version") or ""):
        return "gvisor"
    dmi = " ".join(files.text(f"/sys/class/dmi/id/{name}") or "" for name in ("sys_vendor", "product_name"))
    for kind, marks in _PRODUCTS:
        if any(mark in dmi.lower() for mark in marks):
            return kind
    if files.text("/sys/hypervisor/type"):
        return files.text("/sys/hypervisor/type")
    flags = files.fields("/proc/cpuinfo", ":").get("flags", "").split()
    if not flags:
        return None
    return "unknown hypervisor" if "hypervisor" in flags else "none"


def contained(files: Files) -> bool:
    """Whether this is a container."""
    if any(files.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv", "/run/systemd/container")):
        return True
    if "KUBERNETES_SERVICE_HOST" in os.environ or "container=" in (files.text("/proc/1/environ") or ""):
        return True
    return bool(_CONTAINED.search(files.text("/proc/1/cgroup") or ""))
