"""Jobs that ended before they looked at any node: each is written down where it was sent, for its record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from harness.engine.base import Exit
from harness.engine.slurm.scheduler import JobId, SchedulerState
from harness.machine import look
from harness.record import Load
from harness.run.assemble import Started
from harness.run.in_flight import FILE as STARTED
from harness.run.jobs import submission as kept
from harness.run.jobs.follow import Attempt, Place
from harness.run.jobs.node import keep, own_session, read_job_spec

WHERE = "it ran on no node, and the machine told here is the one that sent it"
NO_LOOK = "its job looked at no node"
UNSEEN = "it ended before it looked at its node, and the machine told here is the one that sent it"


def ended(
    jobs: Path, found: Iterable[Place], forgotten: Mapping[tuple[JobId, int], SchedulerState]
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
        attempt = Attempt(trial, number, batch, batch.task_of(trial), work, over=True, last_of_job=True)
        yield attempt, Exit(code=None, log="", cause=told.cause, said=f"{told.words}; {WHERE}")


def before_its_look(exit: Exit) -> Exit:
    """The end of a job that stood on a node and did not come to look at it: no fault of its trial."""
    said = exit.said or (f"its job ended with {exit.code}" if exit.code else "its job said nothing")
    return replace(exit, cause=exit.cause or "node-failed", said=f"{said}; {UNSEEN}", missing=False)


def _why(place: Place, forgotten: Mapping[tuple[JobId, int], SchedulerState]) -> SchedulerState | None:
    batch = place.batch
    if place.state is not None and place.state.cause is not None:
        return SchedulerState(place.state.cause, f"the scheduler says {place.state.word}")
    # One whose number was lost may never have been sent.
    if place.state is not None or batch.by_hand or batch.id is None:
        return None
    if batch.given_up:
        return SchedulerState("cancelled", "it was cancelled by `invoke jobs --cancel`")
    unknown = SchedulerState("engine-gone", "the scheduler knows nothing of it any more")
    return forgotten.get((batch.id, batch.task_of(place.trial)), unknown)


def write_down(jobs: Path, gone: Iterable[tuple[Attempt, Exit]]) -> Iterator[tuple[Started, Attempt, Exit]]:
    """Of each attempt that looked at no node its beginning, as if it had begun and ended now."""
    machine = None
    for attempt, exit in gone:
        work = attempt.work
        (work / "out").mkdir(parents=True, exist_ok=True)
        (work / "job").touch()
        job = read_job_spec(jobs, attempt.trial)
        machine = machine or look(job.label)[0].model_copy(update={"declared": job.declared})
        session = own_session(jobs, job, machine).id
        started = job.started(attempt.number, session, machine, Load(unknown_because=NO_LOOK))
        keep(work / STARTED, started.model_dump_json())
        yield started, attempt, exit
