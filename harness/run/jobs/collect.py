"""What became of each attempt, and its record, in the session of the machine that it ran on.

Why an attempt ended is said by the most telling source. A job that ended before it looked at any node is
written down where it was sent, for its record.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.engine.interface import GONE, Exit
from harness.engine.local import LOG, log_tail
from harness.engine.slurm.scheduler import ClusterJob, Slurm, TaskState
from harness.errors import RecordError
from harness.machine.fingerprint import look_at_machine
from harness.record import Load, Machine, Record, Session, store
from harness.run import blocks
from harness.run.assemble import MEASUREMENT, STARTED, SayLine, Started, conclude_attempt
from harness.run.jobs import submission as kept
from harness.run.jobs.node import machine_session, read_job_spec, write_line
from harness.run.jobs.submission import COLLECTED, ENDED, JobSpec, Submission
from harness.run.missing import Missing, grow_sweeps, missing_trials

WHERE = "it ran on no node, and the machine named here is the one that sent it"
NO_LOOK = "its job looked at no node"
UNSEEN = "it ended before it looked at its node, and the machine named here is the one that sent it"


@dataclass(frozen=True, slots=True)
class Collected:
    """The records that one command collected, and the state of the submission after it."""

    submission: Submission
    records: tuple[Record, ...]
    missing: tuple[Missing, ...]
    """Trials that the plan lacks, whether or not a job of theirs is under way."""
    in_flight: frozenset[str]
    """Trials whose jobs wait or run."""
    replaced: bool
    """Whether a later submission goes on in its place."""


def collect_records(
    root: Path, submission: Submission, scheduler: Slurm, found: tuple[Place, ...], say: SayLine
) -> Collected:
    """Write the records of all attempts that are over. It may be called again at any time."""
    jobs = kept.submission_folder(root, submission.id)
    over = [(place, each) for place in found for each in place.attempts if each.over and not each.collected]
    ends = [(place, each, attempt_exit(jobs, each, place, scheduler)) for place, each in over]
    ends += _absent_attempts(jobs, found)
    machine = None
    written = []
    for place, attempt, exit in ends:
        started = _read_started(attempt.work)
        if started is None:
            exit = _unseen_exit(exit) if place.attempts else exit
            job = read_job_spec(jobs, place.trial)
            machine = machine or look_at_machine(job.label)[0].model_copy(update={"declared": job.declared})
            started = _write_started(jobs, job, attempt, machine)
        written.append((started, place, attempt, exit))
    begun: dict[str, set[str]] = {}
    for started, place, _, _ in written:
        begun.setdefault(started.machine.id, set()).add(place.trial)
    homes = {machine: _Home(root, submission, machine, trials) for machine, trials in begun.items()}
    new = []
    for started, place, attempt, exit in sorted(written, key=lambda item: item[0].started_at):
        record = homes[started.machine.id].bring(place, attempt, started, exit, say)
        new += [record] if record else []
        (attempt.work / COLLECTED).touch()
    return _close_if_complete(root, submission, tuple(new), found)


def _read_started(work: Path) -> Started | None:
    try:
        return Started.parse((work / STARTED).read_bytes(), STARTED)
    except (FileNotFoundError, RecordError):
        return None


class _Home:
    """One machine's session of a submission, as far as its records are written.

    It has the plan's trials that began on the machine; `begun` are the trials that are now over.
    """

    def __init__(self, root: Path, submission: Submission, machine: str, begun: Collection[str]) -> None:
        path = kept.submission_folder(root, submission.id) / "machines" / f"{machine}.json"
        session = _read_session(root, path)
        there = {trial.id for trial in session.trials}
        new = [trial for trial in submission.whole.trials if trial.id in begun and trial.id not in there]
        block_of = submission.whole.block_of
        blocks = (*session.blocks, *(block_of.get(trial.id, 1) for trial in new))
        self.root = root
        self.session = session.model_copy(update={"trials": (*session.trials, *new), "blocks": blocks})
        self.records = [each.record for each in store.session_records(root, session)]
        if new:
            store.write_session(root, self.session)
            store.keep_as_own(root, self.session.id)

    def bring(
        self, place: Place, attempt: Attempt, started: Started, exit: Exit, say: SayLine
    ) -> Record | None:
        """Write an attempt's record; null where an earlier line was cut short after it did."""
        folder = store.session_folder(self.root, self.session)
        if (folder / store.record_name(place.trial, attempt.number)).exists():
            return None
        elapsed = end_time(attempt) - started.started_at
        number = blocks.block_number(self.session, started.trial, self.records, started.started_at)
        record = conclude_attempt(
            self.root,
            self.session,
            started.model_copy(update={"block": number}),
            attempt.work,
            exit,
            say,
            wall_seconds=max(0.0, elapsed.total_seconds()),
        )
        self.records.append(record)
        return record


