"""The device that was asked for, its facts, seeds and versions; to torch both makers' GPUs are "cuda"."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import random
from types import ModuleType
from typing import Any

import torch

from parts.trial import Failed, processor_name, versions


def choose(kind: str, gpus: int) -> torch.device:
    """Return the first device of the kind asked, "cpu", "cuda" or "rocm"; never another kind in its place."""
    if gpus != 1:
        raise Failed("unsupported", f"{gpus} GPUs are asked; this workload runs on one")
    if kind == "cpu":
        return torch.device("cpu")
    built_for = "rocm" if torch.version.hip else "cuda" if torch.version.cuda else "cpu"
    if built_for != kind or not torch.cuda.is_available():
        sees = f"{torch.cuda.device_count()} GPUs" if built_for != "cpu" else "no GPU"
        torch_here = f"torch {torch.__version__} (built for {built_for})"
        raise Failed("no-device", f"a '{kind}' device is asked; {torch_here} sees {sees}")
    return torch.device("cuda", torch.cuda.current_device())


def choose_own(kind: str, rank: int, devices: int = 1) -> torch.device:
    """Return a rank's own device of the kind asked, or the first of `devices` that it drives.

    Raises Failed where there are too few, and for several of a CPU: DataParallel knows none.
    """
    if kind == "cpu" and devices > 1:
        raise Failed("unsupported", "parallel 'dp' is DataParallel, which needs GPUs; take 'ddp'")
    if kind != "cpu" and torch.cuda.is_available():
        visible, needed = torch.cuda.device_count(), max(devices, rank + 1)
        if visible < needed:
            raise Failed("no-device", f"{needed} GPUs are asked; there are {visible}")
        torch.cuda.set_device(rank)
    return choose(kind, 1)


def facts(kind: str, device: torch.device) -> dict[str, Any]:
    """Return the device as torch sees it from inside this process."""
    if device.type == "cpu":
        return {"kind": "cpu", "name": processor_name(), "threads": torch.get_num_threads()}
    card = torch.cuda.get_device_properties(device)
    architecture = getattr(card, "gcnArchName", None) if kind == "rocm" else f"{card.major}.{card.minor}"
    return {
        "kind": kind,
        "name": card.name,
        "unit": _unit(card) if kind == "cuda" else None,
        "capability": architecture,
        "memory_bytes": card.total_memory,
        "threads": torch.get_num_threads(),
        **({"simulated": True} if hasattr(card, "simulated") else {}),
    }


def shares_host_memory(device: torch.device) -> bool:
    """Return whether a device's memory is the host's, as its driver says of an integrated GPU."""
    card = torch.cuda.get_device_properties(device) if device.type == "cuda" else None
    return bool(getattr(card, "is_integrated", False))


def free_bytes(device: torch.device) -> int:
    """Return what a device has free; one that shares the host's memory has no more than the host."""
    host = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if device.type != "cuda":
        return host
    free = int(torch.cuda.mem_get_info(device)[0])
    return min(free, host) if shares_host_memory(device) else free


def seed_everything(seed: int) -> None:
    """Seed Python, NumPy where it is there, and torch on all its devices."""
    random.seed(seed)
    with contextlib.suppress(ImportError):
        importlib.import_module("numpy").random.seed(seed % 2**32)
    torch.manual_seed(seed)


def software(*modules: ModuleType) -> dict[str, str | None]:
    """Return versions of what the trial computes with."""
    cudnn_version = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    versions_by_name = versions()
    versions_by_name.update(torch=torch.__version__, cuda=torch.version.cuda, hip=torch.version.hip)
    versions_by_name.update(cudnn=str(cudnn_version) if cudnn_version else None)
    versions_by_name.update({module.__name__: module.__version__ for module in modules})
    return versions_by_name


def _unit(card: Any) -> str | None:
    """Return a card's UUID as NVML writes it, hashed with the project's key, so that it names a unit and
    nobody.

    It is null for a slice of a card, whose UUID has another form that torch does not report.
    """
    uuid = getattr(card, "uuid", None)
    if uuid is None or " MIG " in card.name:
        return None
    text = str(uuid).lower().removeprefix("gpu-")
    return hashlib.sha256(f"gpudyno:GPU-{text}".encode()).hexdigest()[:16]
