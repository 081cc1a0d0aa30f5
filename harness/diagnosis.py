"""What the doctor looks at, and what it finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from harness.facts import EngineFacts
from harness.machine.around import Answered, CardAccess, Disk
from harness.machine.selection import Selection
from harness.record import Load, Machine

Level = Literal["ok", "warn", "problem"]

GIB = 2**30
TITLES = {"docker": "Docker Engine", "podman": "Podman"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at; `remedy` says what to do where it is not well."""

    level: Level
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class DataNeed:
    """A data set that the plan reads. `download_bytes` is what is still to be fetched."""

    name: str
    at_hand: bool
    download_bytes: int = 0
    may_be_generated: bool = False
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan will need. Null is what nobody can tell."""

    plan: str
    image: str
    built: bool
    trials: int
    trial_seconds: float | None = None
    build_seconds: float | None = None
    build_bytes: int = 0
    shared_memory_bytes: int = 0
    left_out: int = 0
    """Trials that the budget or this machine leaves out."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """All that the diagnosis stands on. `engine` will be used; null is the virtual environment."""

    machine: Machine
    selection: Selection
    load: Load
    engine: EngineFacts | None
    refused: tuple[str, ...] = ()
    """Why each other engine was passed over."""
    access: CardAccess = field(default_factory=CardAccess)
    silent_cards: tuple[str, ...] = ()
    image_problem: str = ""
    """Why no image serves the card, in a sentence; empty where one does."""
    disks: tuple[Disk, ...] = ()
    data: tuple[DataNeed, ...] = ()
    answered: tuple[Answered, ...] = ()


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything found, in the order in which a person would ask."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Whether nothing stands in the way."""
        return not any(finding.level == "problem" for finding in self.findings)


def size(count: int) -> str:
    """A number of bytes for a person."""
    if count >= GIB:
        return f"{count / GIB:.1f} GiB"
    return f"{count / 2**20:.0f} MiB" if count >= 2**20 else f"{count / 1024:.0f} KiB"
