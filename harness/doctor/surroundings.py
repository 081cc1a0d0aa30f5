"""What surrounds a run on this machine, for `invoke doctor`: disks, ways to the cards, data at hand."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

from harness.engine.facts import EngineFacts
from harness.errors import MachineError
from harness.files import Files
from harness.gpu.cuda_start import NOT_TRIED, CudaStart
from harness.machine.devices import Selection
from harness.record import Load, Machine


@dataclass(frozen=True, slots=True)
class Disk:
    """A place that a run writes to, and what is free there."""

    what: str
    folder: Path | None
    free_bytes: int | None
    read_only: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """A device file: its numeric group, and whether this user may open it."""

    path: str
    group: int
    may_open: bool


def device_files(files: Files) -> tuple[Node, ...]:
    """Return AMD's device files: /dev/kfd and the render nodes of /dev/dri."""
    render = [f"/dev/dri/{name}" for name in files.names("/dev/dri") if name.startswith("render")]
    there = [path for path in ("/dev/kfd", *render) if files.exists(path)]
    groups = {path: (files.root / path.lstrip("/")).stat().st_gid for path in there}
    return tuple(Node(path, group, files.may_open(path)) for path, group in groups.items())


def older_rocm_warning(files: Files, base: str) -> str:
    """Return what it means that this host's ROCm is older than an image's; empty where it is not."""
    host = re.match(r"(\d+)\S*", files.text("/opt/rocm/.info/version") or "")
    wanted = re.search(r"rocm(\d+)", base)
    if host is None or wanted is None or int(host[1]) >= int(wanted[1]):
        return ""
    return f"this host has ROCm {host[0]}, and its driver may be too old for the image's ROCm {wanted[1]}"


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """One thing that was looked at; `remedy` says what to do where it is not well."""

    level: Literal["ok", "warn", "problem"]
    what: str
    remedy: str = ""


ok = partial(Diagnosis, "ok")
warn = partial(Diagnosis, "warn")
problem = partial(Diagnosis, "problem")


@dataclass(frozen=True, slots=True)
class DataNeed:
    """A data set that the plan reads. `download_bytes` is what is still to be fetched."""

    name: str
    at_hand: bool
    download_bytes: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that the diagnosis reads. `engine` is the one to be used; null is the virtual environment."""

    machine: Machine
    selection: Selection
    load: Load
    engine: EngineFacts | None
    lost: tuple[str, ...] = ()
    """Why another engine than was hoped for is used."""
    refusal: str | None = None
    """Why the engine's containers would not get to the cards taken, in one clause; null where they do."""
    nodes: tuple[Node, ...] = ()
    """AMD's device files."""
    in_the_way: tuple[MachineError, ...] = ()
    """Such as that no image serves the card."""
    older_rocm: str = ""
    """What it means that this host has an older ROCm than the image; empty where it has none."""
    cuda: CudaStart = NOT_TRIED
    cuda_inside: CudaStart = NOT_TRIED
    """In a container of the image."""
    disks: tuple[Disk, ...] = ()
    data: tuple[DataNeed, ...] = ()
    plan: str = ""
    """The plan that reads the data."""
