"""A scheduler in memory: its jobs are made up, and write what real ones do. Some of them go wrong."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from harness.engine.interface import Exit
from harness.engine.slurm.scheduler import Slurm, TaskState
from harness.errors import NoEngine
from harness.run.jobs import node
from tests.helpers.fake_workload import measurement

WRONG = (
    "cancelled before it began",
    "its node died before it looked",
    "its node died",
    "queued again",
    "out of time",
    "forgotten",
    "the trial failed",
)


@dataclass
class FakeScheduler:
    """Each question lets what waits run to its end; `wrong_share` of the jobs go wrong."""

    jobs: Path | None = None
    wrong_share: float = 0.0
    cut_short_at: int | None = None
    """The batch at which the line that sends is cut short, its job being accepted."""
    waits: bool = False
    """Nothing is run: all that was sent waits."""
    random: random.Random = field(default_factory=lambda: random.Random(7))
    waiting: list[tuple[int, int, str, Path, str, int]] = field(default_factory=list)
    told_states: list[TaskState] = field(default_factory=list)
    sent: int = 0
    asked: int = 0
    wrong: dict[str, int] = field(default_factory=dict)

    def send(self, script: Path) -> int:
        """Reads the script as far as a scheduler and bash would."""
        text = script.read_text()
        name = re.search(r"--job-name=(\S+)", text)
        trials = re.search(r"^trials=\((.*?)^\)", text, re.S | re.M)
        attempts = re.search(r"^attempts=\((.*)\)", text, re.M)
        assert name and trials and attempts
        self.sent += 1
        pairs = zip(trials[1].split(), attempts[1].split(), strict=True)
        for task, (trial, attempt) in enumerate(pairs):
            self.waiting.append((self.sent, task, name[1], script.parent, trial, int(attempt)))
        if self.sent == self.cut_short_at:
            raise NoEngine("the line was cut short")
        return self.sent

    def states(self) -> tuple[TaskState, ...]:
        """What it tells, once all that waits has run."""
        self.asked += 1
        if self.waits:
            return (*self.told_states, *(_waiting(*waits) for waits in self.waiting))
        for waits in self.waiting:
            self.told_states += self._run(*waits)
        self.waiting.clear()
        return tuple(self.told_states)

    def cancel(self, jobs: Collection[int]) -> None:
        """Forgets what waits of these jobs."""
        self.waiting = [waits for waits in self.waiting if waits[0] not in jobs]

    def reported_exit(self, log: str) -> Exit | None:
        """As SLURM's."""
        return Slurm({}).reported_exit(log)

    def _run(
        self, job: int, task: int, name: str, jobs: Path, trial: str, attempt: int
    ) -> Iterator[TaskState]:
        how = self.random.choice(WRONG) if self.random.random() < self.wrong_share else ""
        self.wrong[how] = self.wrong.get(how, 0) + 1

        def state(word: str, cause: str | None = None, restarts: int = 0) -> TaskState:
            values = {"job": job, "task": task, "name": name, "standing": "ended", "word": word}
            return TaskState.model_validate({**values, "cause": cause, "restarts": restarts})

        if how == "cancelled before it began":
            yield state("CANCELLED", "cancelled")
            return
        work = self._begin(jobs, job, trial, attempt)
        if how == "its node died before it looked":
            yield state("NODE_FAIL", "node-failed")
            return
        node.begin_attempt(jobs, trial, attempt)
        if how == "its node died":
            yield state("NODE_FAIL", "node-failed")
        elif how == "forgotten":
            return
        elif how == "out of time":
            log = f"gpudyno: {trial}.a{attempt} begins\n"
            log += f"slurmstepd-n1: error: *** JOB {job} ON n1 CANCELLED AT 2026-01-01T00:00:00 "
            (jobs / f"log-{job}_{task}.txt").write_text(log + "DUE TO TIME LIMIT ***\n")
            yield state("TIMEOUT", "timeout")
        elif how == "the trial failed":
            _end(work, 1)
            yield state("FAILED")
        else:
            restarts = 0
            if how == "queued again":
                restarts = 1
                work = self._begin(jobs, job, trial, attempt + 1)
                node.begin_attempt(jobs, trial, attempt + 1)
            asked = json.loads((work / "in" / "trial.json").read_text())["asked"]
            (work / "out" / "measurement.json").write_text(json.dumps(measurement(asked, 20)))
            _end(work, 0)
            yield state("COMPLETED", restarts=restarts)

    def _begin(self, jobs: Path, job: int, trial: str, attempt: int) -> Path:
        work = jobs / "work" / f"{trial}.a{attempt}"
        for inner in ("in", "out"):
            (work / inner).mkdir(parents=True)
        (work / "job").write_text(f"{job}\n")
        return work


def _waiting(job: int, task: int, name: str, *_: object) -> TaskState:
    return TaskState(job=job, task=task, name=name, standing="waiting", word="PENDING")


def _end(work: Path, code: int) -> None:
    (work / "ended").write_text(f"code {code} {2_000_000_000}.000000000\n")
