"""Bringing records home: of each attempt that is over one record, in its machine's own session.

A job that ended before it looked at any node is written down where it was sent, for its record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from harness.engine.interface import GONE, Exit
from harness.engine.slurm.scheduler import Slurm
from harness.errors import RecordError
from harness.machine import look_at_machine
from harness.record import Load, Machine, Record, Session, store
from harness.run import batch_search, session
from harness.run.assemble import SayLine, Started, conclude_attempt
from harness.run.in_flight import FILE as STARTED
from harness.run.jobs import submission as kept
from harness.run.jobs.follow import Attempt, Place, attempt_exit, end_time
from harness.run.jobs.node import machine_session, read_job_spec, write_line
from harness.run.jobs.submission import COLLECTED, JobSpec, Submission

WHERE = "it ran on no node, and the machine named here is the one that sent it"
NO_LOOK = "its job looked at no node"
UNSEEN = "it ended before it looked at its node, and the machine named here is the one that sent it"


@dataclass(frozen=True, slots=True)
class Collected:
    """The records that one command collected, and the state of the submission after it."""

    submission: Submission
    records: tuple[Record, ...]
    missing: tuple[session.Missing, ...]
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
        own = _read_session(root, path)
        there = {trial.id for trial in own.trials}
        new = [trial for trial in submission.whole.trials if trial.id in begun and trial.id not in there]
        block_of = submission.whole.block_of
        blocks = (*own.blocks, *(block_of.get(trial.id, 1) for trial in new))
        self.root = root
        self.session = own.model_copy(update={"trials": (*own.trials, *new), "blocks": blocks})
        self.records = [each.record for each in store.session_records(root, own)]
        if new:
            store.write_session(root, self.session)

    def bring(
        self, place: Place, attempt: Attempt, started: Started, exit: Exit, say: SayLine
    ) -> Record | None:
        """Writes an attempt's record; null where an earlier line was cut short after it did."""
        folder = store.session_folder(self.root, self.session)
        if (folder / store.record_name(place.trial, attempt.number)).exists():
            return None
        elapsed = end_time(attempt) - started.started_at
        number = session.block_number(self.session, started.trial, self.records, started.started_at)
        record = conclude_attempt(
            self.root,
            self.session,
            started.model_copy(update={"block": number}),
            attempt.work,
            exit,
            say,
            earlier=self.records,
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
    """All records of a submission, of every machine that it ran on."""
    folder = kept.submission_folder(root, submission.id) / "machines"
    found: list[Record] = []
    for path in sorted(folder.glob("*.json")):
        found += [each.record for each in store.session_records(root, _read_session(root, path))]
    return tuple(found)


def _close_if_complete(
    root: Path, submission: Submission, new: tuple[Record, ...], found: tuple[Place, ...]
) -> Collected:
    """What is missing now. It is closed where that is nothing, or is another's and no job is under way."""
    records = submission_records(root, submission)
    whole = batch_search.grow_sweeps(submission.whole, records)
    if whole is not submission.whole:
        submission = submission.model_copy(update={"whole": whole})
        kept.write_submission(root, submission)
    missing = session.missing_trials(whole, records)
    replaced = kept.is_replaced(root, submission)
    in_flight = frozenset(place.trial for place in found if place.in_flight)
    if not missing or (replaced and not in_flight):
        kept.close_submission(root, submission)
    return Collected(submission, new, missing, in_flight, replaced)


def _absent_attempts(jobs: Path, found: Iterable[Place]) -> Iterator[tuple[Place, Attempt, Exit]]:
    """The attempt that never was of each trial whose newest place had none, and why."""
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
    """Why one ended that stood on a node and did not come to look at it: no fault of its trial."""
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
