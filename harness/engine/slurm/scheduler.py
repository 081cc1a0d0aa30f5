"""SLURM's commands: the only place that runs them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import AwareDatetime

from harness.engine.interface import Exit
from harness.errors import NoEngine, UserError
from harness.files import last_line
from harness.record import Model
from harness.record.result import Reason

_ANSWER_SECONDS = 60.0

_WAITING = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
_CAUSES: Mapping[str, Reason] = {
    "BOOT_FAIL": "node-failed",
    "CANCELLED": "cancelled",
    "DEADLINE": "timeout",
    "NODE_FAIL": "node-failed",
    "OUT_OF_MEMORY": "out-of-memory",
    "PREEMPTED": "preempted",
    "REVOKED": "cancelled",
    "TIMEOUT": "timeout",
}
_ENDED = frozenset({"COMPLETED", "FAILED", *_CAUSES})

_WIDTHS = {"ArrayJobID": 16, "ArrayTaskID": 16, "State": 20, "RestartCnt": 12, "Name": 64, "NodeList": 40}
"""Columns of squeue, and Reason as the last one: it alone holds spaces."""

_CUT = re.compile(
    r"^slurmstepd\S*: error: \*\*\* JOB \d+ ON \S+ CANCELLED AT \S+(?: DUE TO (?P<why>[A-Z ,-]+))? \*\*\*",
    re.M,
)
_NUMBER = re.compile(r"[0-9]{1,18}")
_SENT = re.compile(r"(?:Submitted batch job )?(?P<number>[0-9]{1,18})(?:;\S+| on cluster \S+)?")
"""One line of sbatch's answer, with --parsable and without: a site's wrapper may drop that and say more."""
_OUT_OF_MEMORY = re.compile(r"\bdetected \d+ oom[-_]kill event", re.IGNORECASE)
_WHY: Mapping[str, Reason] = {
    "TIME LIMIT": "timeout",
    "PREEMPTION": "preempted",
    "JOB REQUEUE": "preempted",
    "NODE FAILURE": "node-failed",
}

_KEPT_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TMPDIR",
    "MODULEPATH",
    "GPUDYNO_STATE",
    "XDG_STATE_HOME",
)


QueueStanding = Literal["waiting", "running", "ended"]


class TaskState(Model):
    """One job of a batch as its scheduler reports it. A batch of one job has task 0."""

    job: int
    task: int
    name: str
    """The batch's."""
    standing: QueueStanding
    word: str
    """The scheduler's own, with its reason where it gives one."""
    cause: Reason | None = None
    """Why it ended; null where it ended by itself."""
    restarts: int = 0
    nodes: str = ""


class ClusterJob(Model):
    """A batch's job, written down before it is sent: it is found by its name where its number was lost."""

    name: str
    trials: tuple[str, ...]
    attempts: tuple[int, ...]
    sent_at: AwareDatetime
    job: int | None = None
    """Null where the number was lost."""
    given_up: bool = False
    """It was cancelled from here."""

    def task_index(self, trial: str) -> int:
        """Return which of the job's tasks a trial is."""
        return self.trials.index(trial)


@dataclass(frozen=True, slots=True)
class Slurm:
    """The SLURM whose commands are on PATH."""

    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))

    def send(self, script: Path) -> int:
        """Submit a script and return the job's number; raises UserError where sbatch refuses it."""
        code, output, error = self._run("sbatch", "--parsable", str(script))
        if code != 0:
            why = last_line(error)
            raise UserError(
                f"sbatch refused '{script.name}': {why}", remedy="change the site profile, or the script"
            )
        lines = (_SENT.fullmatch(line.strip()) for line in output.splitlines())
        numbers = {int(match["number"]) for match in lines if match}
        if len(numbers) != 1:
            raise NoEngine(
                f"sbatch took '{script.name}' and answered {output[:80]!r}, which names no one job",
                remedy="give the same line again: it goes on with that job",
            )
        return numbers.pop()

    def states(self) -> tuple[TaskState, ...]:
        """Ask squeue once for all jobs, those included that ended a short while ago."""
        columns = ",".join([*(f"{name}:{width}" for name, width in _WIDTHS.items()), "Reason:80"])
        words = ("squeue", "--me", "--states=all", "--array", "--noheader", f"--Format={columns}")
        return tuple(_parse_state(line) for line in self._ask(*words).split("\n") if line.strip())

    def cancel(self, jobs: Collection[int]) -> None:
        """End jobs by scancel."""
        if jobs:
            self._ask("scancel", "--quiet", *map(str, sorted(jobs)))

    def reported_exit(self, log: str) -> Exit | None:
        """Return why SLURM ended a job, as slurmstepd wrote into its output; null where it wrote nothing."""
        if _OUT_OF_MEMORY.search(log):
            return Exit(cause="out-of-memory", said="SLURM's limit of memory ended it")
        cuts = list(_CUT.finditer(log))
        if not cuts:
            return None
        why = cuts[-1]["why"]
        words = f"SLURM ended the job: {why.lower()}" if why else "SLURM was asked to cancel the job"
        return Exit(cause=_WHY.get(why or "", "cancelled"), said=words)

    def _ask(self, *words: str) -> str:
        code, output, error = self._run(*words)
        if code != 0:
            raise NoEngine(
                f"SLURM does not answer {words[0]}: {last_line(error)}", remedy="try it again later"
            )
        return output

    def _run(self, *words: str) -> tuple[int, str, str]:
        kept = {
            name: value
            for name, value in self.environ.items()
            if name in _KEPT_VARIABLES or name.startswith(("SLURM_CONF", "LC_"))
        }
        try:
            done = subprocess.run(words, env=kept, capture_output=True, timeout=_ANSWER_SECONDS, check=False)
        except FileNotFoundError:
            raise NoEngine(
                f"'{words[0]}' is not on PATH: this machine sends no jobs to SLURM",
                remedy="run it on the cluster's login node, or take `invoke run`",
            ) from None
        except subprocess.TimeoutExpired:
            raise NoEngine(
                f"SLURM did not answer {words[0]} for {_ANSWER_SECONDS:.0f} s", remedy="try it again later"
            ) from None
        return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")


def _parse_state(line: str) -> TaskState:
    values: dict[str, str] = {}
    at = 0
    for name, width in _WIDTHS.items():
        values[name] = line[at : at + width].strip()
        at += width
    state, reason = values["State"], line[at:].strip()
    if not _NUMBER.fullmatch(values["ArrayJobID"]):
        raise NoEngine(f"squeue answered {line[:80]!r}, which tells of no job", remedy="try it again later")
    standing: QueueStanding = "waiting" if state in _WAITING else "ended" if state in _ENDED else "running"
    shown = state if reason in ("", "None") else f"{state} ({reason})"
    return TaskState(
        job=int(values["ArrayJobID"]),
        task=_parse_number(values["ArrayTaskID"]),
        name=values["Name"],
        standing=standing,
        word=shown,
        cause=_CAUSES.get(state),
        restarts=_parse_number(values["RestartCnt"]),
        nodes=values["NodeList"],
    )


def _parse_number(text: str) -> int:
    return int(text) if _NUMBER.fullmatch(text) else 0