def _read_session(root: Path, path: Path) -> Session:
    """Return a machine's session as it is written, or as it begins."""
    fresh = Session.parse(path.read_bytes(), path.name)
    path = store.session_folder(root, fresh) / "session.json"
    return Session.parse(path.read_bytes(), path.name) if path.is_file() else fresh


def submission_records(root: Path, submission: Submission) -> tuple[Record, ...]:
    """Return all records of a submission, of every machine that it ran on."""
    folder = kept.submission_folder(root, submission.id) / "machines"
    records: list[Record] = []
    for path in sorted(folder.glob("*.json")):
        records += [each.record for each in store.session_records(root, _read_session(root, path))]
    return tuple(records)


def _close_if_complete(
    root: Path, submission: Submission, new: tuple[Record, ...], found: tuple[Place, ...]
) -> Collected:
    """Return what is missing now; close it where that is nothing, or a later one's with no job under way."""
    records = submission_records(root, submission)
    whole = grow_sweeps(submission.whole, records)
    if whole is not submission.whole:
        submission = submission.model_copy(update={"whole": whole})
        kept.write_submission(root, submission)
    missing = missing_trials(whole, records)
    replaced = kept.is_replaced(root, submission)
    in_flight = frozenset(place.trial for place in found if place.in_flight)
    if not missing or (replaced and not in_flight):
        kept.close_submission(root, submission)
    return Collected(submission, new, missing, in_flight, replaced)


def _absent_attempts(jobs: Path, found: Iterable[Place]) -> Iterator[tuple[Place, Attempt, Exit]]:
    """Yield an attempt for each trial whose newest place had none, and why it never began."""
    newest = {place.trial: place for place in found}
    for place in newest.values():
        exit = _absence_exit(place)
        if place.attempts or place.in_flight or exit is None:
            continue
        number = place.batch.attempts[place.batch.task_index(place.trial)]
        work = kept.attempt_folder(jobs, place.trial, number)
        attempt = Attempt(number, work, over=True, last_of_job=True)
        yield place, attempt, replace(exit, said=f"{exit.said}; {WHERE}")


def _absence_exit(place: Place) -> Exit | None:
    batch = place.batch
    if place.state is not None and place.state.cause is not None:
        return Exit(cause=place.state.cause, said=f"the scheduler says {place.state.word}")
    # One whose number was lost may never have been sent.
    if place.state is not None or batch.job is None:
        return None
    if batch.given_up:
        return Exit(cause="cancelled", said="it was cancelled by `invoke jobs --cancel`")
    return Exit(cause="engine-gone", said="the scheduler knows nothing of it any more")


def _unseen_exit(exit: Exit) -> Exit:
    """Return why a job ended that stood on a node and did not look at it: no fault of its trial."""
    said = exit.said if exit.cause != GONE.cause else ""
    said = said or (f"its job ended with {exit.code}" if exit.code else "its job said nothing")
    cause = "node-failed" if exit.cause in (None, GONE.cause) else exit.cause
    return replace(exit, cause=cause, said=f"{said}; {UNSEEN}")


def _write_started(jobs: Path, job: JobSpec, attempt: Attempt, machine: Machine) -> Started:
    """Write down an attempt that looked at no node, as if it had begun and ended now."""
    (attempt.work / "out").mkdir(parents=True, exist_ok=True)
    (attempt.work / "job").touch()
    session = machine_session(jobs, machine).id
    started = job.started(attempt.number, session, machine, Load(unknown_because=NO_LOOK))
    write_line(attempt.work / STARTED, started.model_dump_json())
    return started


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
        """Return whether its record is written, or it can have none."""
        return (self.work / COLLECTED).exists()


@dataclass(frozen=True, slots=True)
class Place:
    """One trial of one batch: the state that its scheduler reports, and the attempts that began."""

    trial: str
    batch: ClusterJob
    state: TaskState | None
    in_flight: bool
    attempts: tuple[Attempt, ...]


def trial_places(root: Path, submission: Submission, answer: QueueAnswer) -> tuple[Place, ...]:
    """Return each trial of each batch, in the order in which they were sent."""
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
    places = []
    for batch in submission.batches:
        for trial in batch.trials:
            numbers = [n for n in begun.get(trial, ()) if owner[trial, n] == batch.name]
            state = states.get((batch.name, batch.task_index(trial)))
            places.append(_trial_place(jobs, batch, trial, numbers, state, answer))
    return tuple(places)


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
