"""What a workload's file says of itself: read out of its source, so that no framework is imported."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[3] / "workloads"


@dataclass(frozen=True, slots=True)
class Workload:
    """Constants of `workloads/<name>.py`: TITLE, ABOUT, and IMAGE_SIZE, the published one in pixels."""

    title: str
    about: str
    image_size: int | None = None


RETIRED = {
    "cifar_cnn": Workload(
        "A small convolutional network on CIFAR-10 (retired)",
        "A small network on CIFAR-10 (Karmanov 2018). Retired: no plan trains it any more.",
    ),
}
"""Workloads that records name, and that have no file any more."""


@cache
def read_workload(name: str) -> Workload | None:
    """Return a workload by its name; null where no file of it has a title."""
    path = FOLDER / f"{name}.py"
    if not name.isidentifier() or not path.is_file():
        return RETIRED.get(name)
    body = ast.parse(path.read_text(encoding="utf-8")).body
    assigned = [node for node in body if isinstance(node, ast.Assign)]
    said = {getattr(node.targets[0], "id", ""): node.value for node in assigned}
    if "TITLE" not in said:
        return None
    constants = [ast.literal_eval(said[key]) for key in ("TITLE", "ABOUT", "IMAGE_SIZE") if key in said]
    return Workload(*constants)
