"""Trials in order, each in a fresh process, each ending in one record; resumed after any interruption."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from harness.engine.base import GONE, Engine, Exit, Running
from harness.engine.container import DeviceRequest, RunSpec
from harness.errors import NoEngine
from harness.plan import own_file
from harness.plan.estimate import warms_up
from harness.record import LeftOut, Load, Machine, Record, Session, TrialSpec, short_hash, store
from harness.record.events import FILE as EVENTS
from harness.record.events import Follower, Progress
from harness.run import batch_search, in_flight, session
from harness.run.assemble import Started, conclude
from harness.run.setting import Setting, warm_up
from harness.telemetry import recorder
from harness.units import counted

POLL_SECONDS = 0.25
GRACE_SECONDS = 30.0
"""The workload ends itself at its limit; the harness steps in this much later."""


class Watcher(Protocol):
    """Shows a person how far the plan is."""

    def trial_begins(self, trial: TrialSpec, number: int, count: int) -> None:
        """Trial `number` of `count` starts."""

    def trial_goes_on(self, progress: Progress) -> None:
        """The trial's newest progress."""

    def trial_ends(self, record: Record) -> None:
        """Its record is written."""

    def say(self, line: str) -> None:
        """One line of news."""


@dataclass(frozen=True, slots=True)
class Job:
    """The trials of one line of `run`: their setting, and what of this machine they get."""

    setting: Setting
    engine: Engine
    machine: Machine
    device: DeviceRequest
    load: Callable[[], Load]
    deadline: float | None = None
    """time.monotonic() by which trials must have ended: none starts that is estimated to end later."""
    estimate: Callable[[TrialSpec, Sequence[Record]], float] = lambda trial, records: 0.0
    """A trial's estimated seconds, where the session has these records by now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one line of `run` did."""

    session: Session
    ran: int
    failed: int
    left: int
    complete: bool


def run(job: Job, opened: Session, watcher: Watcher, *, retry: bool = False) -> Outcome:
    """Runs what a session lacks. Ctrl-C stops the running trial, which no record keeps.

    Raises NoEngine when the engine is gone, after writing what it did to the running trial.
    """
    in_flight.stop_orphans(job.setting.root, opened.id, job.engine, watcher.say)
    ran: list[Record] = _take_up(job, opened, watcher)
    tried: dict[str, int] = {}
    while True:
        records = [stored.record for stored in store.session_records(job.setting.root, opened)]
        grown = batch_search.grown(opened, records)
        if grown is not opened:
            store.write_session(job.setting.root, grown)
        opened = grown
        lacking = [
            item
            for item in session.missing(opened, records, retry=retry)
            if tried.get(item.trial.id, 0) < (session.ATTEMPTS if not retry else 1)
        ]
        if not lacking:
            break
        item = next((item for item in lacking if _in_time(job, item.trial, records)), None)
        if item is None or not _rested(job, opened, item.trial, records, watcher):
            reason = "they would have ended after the budget"
            watcher.say(f"left out: {counted(len(lacking), 'trial')}: {reason}")
            left = LeftOut(what="trials not started", trials=len(lacking), reason=reason)
            opened = opened.model_copy(update={"left_out": (*opened.left_out, left)})
            break
        tried[item.trial.id] = tried.get(item.trial.id, 0) + 1
        done = len(opened.trials) - len(lacking)
        watcher.trial_begins(item.trial, done + 1, len(opened.trials))
        _warm_up(job, opened, item.trial, watcher)
        ran.append(_attempt(job, opened, item, records, watcher))
    return _outcome(job, opened, ran)


def _in_time(job: Job, trial: TrialSpec, records: Sequence[Record], wait_seconds: float = 0.0) -> bool:
    if job.deadline is None:
        return True
    return time.monotonic() + wait_seconds + job.estimate(trial, records) <= job.deadline


