"""What an engine is, which starts, watches and stops trials."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from harness.engine.container import RunSpec, User
from harness.engines import EngineName
from harness.image.images import Image
from harness.record import Environment, Model
from harness.record.result import Reason


class Handle(Model):
    """How a trial is found again: a container's id, or a process id with its start time (seconds, epoch)."""

    engine: EngineName
    container: str | None = None
    pid: int | None = None
    process_started: float | None = None


@dataclass(frozen=True, slots=True)
class Exit:
    """The trial has ended. `code` is null where no process of ours saw the end."""

    code: int | None = None
    log: str = ""
    cause: Reason | None = None
    """What an engine or a scheduler says that it ended the trial for; null where it ended by itself."""
    said: str = ""
    """Their words for it."""


GONE = Exit(cause="engine-gone", said="the engine knows nothing of it any more")


@dataclass(frozen=True, slots=True)
class Built:
    """An environment that trials can start in."""

    environment: Environment
    interpreter: Path | None = None


class Say(Protocol):
    """Shows a person how far a long wait is."""

    def __call__(self, line: str, done: int = 0, total: int | None = None) -> None:
        """Show one line of news; `done` of `total` moves the bar, a null total leaves it."""


class Engine(Protocol):
    """Raises NoEngine where its service does not answer, NotBuilt where the environment is missing."""

    @property
    def name(self) -> EngineName:
        """Return which engine it is, as records name it."""

    def check(self, image: Image) -> None:
        """Raise MachineError where the environment of an image is not made, and cannot be here."""

    def build(self, image: Image, say: Say) -> Built:
        """Make the environment of an image, or find it made."""

    def expected_environment(self, image: Image) -> Built:
        """Return the environment as it is or would be built: what trials are named by before anything is."""

    def built_environment(self, image: Image) -> Built:
        """Return the environment of an image; raises NotBuilt."""

    def user(self) -> User:
        """Return who trials run as inside."""

    def start(self, spec: RunSpec) -> Handle:
        """Start one attempt of a trial."""

    def pid(self, handle: Handle) -> int | None:
        """Return the trial's first process as this host numbers it; null where the engine does not say."""

    def find(self, name: str, work: Path) -> Handle | None:
        """Return an attempt that was started under this name and whose handle was never written."""

    def poll(self, handle: Handle, work: Path) -> Exit | None:
        """Return how the trial ended; null while it still runs. `work` is its work folder."""

    def stop(self, handle: Handle, work: Path) -> None:
        """End the trial and wait until it is gone."""

    def forget(self, handle: Handle, work: Path) -> None:
        """Remove what an ended trial leaves with the engine."""
