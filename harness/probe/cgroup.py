"""The limits of the control groups this process lives in: version 1, 2, or a mixture of both."""

from __future__ import annotations

from collections.abc import Iterator

from harness.probe.files import Files

_ROOT = "/sys/fs/cgroup"


def cpu_quota(files: Files) -> float | None:
    """CPUs' worth of time that the tightest group allows; None where nothing limits it."""
    quotas = []
    for folder in _folders(files, "cpu"):
        words = (files.text(f"{folder}/cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit() and words[1].isdigit():
            quotas.append(int(words[0]) / int(words[1]))
        quota, period = (
            files.number(f"{folder}/cpu.cfs_quota_us"),
            files.number(f"{folder}/cpu.cfs_period_us"),
        )
        if quota is not None and period and quota > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(files: Files, installed_bytes: int | None) -> int | None:
    """The tightest memory limit in bytes; None where there is none below what is installed."""
    limits = []
    for folder in _folders(files, "memory"):
        for name in ("memory.max", "memory.limit_in_bytes"):
            limit = files.number(f"{folder}/{name}")
            if limit is not None and limit < (installed_bytes or 2**60):
                limits.append(limit)
    return min(limits, default=None)


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
