"""The engines that trials run in: the one list that settings, records, doctor and the verbs' help follow.

One more engine is a row here, its module in harness/engine/ with the methods of `interface.Engine`, and where
harness/engine/choose.py takes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

EngineName = Literal["docker", "podman", "venv", "here", "slurm", "fake"]
ContainerEngine = Literal["docker", "podman"]


@dataclass(frozen=True)
class EngineKind:
    """What holds of every use of an engine."""

    title: str
    asked_for: bool = True
    """A user may name it with --engine."""
    on_host: bool = False
    """A trial is a plain process, with the processors of the process that starts it."""
    in_order: bool = True
    """Trials run one after another, as they were planned."""


ENGINES: Mapping[EngineName, EngineKind] = {
    "docker": EngineKind("Docker Engine"),
    "podman": EngineKind("Podman"),
    "venv": EngineKind("a virtual environment", on_host=True),
    "here": EngineKind("the image around us", on_host=True),
    "slurm": EngineKind("SLURM", asked_for=False, in_order=False),
    "fake": EngineKind("a fake engine of the tests", asked_for=False),
}

CHOICES: tuple[EngineName, ...] = tuple(name for name, kind in ENGINES.items() if kind.asked_for)
