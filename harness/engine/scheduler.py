"""What a cluster's scheduler is: it takes batch scripts, and says what became of their jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from harness.record import Model
from harness.record.result import Reason

Standing = Literal["waiting", "running", "ended"]


class TaskState(Model):
    """One job of a batch as its scheduler tells of it. A batch of one job has task 0."""

    job: int
    task: int
    name: str
    """The batch's."""
    standing: Standing
    word: str
    """The scheduler's own, with its reason where it gives one."""
    cause: Reason | None = None
    """Why it ended; null where it ended by itself."""
    restarts: int = 0
    nodes: str = ""


@dataclass(frozen=True, slots=True)
class SchedulerState:
    """Why a job ended, and in which words."""

    cause: Reason
    words: str


class Scheduler(Protocol):
    """Raises NoEngine where it does not answer."""

    def version(self) -> str | None:
        """Its name and version."""

    def send(self, script: Path) -> int:
        """Sends a batch script, and returns its job's number; raises UserError with what was refused."""

    def states(self) -> tuple[TaskState, ...]:
        """All of this user's jobs that it still knows of, by one question."""

    def accounted(self, jobs: Sequence[int]) -> dict[tuple[int, int], SchedulerState]:
        """By job and task why it ended, of jobs that it forgot; empty where no accounting runs."""

    def cancel(self, jobs: Sequence[int]) -> None:
        """Ends jobs that wait or run; says nothing of those that have ended."""

    def nodes(self, partition: str | None) -> tuple[str, ...]:
        """The nodes of a partition that take jobs."""

    def told(self, log: str) -> SchedulerState | None:
        """What the scheduler wrote into a job's own output about its end."""
