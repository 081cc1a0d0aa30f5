"""Machines that are made up: files as a kernel would show them, and cards alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness.files import Files
from harness.record import Cpu, Gpu, Machine


def tree(root: Path, files: dict[str, str]) -> Files:
    for path, text in files.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(text)
    return Files(root)


def bare(cards):
    return {"system": "Linux", "architecture": "x86_64", "cpu": {"usable": 4.0, "cores": 2}, "gpus": cards}


def box(*gpus: Gpu, **more: Any) -> Machine:
    """A machine of which only its cards matter."""
    told = {"id": "0" * 12, "label": "x", "system": "Linux", "architecture": "x86_64", "cpu": Cpu()}
    return Machine(**{**told, "gpus": gpus, **more})