def _rested(job: Job, opened: Session, trial: TrialSpec, records: list[Record], watcher: Watcher) -> bool:
    """Waits until the trial's block may begin; whether it still ends in time then."""
    wait = session.rest(opened, trial, records, datetime.now(UTC))
    if not wait:
        return True
    if not _in_time(job, trial, records, wait.total_seconds()):
        return False
    begins = (datetime.now(UTC) + wait).astimezone()
    watcher.say(
        f"the next block of time begins at {begins:%H:%M}, so that an hour lies between; "
        "Ctrl-C, and the same line after that, do as well"
    )
    time.sleep(wait.total_seconds())
    return True


def _outcome(job: Job, opened: Session, ran: list[Record]) -> Outcome:
    records = [stored.record for stored in store.session_records(job.setting.root, opened)]
    opened = session.with_spared(opened, records)
    store.write_session(job.setting.root, opened)
    left = len(session.missing(opened, records))
    if not left:
        session.close(job.setting.root, opened)
        shutil.rmtree(store.state_folder(job.setting.root) / "cache" / opened.id, ignore_errors=True)
    replaced = batch_search.replaced(opened, records)
    failed = sum(record.status == "failed" and record.trial.id not in replaced for record in ran)
    return Outcome(opened, len(ran), failed, left, complete=not left)


def _cache_folder(job: Job, session_id: str, trial: TrialSpec) -> Path:
    """Where a stack's compilers keep what they made: another stack's would be of no use, or wrong."""
    cache = store.state_folder(job.setting.root) / "cache" / session_id
    return cache / f"{trial.asked.environment}-{short_hash(trial.asked.stack)}"


def _spec(job: Job, session_id: str, trial: TrialSpec, attempt: int) -> RunSpec:
    work = store.work_folder(job.setting.root, session_id, trial.id, attempt).resolve()
    return job.setting.of(trial).spec(
        trial,
        session_id,
        attempt,
        job.device.first(trial.asked.variant.gpus),
        work=work,
        cache=_cache_folder(job, session_id, trial).resolve(),
        workloads=(job.setting.root / "workloads").resolve(),
    )


def _warm_up(job: Job, opened: Session, trial: TrialSpec, watcher: Watcher) -> None:
    """Runs the warm-up of a variant once, where its compilers have caches to fill; no record has it."""
    if not warms_up(trial):
        return
    marker = _cache_folder(job, opened.id, trial) / "warm" / trial.id.rpartition("-")[2]
    if marker.exists():
        return
    watcher.say("    filling the caches with a short trial that is not recorded")
    warm = warm_up(trial)
    work = store.work_folder(job.setting.root, opened.id, warm.id, 0)
    handle = job.engine.start(_laid_out(job, opened.id, warm, 0))
    try:
        begun = time.monotonic()
        while isinstance(job.engine.poll(handle, work), Running):
            if time.monotonic() - begun > warm.timeout_seconds + GRACE_SECONDS:
                break
            time.sleep(POLL_SECONDS)
    finally:
        job.engine.stop(handle, work)
        job.engine.forget(handle, work)
        shutil.rmtree(work, ignore_errors=True)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _laid_out(job: Job, session_id: str, trial: TrialSpec, attempt: int) -> RunSpec:
    """Makes the folders of one attempt, and returns what starts it."""
    work = store.work_folder(job.setting.root, session_id, trial.id, attempt)
    shutil.rmtree(work, ignore_errors=True)
    for name in ("in", "out"):
        (work / name).mkdir(parents=True)
    _cache_folder(job, session_id, trial).mkdir(parents=True, exist_ok=True)
    store.write_whole(work / "in" / "trial.json", trial.model_dump_json(indent=1), replace=False)
    if trial.asked.file is not None:
        own = own_file.content(job.setting.root, trial.asked.file)
        store.write_whole(work / "in" / own_file.name_beside_trial(trial.asked.file), own, replace=False)
    return _spec(job, session_id, trial, attempt)


