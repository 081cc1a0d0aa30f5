"""Bringing records home: of each attempt that is over one record, in its machine's own session.

A job that ended before it looked at any node is written down where it was sent, for its record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.engine.base import GONE, Exit
from harness.engine.slurm.scheduler import Slurm
from harness.errors import RecordError
from harness.machine import look
from harness.record import Load, Record, Session, store
from harness.run import batch_search, session
from harness.run.assemble import Started
from harness.run.conclude import SayLine, conclude
from harness.run.in_flight import FILE as STARTED
from harness.run.jobs import submission as kept
from harness.run.jobs.follow import Attempt, Place, ended_at, ending
from harness.run.jobs.node import keep, own_session, read_job_spec
from harness.run.jobs.submission import COLLECTED, Submission

WHERE = "it ran on no node, and the machine told here is the one that sent it"
NO_LOOK = "its job looked at no node"
UNSEEN = "it ended before it looked at its node, and the machine told here is the one that sent it"


@dataclass(frozen=True, slots=True)
class Collected:
    """What one line brought home, and how the submission stands after it."""

    submission: Submission
    records: tuple[Record, ...]
    missing: tuple[session.Missing, ...]
    """Trials that the plan lacks, whether or not a job of theirs is under way."""
    in_flight: frozenset[str]
    """Trials whose jobs wait or run."""
    replaced: bool
    """A later submission goes on in its place."""


def collect(
    root: Path, submission: Submission, scheduler: Slurm, found: tuple[Place, ...], say: SayLine
) -> Collected:
    """Write the records of all attempts that are over. It may be called again at any time."""
    jobs = kept.folder(root, submission.id)
    over = [(place, each) for place in found for each in place.attempts if each.over and not each.collected]
    accounted = _accounted(scheduler, over, found)
    ends, unlooked = [], []
    for place, each in over:
        exit, started = ending(jobs, each, place, scheduler, accounted), _started(each.work)
        if started is not None:
            ends.append((started, each, exit))
        else:
            # It stood on a node and did not come to look at it: no fault of its trial.
            said = (exit.said if exit.cause != GONE.cause else "") or (
                f"its job ended with {exit.code}" if exit.code else "its job said nothing"
            )
            cause = "node-failed" if exit.cause in (None, GONE.cause) else exit.cause
            unlooked.append((each, replace(exit, cause=cause, said=f"{said}; {UNSEEN}")))
    ends += _write_down(jobs, (*unlooked, *_never_began(jobs, found, accounted)))
    begun: dict[str, set[str]] = {}
    for started, each, _ in ends:
        begun.setdefault(started.machine.id, set()).add(each.trial)
    homes = {machine: _Home(root, submission, machine, trials) for machine, trials in begun.items()}
    new = []
    for started, attempt, exit in sorted(ends, key=lambda item: item[0].started_at):
        record = homes[started.machine.id].bring(attempt, started, exit, say)
        new += [record] if record else []
        (attempt.work / COLLECTED).touch()
    return _stand(root, submission, tuple(new), found)


def _accounted(
    scheduler: Slurm, over: Sequence[tuple[Place, Attempt]], found: Sequence[Place]
) -> Mapping[tuple[int, int], Exit]:
    """What accounting knows of the jobs that their scheduler forgot and that told nothing themselves."""
    silent = [place for place, attempt in over if attempt.code is None]
    silent += [place for place in found if not (place.attempts or place.in_flight)]
    forgotten = {place.batch.job for place in silent if place.state is None and place.batch.job is not None}
    return scheduler.accounted(forgotten) if forgotten else {}


def _started(work: Path) -> Started | None:
    try:
        return Started.parse((work / STARTED).read_bytes(), STARTED)
    except (FileNotFoundError, RecordError):
        return None


class _Home:
    """One machine's session of a submission, as far as its records are written.

    It has those of the plan's trials that began on the machine; `begun` are those that are now over.
    """

    def __init__(self, root: Path, submission: Submission, machine: str, begun: Collection[str]) -> None:
        path = kept.folder(root, submission.id) / "machines" / f"{machine}.json"
        own = _session(root, path)
        there = {trial.id for trial in own.trials}
        new = [trial for trial in submission.whole.trials if trial.id in begun and trial.id not in there]
        block_of = submission.whole.block_of
        blocks = (*own.blocks, *(block_of.get(trial.id, 1) for trial in new))
        self.root = root
        self.session = own.model_copy(update={"trials": (*own.trials, *new), "blocks": blocks})
        self.records = [each.record for each in store.session_records(root, own)]
        if new:
            store.write_session(root, self.session)

    def bring(self, attempt: Attempt, started: Started, exit: Exit, say: SayLine) -> Record | None:
        """Writes an attempt's record; null where an earlier line was cut short after it did."""
        folder = store.session_folder(self.root, self.session)
        if (folder / store.record_name(attempt.trial, attempt.number)).exists():
            return None
        elapsed = ended_at(attempt) - started.started_at
        number = session.block(self.session, started.trial, self.records, started.started_at)
        record = conclude(
            self.root,
            self.session,
            started.model_copy(update={"block": number}),
            attempt.work,
            exit,
            say,
            earlier=self.records,
            wall_seconds=max(0.0, elapsed.total_seconds()),
            asked_at=attempt.batch.sent_at,
        )
        self.records.append(record)
        return record


