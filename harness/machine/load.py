"""What else this machine does, read before a trial so that the trial does not accuse itself."""

from __future__ import annotations

import os
from typing import Any

import psutil

from harness.files import Files
from harness.gpu import amd, nvidia
from harness.gpu.nvml import driver_session, load_library
from harness.probe.system import available_bytes, load_average, sees_processes
from harness.record import Load

BUSY_SECONDS = 0.5


def read_load() -> Load:
    """Load average, busy CPUs, free memory, other processes on the cards; null with a reason if unknown."""
    current = read_load_from(Files(), load_library(), os.getpid())
    # CPUs' worth of work that the whole machine does.
    busy = round(psutil.cpu_percent(BUSY_SECONDS) / 100 * (psutil.cpu_count() or 1), 2)
    return current.model_copy(update={"busy_cpus": busy})


def read_load_from(files: Files, nvml: Any | None, pid: int) -> Load:
    """As load(), with the machine's files, NVML and this process passed in."""
    with driver_session(nvml) as refused:
        has_nvidia = refused is None
    has_amd = bool(amd.kernel_folders(files))
    others, unknown = None, None
    if has_nvidia or has_amd:
        others, unknown = _other_processes(files, nvml if has_nvidia else None, has_amd, frozenset((pid,)))
    return Load(
        load_average_1min=load_average(),
        memory_available_bytes=available_bytes(files),
        other_gpu_processes=others[0] if others else None,
        other_gpu_memory_bytes=others[1] if others else None,
        unknown_because=unknown,
    )


def _other_processes(
    files: Files, nvml: Any | None, has_amd: bool, ours: frozenset[int]
) -> tuple[tuple[int, int | None] | None, str | None]:
    if not sees_processes(files):
        return None, "other processes cannot be seen from inside a container"
    counts = [nvidia.foreign_processes(nvml, ours)] if nvml is not None else []
    if has_amd:
        held = amd.held_bytes(files)
        foreign = [sum(of.values()) for pid, of in (held or {}).items() if pid not in ours]
        counts.append(None if held is None else (len(foreign), sum(foreign)))
    listed = [count for count in counts if count is not None]
    if len(listed) < len(counts):
        return None, "the driver does not list the processes on its cards"
    used = nvidia.total_bytes(used for _, used in listed)
    why = "the driver does not say what other processes hold" if used is None else None
    return (sum(processes for processes, _ in listed), used), why
