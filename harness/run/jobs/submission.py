"""A plan that was sent to a scheduler, as it lies on the disk: whoever reads it, after any restart, goes on.

results/.state/jobs/<id>/submission.json    what was asked, and the batches as they were sent
                         orders/            of each trial what its job needs to know
                         batch-<n>.sh       each batch script as it was sent, with its logs beside it
                         machines/          of each node that a job began on, its own session, without trials
                         work/              a folder for each attempt
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from harness import files
from harness.engine.slurm.scheduler import ClusterJob
from harness.engine.slurm.site import Site
from harness.errors import Busy, RecordError, UserError
from harness.record import Load, Machine, Model, Session, TrialSpec, store
from harness.record.machine import Declared
from harness.run.assemble import Started, TrialJob

FILE = "submission.json"
ENDED = "ended"
"""Beside what an attempt measured: what its job knows of its own end."""
COLLECTED = "collected"
"""Beside it: that its record is written, or why it can have none."""


class JobSpec(TrialJob):
    """orders/<trial>.json: what a job needs to know of its trial."""

    label: str | None = None
    declared: tuple[Declared, ...] = ()
    devices: int
    """How many devices the trial has on each of its nodes."""
    folders: tuple[str, ...] = ()
    """Folders of its nodes that it reads: without one of them it does not begin."""
    warm: TrialSpec | None = None
    """The short trial that fills the caches first."""

    def started(
        self, attempt: int, session: str, machine: Machine, load: Load, cards: tuple[int, ...] = ()
    ) -> Started:
        """Return the beginning of an attempt now on a machine; its block is known when it ends."""
        return Started(
            **{name: getattr(self, name) for name in TrialJob.model_fields},
            attempt=attempt,
            session=session,
            block=1,
            started_at=datetime.now(UTC),
            machine=machine,
            cards_given=cards,
            load=load,
        )


class Submission(Model):
    """submission.json"""

    submission: Literal[3] = 3
    whole: Session
    """The plan over all machines: its trials in their order. The sessions of the nodes are parts of it."""
    site: Site
    batches: tuple[ClusterJob, ...] = ()

    @property
    def id(self) -> str:
        """Return the date and six hex digits."""
        return self.whole.id


def jobs_folder(root: Path) -> Path:
    """Return the folder of this clone's submissions."""
    return store.clone_state_folder(root) / "jobs"


def submission_folder(root: Path, submission_id: str) -> Path:
    """Return one submission's folder."""
    return jobs_folder(root) / submission_id


def attempt_folder(jobs: Path, trial: str, attempt: int) -> Path:
    """Return one attempt's folder."""
    return jobs / "work" / f"{trial}.a{attempt}"


def begun_attempts(jobs: Path) -> dict[str, list[int]]:
    """Return the numbers of each trial's attempts that began, in order, by one look at the folder."""
    numbers: dict[str, list[int]] = {}
    work = jobs / "work"
    for path in work.iterdir() if work.is_dir() else ():
        trial, mark, number = path.name.rpartition(".a")
        if mark and number.isdigit():
            numbers.setdefault(trial, []).append(int(number))
    return {trial: sorted(found) for trial, found in numbers.items()}


def write_submission(root: Path, submission: Submission) -> None:
    """Keep it in place of what it was."""
    text = submission.model_dump_json(indent=1) + "\n"
    store.write_whole(submission_folder(root, submission.id) / FILE, text, replace=True)


def read_submission(root: Path, submission_id: str) -> Submission:
    """Return one submission; raises RecordError where it cannot be read."""
    path = submission_folder(root, submission_id) / FILE
    where = path.relative_to(root).as_posix()
    try:
        text = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RecordError(f"there is no submission '{submission_id}'", remedy="see `invoke jobs`") from None
    return Submission.parse(text, where)


def _open_mark(root: Path, submission_id: str) -> Path:
    """Return the file by which a submission is open; `*`: of all."""
    return jobs_folder(root) / "open" / f"{submission_id}.txt"


def open_submissions(root: Path) -> tuple[Submission, ...]:
    """Return the open submissions of all plans, in the order in which they began.

    Raises UserError in a clone from which another user sends: a scheduler tells each of their own jobs alone.
    """
    if jobs_folder(root).is_dir() and jobs_folder(root).stat().st_uid != os.getuid():
        raise UserError("another user sends jobs from this clone", remedy="make a clone of your own")
    every = _open_mark(root, "*")
    found = (read_submission(root, path.stem) for path in every.parent.glob(every.name))
    return tuple(sorted(found, key=lambda each: each.whole.started_at))


def begin_submission(root: Path, submission: Submission) -> None:
    """Keep a new submission. An earlier one of its plan stays open while it has jobs."""
    write_submission(root, submission)
    store.write_whole(_open_mark(root, submission.id), submission.id + "\n", replace=True)


def is_replaced(root: Path, submission: Submission) -> bool:
    """Return whether a later one of the same plan goes on in its place."""
    alike = [each for each in open_submissions(root) if each.whole.plan == submission.whole.plan]
    return any(each.whole.started_at > submission.whole.started_at for each in alike)


def close_submission(root: Path, submission: Submission) -> None:
    """Close a submission of which no job is left to follow."""
    _open_mark(root, submission.id).unlink(missing_ok=True)


def submissions_lock(root: Path) -> AbstractContextManager[None]:
    """Return the lock under which one line at a time sends, collect or cancels; raises Busy for a second."""
    busy = Busy("another shell sends or collects jobs in this clone", remedy="wait for it to end")
    return files.hold_lock(jobs_folder(root) / "lock", busy)