def _session(root: Path, path: Path) -> Session:
    """Return a machine's session as it is written, or as it begins."""
    fresh = Session.parse(path.read_bytes(), path.name)
    path = store.session_folder(root, fresh) / "session.json"
    return Session.parse(path.read_bytes(), path.name) if path.is_file() else fresh


def records_of(root: Path, submission: Submission) -> tuple[Record, ...]:
    """All records of a submission, of every machine that it ran on."""
    folder = kept.folder(root, submission.id) / "machines"
    found: list[Record] = []
    for path in sorted(folder.glob("*.json")):
        found += [each.record for each in store.session_records(root, _session(root, path))]
    return tuple(found)


def _stand(
    root: Path, submission: Submission, new: tuple[Record, ...], found: tuple[Place, ...]
) -> Collected:
    """What is missing now. It is closed where that is nothing, or is another's and no job is under way."""
    records = records_of(root, submission)
    whole = batch_search.grown(submission.whole, records)
    if whole is not submission.whole:
        submission = submission.model_copy(update={"whole": whole})
        kept.write(root, submission)
    missing = session.missing(whole, records)
    replaced = kept.replaced(root, submission)
    in_flight = frozenset(place.trial for place in found if place.in_flight)
    if not missing or (replaced and not in_flight):
        kept.close(root, submission)
    return Collected(submission, new, missing, in_flight, replaced)


def _never_began(
    jobs: Path, found: Iterable[Place], forgotten: Mapping[tuple[int, int], Exit]
) -> Iterator[tuple[Attempt, Exit]]:
    """The attempt that never was of each place in which none began, and why; of each trial the newest alone.

    `forgotten` is what accounting tells of jobs that their scheduler knows no more.
    """
    newest = {place.trial: place for place in found}
    for place in newest.values():
        told = _why(place, forgotten)
        if place.attempts or place.in_flight or told is None:
            continue
        batch, trial = place.batch, place.trial
        number = batch.attempts[batch.trials.index(trial)]
        work = kept.work_folder(jobs, trial, number)
        attempt = Attempt(trial, number, batch, work, over=True, last_of_job=True)
        yield attempt, replace(told, said=f"{told.said}; {WHERE}")


def _why(place: Place, forgotten: Mapping[tuple[int, int], Exit]) -> Exit | None:
    batch = place.batch
    if place.state is not None and place.state.cause is not None:
        return Exit(cause=place.state.cause, said=f"the scheduler says {place.state.word}")
    # One whose number was lost may never have been sent.
    if place.state is not None or batch.job is None:
        return None
    if batch.given_up:
        return Exit(cause="cancelled", said="it was cancelled by `invoke jobs --cancel`")
    unknown = Exit(cause="engine-gone", said="the scheduler knows nothing of it any more")
    return forgotten.get((batch.job, batch.task_of(place.trial)), unknown)


def _write_down(jobs: Path, gone: Iterable[tuple[Attempt, Exit]]) -> Iterator[tuple[Started, Attempt, Exit]]:
    """Write down each attempt that looked at no node, as if it had begun and ended now."""
    machine = None
    for attempt, exit in gone:
        work = attempt.work
        (work / "out").mkdir(parents=True, exist_ok=True)
        (work / "job").touch()
        job = read_job_spec(jobs, attempt.trial)
        machine = machine or look(job.label)[0].model_copy(update={"declared": job.declared})
        session = own_session(jobs, machine).id
        started = job.started(attempt.number, session, machine, Load(unknown_because=NO_LOOK))
        keep(work / STARTED, started.model_dump_json())
        yield started, attempt, exit
