"""An engine that answered: which it is, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["docker", "podman"]

TITLES: dict[Kind, str] = {"docker": "Docker Engine", "podman": "Podman"}


@dataclass(frozen=True, slots=True)
class Connection:
    """An engine that answered: which it is by its own component list, and where."""

    kind: Kind
    host: str
    """As DOCKER_HOST has it."""
    version: str | None
    api_version: str
