"""Machines that are made up: files as a kernel would show them, and cards alone."""

from __future__ import annotations

from pathlib import Path

from harness.files import Files


def tree(root: Path, files: dict[str, str]) -> Files:
    for path, text in files.items():
        (root / path.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        (root / path.lstrip("/")).write_text(text)
    return Files(root)


def bare(cards):
    return {"system": "Linux", "architecture": "x86_64", "cpu": {"usable": 4.0, "cores": 2}, "gpus": cards}
