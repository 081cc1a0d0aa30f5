"""What became of the jobs: whether each attempt is over, and why it ended, the most telling source first."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.engine.interface import GONE, Exit
from harness.engine.local import LOG, log_tail
from harness.engine.slurm.scheduler import ClusterJob, Slurm, TaskState
from harness.run.assemble import MEASUREMENT
from harness.run.jobs import submission as kept
from harness.run.jobs.submission import COLLECTED, ENDED, Submission

_BEGINS = re.compile(r"^gpudyno: (\S+) begins$", re.M)
_END_LINE = re.compile(r"^(\S+) (\S+) ([0-9]+\.[0-9]{9})$", re.M)
"""A line that a job writes about its end; a node that dies may leave half of one."""
_LOG_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class QueueAnswer:
    """What the scheduler reported of all jobs, and when it was asked."""

    asked_at: datetime
    states: tuple[TaskState, ...]


def ask_queue(scheduler: Slurm) -> QueueAnswer:
    """Ask once for all of this user's jobs."""
    now = datetime.now(UTC)
    return QueueAnswer(now, scheduler.states())


@dataclass(frozen=True, slots=True)
class Attempt:
    """One that began on a node."""

    number: int
    work: Path
    over: bool
    last_of_job: bool

    @property
    def collected(self) -> bool:
        """Its record is written, or it can have none."""
        return (self.work / COLLECTED).exists()


@dataclass(frozen=True, slots=True)
class Place:
    """One trial of one batch: the state that its scheduler reports, and the attempts that began."""

    trial: str
    batch: ClusterJob
    state: TaskState | None
    in_flight: bool
    attempts: tuple[Attempt, ...]

    @property
    def running(self) -> bool:
        """An attempt has begun and is not over."""
        return any(not attempt.over for attempt in self.attempts)


def trial_places(root: Path, submission: Submission, answer: QueueAnswer) -> tuple[Place, ...]:
    """Each trial of each batch, in the order in which they were sent."""
    jobs = kept.submission_folder(root, submission.id)
    begun = kept.begun_attempts(jobs)
    # Of a trial each attempt is of the last batch whose attempts begin at it or below: one whose jobs never
    # began leaves its numbers to the next.
    owner: dict[tuple[str, int], str] = {}
    for batch in submission.batches:
        for trial, first in zip(batch.trials, batch.attempts, strict=True):
            owner |= {(trial, number): batch.name for number in begun.get(trial, ()) if number >= first}
    # Of two jobs of one name the newer one counts.
    states = {(one.name, one.task): one for one in sorted(answer.states, key=lambda one: one.job)}
    found = []
    for batch in submission.batches:
        for trial in batch.trials:
            numbers = [n for n in begun.get(trial, ()) if owner[trial, n] == batch.name]
            state = states.get((batch.name, batch.task_index(trial)))
            found.append(_trial_place(jobs, batch, trial, numbers, state, answer))
    return tuple(found)


def _trial_place(
    jobs: Path,
    batch: ClusterJob,
    trial: str,
    numbers: Sequence[int],
    state: TaskState | None,
    answer: QueueAnswer,
) -> Place:
    first = batch.attempts[batch.trials.index(trial)]
    attempts = []
    for number in numbers:
        work = kept.attempt_folder(jobs, trial, number)
        last = number == max(numbers)
        over = not last or _is_over(work, batch, state, answer, number - first)
        attempts.append(Attempt(number, work, over, last))
    unheard = state is None and batch.sent_at >= answer.asked_at
    in_flight = unheard or (state is not None and state.standing != "ended")
    if state is not None and state.standing == "running" and attempts and attempts[-1].over:
        # Its job does the rest of its work, or has not reported its end yet: this trial's is done.
        in_flight = attempts[-1].number - first < state.restarts
    return Place(trial, batch, state, in_flight, tuple(attempts))


def _is_over(
    work: Path, batch: ClusterJob, state: TaskState | None, answer: QueueAnswer, restart: int
) -> bool:
    """Return whether a job's newest attempt at a trial has ended, as far as is known."""
    if exit_code(work) is not None:
        return True
    if state is None:
        job = work / "job"
        # By this machine's clock or its file server's; now, where it begins in this moment.
        began = job.stat().st_mtime if job.exists() else time.time()
        return max(batch.sent_at.timestamp(), began) < answer.asked_at.timestamp()
    return state.standing == "ended" or restart < state.restarts


def end_lines(work: Path) -> list[tuple[str, str, float]]:
    """Return what a job wrote about its own end: (code or signal, which, seconds since the epoch)."""
    path = work / ENDED
    lines = _END_LINE.findall(path.read_text()) if path.is_file() else ()
    return [(kind, which, float(seconds)) for kind, which, seconds in lines]


def exit_code(work: Path) -> int | None:
    """Return the code that an attempt ended with; null where its job could not say."""
    codes = (int(value) for kind, value, _ in end_lines(work) if kind == "code")
    return next(codes, None)


def end_time(attempt: Attempt) -> datetime:
    """Return when it ended: as its job says, else when it last wrote anything."""
    reported = [seconds for _, _, seconds in end_lines(attempt.work)]
    written = [path.stat().st_mtime for path in attempt.work.rglob("*") if path.is_file()]
    return datetime.fromtimestamp(max(reported or written), UTC)


def attempt_exit(
    jobs: Path,
    attempt: Attempt,
    place: Place,
    scheduler: Slurm,
) -> Exit:
    """Return how an attempt ended, as its job and its scheduler wrote it, and as the scheduler reports it."""
    code = exit_code(attempt.work)
    log = log_tail(attempt.work / LOG)
    # A step that was cancelled may leave with 0 as well, but has measured nothing.
    if code == 0 and (attempt.work / "out" / MEASUREMENT).exists():
        return Exit(code=0, log=log)
    own_log = _log_part(jobs, attempt, place)
    exit = scheduler.reported_exit(f"{own_log}\n{log}")
    state = place.state if attempt.last_of_job else None
    if exit is None and state is not None and state.cause is not None:
        exit = Exit(cause=state.cause, said=f"the scheduler says {state.word}")
    if exit is None and not attempt.last_of_job:
        # A busy node may not come to write that its job is queued again.
        why = "its node said no more, and the job was" if code is None else "its job was"
        exit = Exit(cause="node-failed" if code is None else "preempted", said=f"{why} queued again")
    if exit is not None:
        return replace(exit, code=code, log=log or own_log)
    gone = code is None and place.state is None
    return replace(GONE if gone else Exit(), code=code, log=log or own_log)


def _log_part(jobs: Path, attempt: Attempt, place: Place) -> str:
    """Return what of a job's output was written while this attempt ran."""
    path = attempt.work / "job"
    number = path.read_text().strip() if path.is_file() else ""
    text = log_tail(jobs / f"log-{number}_{place.batch.task_index(place.trial)}.txt", _LOG_BYTES)
    parts = _BEGINS.split(text)
    of_attempts = dict(zip(parts[1::2], parts[2::2], strict=True))
    return of_attempts.get(f"{place.trial}.a{attempt.number}", "").strip()