def _attempt(
    job: Job, opened: Session, item: session.Missing, records: list[Record], watcher: Watcher
) -> Record:
    work = store.work_folder(job.setting.root, opened.id, item.trial.id, item.attempt)
    spec = _laid_out(job, opened.id, item.trial, item.attempt)
    now, began = datetime.now(UTC), time.monotonic()
    started = Started(
        trial=item.trial,
        attempt=item.attempt,
        session=opened.id,
        plan=opened.plan,
        order=item.order,
        block=session.block(opened, item.trial, records, now),
        started_at=now,
        monotonic_seconds=began,
        environment=job.setting.of(item.trial).built.environment,
        machine=job.machine,
        cards_given=spec.device.indices,
        load=job.load(),
        harness=job.setting.harness,
    )
    with _stopped_by_ctrl_c(job, opened, started, work, watcher):
        store.write_whole(work / in_flight.FILE, started.model_dump_json(), replace=True)
        handle = job.engine.start(spec)
        started = started.model_copy(update={"handle": handle})
        store.write_whole(work / in_flight.FILE, started.model_dump_json(), replace=True)
        recorder.start(work, spec.device, job.engine.pid(handle))
        return _see_through(job, opened, started, work, watcher, began)


def _see_through(
    job: Job, opened: Session, started: Started, work: Path, watcher: Watcher, began: float
) -> Record:
    """Waits for a started trial and writes its record. `began` is of time.monotonic, which nobody sets."""
    gone = None
    try:
        exit, timed_out = _wait(job, started, work, watcher)
    except NoEngine as error:
        watcher.say(str(error))
        gone, exit, timed_out = error, GONE, False
    record = conclude(
        job.setting.root,
        opened,
        started,
        work,
        exit,
        watcher.say,
        earlier=[stored.record for stored in store.session_records(job.setting.root, opened)],
        wall_seconds=time.monotonic() - began,
        timed_out=timed_out,
    )
    if started.handle is not None and exit.cause != GONE.cause:
        job.engine.forget(started.handle, work)
    (work / in_flight.FILE).unlink(missing_ok=True)
    watcher.trial_ends(record)
    if gone is not None:
        raise gone
    return record


@contextmanager
def _stopped_by_ctrl_c(
    job: Job, opened: Session, started: Started, work: Path, watcher: Watcher
) -> Iterator[None]:
    """Whenever the interrupt comes, the trial is looked up by name and stopped; no record keeps it."""
    try:
        yield
    except KeyboardInterrupt:
        handle = job.engine.find(started.name, work)
        if handle is not None:
            job.engine.stop(handle, work)
            job.engine.forget(handle, work)
        recorder.stop(work)
        shutil.rmtree(work, ignore_errors=True)
        raise


def _wait(job: Job, started: Started, work: Path, watcher: Watcher) -> tuple[Exit, bool]:
    handle = started.handle
    if handle is None:
        return Exit(), False
    follower = Follower(work / "out" / EVENTS)
    until = time.monotonic() + started.trial.timeout_seconds + GRACE_SECONDS
    while True:
        state = job.engine.poll(handle, work)
        if not isinstance(state, Running):
            return state, False
        if time.monotonic() > until:
            job.engine.stop(handle, work)
            ended = job.engine.poll(handle, work)
            return (Exit() if isinstance(ended, Running) else ended), True
        watcher.trial_goes_on(follower.look())
        time.sleep(POLL_SECONDS)


def _take_up(job: Job, opened: Session, watcher: Watcher) -> list[Record]:
    """What an earlier process left running or ended: waited for, collected, or written down as failed."""
    taken: list[Record] = []
    for started, work in in_flight.attempts(job.setting.root, opened.id):
        name = store.record_name(started.trial.id, started.attempt)
        if (store.session_folder(job.setting.root, opened) / name).exists():
            (work / in_flight.FILE).unlink()
            continue
        watcher.say(f"taking up {started.trial.id} where an earlier run left it")
        if started.handle is None:
            started = started.model_copy(update={"handle": job.engine.find(started.name, work)})
        handle = started.handle
        running = handle is not None and isinstance(job.engine.poll(handle, work), Running)
        began = time.monotonic() - in_flight.seconds_until_now(started, work, running=running)
        with _stopped_by_ctrl_c(job, opened, started, work, watcher):
            taken.append(_see_through(job, opened, started, work, watcher, began))
    return taken
