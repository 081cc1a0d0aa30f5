"""Trials in order, each in a fresh process, each ending in one record; resumed after any interruption."""

from __future__ import annotations

import math
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from harness.engine.container import RunSpec
from harness.engine.interface import GONE, Engine, Exit, Handle
from harness.errors import NoEngine, RecordError
from harness.machine.fingerprint import read_load
from harness.plan.estimate import warms_up
from harness.record import LeftOut, Model, Record, Session, TrialSpec, short_hash, store
from harness.record.events import FILE as EVENTS
from harness.record.events import Follower, Progress
from harness.run import assemble, blocks, missing, session
from harness.run.assemble import STARTED, Started, conclude_attempt, lay_out_input, repeated_fault
from harness.run.ready import ReadyRun, warm_up_trial
from harness.run.setup import device_request
from harness.telemetry import recorder
from harness.units import count_noun

POLL_SECONDS = 0.25
SIDE, PARTNER = "GPUDYNO_SIDE", "partner"
"""The variable that says which side a trial is, and the folder of its data with what the other writes."""
NO_TURNS = "the two sides cannot take turns on the device, and get fresh processes one after the other"
GRACE_SECONDS = 30.0
"""The workload ends itself at its limit; the harness steps in this much later."""


class Watcher(Protocol):
    """Shows a person how far the plan is."""

    def trial_begins(self, trial: TrialSpec, number: int, count: int) -> None:
        """Show that trial `number` of `count` starts."""

    def trial_goes_on(self, progress: Progress) -> None:
        """Show the trial's newest progress."""

    def trial_ends(self, record: Record) -> None:
        """Show that the trial's record is written."""

    def say(self, line: str) -> None:
        """Print one line of news."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """By when trials must have ended: none starts that is estimated to end later."""

    deadline: float = math.inf
    """By time.monotonic()."""
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
    fault: str = ""
    """What the machine did to the last two trials alike, which ended the plan."""


class InFlight(Model):
    """started.json: an attempt on this machine, and how it is found again."""

    started: Started
    monotonic_seconds: float
    """When it began on a clock that nobody sets, and that begins again when the machine does."""
    handle: Handle | None = None
    """Null until its engine has started it."""


def run_session(
    ready: ReadyRun,
    opened: Session,
    watcher: Watcher,
    budget: TimeBudget = TimeBudget(),
    *,
    retry: bool = False,
    answer: Callable[[Session, Sequence[Record]], str] = lambda opened, records: "",
) -> Outcome:
    """Run what a session lacks. Ctrl-C stops the running trial, which no record keeps.

    It ends early where `answer` returns why the session's records are enough, and after two trials in a row
    that failed alike by the machine's fault; the next call tries those again.

    Raises NoEngine when the engine is gone, after writing what it did to the running trial.
    """
    stop_orphans(ready.root, opened.id, ready.setup.engine, watcher.say)
    ran: list[Record] = _resume_attempts(ready, opened, watcher)
    tried: dict[str, int] = {}
    earlier = [stored.record for stored in store.session_records(ready.root, opened)]
    mended = assemble.faulty_trials(earlier)
    while True:
        records = [stored.record for stored in store.session_records(ready.root, opened)]
        grown = missing.grow_sweeps(opened, records)
        if grown is not opened:
            store.write_session(ready.root, grown)
        opened = grown
        lacking = [
            item
            for item in missing.missing_trials(opened, records, retry=retry, again=mended)
            if tried.get(item.trial.id, 0) < (1 if retry or item.trial.id in mended else missing.ATTEMPTS)
        ]
        if not lacking or repeated_fault(ran):
            break
        if opened.looks and (alone := _lone_trials(lacking)):
            opened = session.without_trials(opened, alone, "what it takes turns with has ended")
            store.write_session(ready.root, opened)
            continue
        if enough := answer(opened, records):
            opened = session.without_trials(opened, {item.trial.id for item in lacking}, enough)
            break
        item = next((item for item in lacking if _fits_budget(budget, item.trial, records)), None)
        if item is None or not _wait_for_block(budget, opened, item.trial, records, watcher):
            reason = "they would have ended after the budget"
            watcher.say(f"left out: {count_noun(len(lacking), 'trial')}: {reason}")
            left = LeftOut(what="trials not started", trials=len(lacking), reason=reason)
            opened = opened.model_copy(update={"left_out": (*opened.left_out, left)})
            break
        tried[item.trial.id] = tried.get(item.trial.id, 0) + 1
        done = len(opened.trials) - len(lacking)
        watcher.trial_begins(item.trial, done + 1, len(opened.trials))
        _warm_up(ready, opened, item.trial, watcher)
        made = _run_next(ready, opened, item, lacking, records, watcher)
        if not made:
            opened = opened.model_copy(update={"looks": None, "notes": (*opened.notes, NO_TURNS)})
            store.write_session(ready.root, opened)
        ran += made
    return _run_outcome(ready, opened, ran)


def _lone_trials(lacking: Sequence[missing.Missing]) -> frozenset[str]:
    """Return the ids of trials whose repeat lacks no other: what they measure alone is no turn of two."""
    repeats = Counter(item.trial.repeat for item in lacking)
    return frozenset(item.trial.id for item in lacking if repeats[item.trial.repeat] == 1)


def _fits_budget(
    budget: TimeBudget, trial: TrialSpec, records: Sequence[Record], wait_seconds: float = 0.0
) -> bool:
    return time.monotonic() + wait_seconds + budget.estimate(trial, records) <= budget.deadline


def _wait_for_block(
    budget: TimeBudget, opened: Session, trial: TrialSpec, records: list[Record], watcher: Watcher
) -> bool:
    """Wait until the trial's block may begin; return whether it still ends in time then."""
    wait = blocks.rest_time(opened, trial, records, datetime.now(UTC))
    if not wait:
        return True
    if not _fits_budget(budget, trial, records, wait.total_seconds()):
        return False
    begins = (datetime.now(UTC) + wait).astimezone()
    watcher.say(
        f"the next block of time begins at {begins:%H:%M}, so that an hour lies between; "
        "Ctrl-C, and the same line after that, do as well"
    )
    time.sleep(wait.total_seconds())
    return True


def _run_outcome(ready: ReadyRun, opened: Session, ran: list[Record]) -> Outcome:
    records = [stored.record for stored in store.session_records(ready.root, opened)]
    opened = missing.list_untried(opened, records)
    store.write_session(ready.root, opened)
    left = len(missing.missing_trials(opened, records, again=assemble.faulty_trials(ran)))
    if not left:
        session.close_session(ready.root, opened)
        shutil.rmtree(store.clone_state_folder(ready.root) / "cache" / opened.id, ignore_errors=True)
    failed = sum(record.status == "failed" for record in ran)
    fault = repeated_fault(ran)
    return Outcome(opened, len(ran), failed, left, complete=not left, fault=fault)


def _cache_folder(ready: ReadyRun, session_id: str, trial: TrialSpec) -> Path:
    """Return where a stack's compilers keep what they made: another stack's would be of no use, or wrong."""
    cache = store.clone_state_folder(ready.root) / "cache" / session_id
    return cache / f"{trial.asked.environment}-{short_hash(trial.asked.stack)}"


def _warm_up(ready: ReadyRun, opened: Session, trial: TrialSpec, watcher: Watcher) -> None:
    """Run the warm-up of a variant once, where its compilers have caches to fill; no record has it."""
    if not warms_up(trial):
        return
    marker = _cache_folder(ready, opened.id, trial) / "warm" / trial.digest_on_any_card
    if marker.exists():
        return
    watcher.say("    filling the caches with a short trial that is not recorded")
    warm = warm_up_trial(trial)
    work = store.work_folder(ready.root, opened.id, warm.id, 0)
    handle = ready.setup.engine.start(_lay_out_attempt(ready, opened.id, warm, 0))
    try:
        begun = time.monotonic()
        while ready.setup.engine.poll(handle, work) is None:
            if time.monotonic() - begun > warm.timeout_seconds + GRACE_SECONDS:
                break
            time.sleep(POLL_SECONDS)
    finally:
        ready.setup.engine.stop(handle, work)
        ready.setup.engine.forget(handle, work)
        shutil.rmtree(work, ignore_errors=True)
    marker.parent.mkdir(parents=True, exist_ok=True)
    marker.touch()


def _lay_out_attempt(ready: ReadyRun, session_id: str, trial: TrialSpec, attempt: int) -> RunSpec:
    """Make the folders of one attempt, and return what starts it."""
    work = store.work_folder(ready.root, session_id, trial.id, attempt)
    shutil.rmtree(work, ignore_errors=True)
    for name in ("in", "out"):
        (work / name).mkdir(parents=True)
    cache = _cache_folder(ready, session_id, trial)
    cache.mkdir(parents=True, exist_ok=True)
    lay_out_input(work, trial, ready.beside(trial))
    return ready.spec(
        trial,
        session_id,
        attempt,
        device_request(ready.setup.selection).part(trial.asked.variant.gpus, trial.asked.card or 0),
        work=work.resolve(),
        cache=cache.resolve(),
        workloads=(ready.root / "workloads").resolve(),
    )


def _run_next(
    ready: ReadyRun,
    opened: Session,
    item: missing.Missing,
    lacking: Sequence[missing.Missing],
    records: list[Record],
    watcher: Watcher,
) -> list[Record]:
    """Run a trial, and its repeat's other where the two take turns; return nothing where they could not."""
    others = (other for other in lacking if opened.looks and other.trial.repeat == item.trial.repeat)
    items = [item, *(other for other in others if other is not item)]
    specs = [_lay_out_attempt(ready, opened.id, each.trial, each.attempt) for each in items]
    if len(specs) > 1:
        specs = [*_share_turns(specs)]
    load, now = read_load(), datetime.now(UTC)
    with ExitStack() as stack:
        begun = []
        for each, spec in zip(items, specs, strict=True):
            started = Started(
                trial=each.trial,
                attempt=each.attempt,
                session=opened.id,
                plan=opened.plan,
                order=each.order,
                block=blocks.block_number(opened, each.trial, records, now),
                started_at=now,
                environment=ready.stack(each.trial).built.environment,
                machine=ready.setup.machine,
                cards_given=spec.device.indices,
                load=load,
                harness=ready.harness,
            )
            stack.enter_context(_stop_on_interrupt(ready, started, spec.folders.output.parent))
            begun.append(_start_attempt(ready, started, spec))
        works = [spec.folders.output.parent for spec in specs]
        pids = [ready.setup.engine.pid(each.handle) for each in begun if each.handle]
        for work, spec in zip(works, specs, strict=True):
            recorder.start_sampling(work, spec.device, pids)
        if len(begun) > 1 and not _wait_for_turns(ready, begun, works, watcher):
            return []
        return [
            _finish_attempt(ready, opened, each, work, watcher, each.monotonic_seconds)
            for each, work in zip(begun, works, strict=True)
        ]


def _start_attempt(ready: ReadyRun, started: Started, spec: RunSpec) -> InFlight:
    path = spec.folders.output.parent / STARTED
    begun = InFlight(started=started, monotonic_seconds=time.monotonic())
    store.write_whole(path, begun.model_dump_json(), replace=True)
    begun = begun.model_copy(update={"handle": ready.setup.engine.start(spec)})
    store.write_whole(path, begun.model_dump_json(), replace=True)
    return begun


def _share_turns(specs: Sequence[RunSpec]) -> Iterator[RunSpec]:
    """Yield two trials that see what the other writes, and know which of them begins."""
    outputs = [spec.folders.output for spec in specs]
    for side, (spec, theirs) in enumerate(zip(specs, reversed(outputs), strict=True)):
        folders = replace(spec.folders, data=(*spec.folders.data, (PARTNER, theirs)))
        yield replace(spec, folders=folders, passed={**spec.passed, SIDE: str(side)})


def _wait_for_turns(
    ready: ReadyRun, begun: Sequence[InFlight], works: Sequence[Path], watcher: Watcher
) -> bool:
    """Wait for two trials that take turns; return whether both measured. Else nothing of them is left."""
    engine = ready.setup.engine
    handles = [(each.handle, work) for each, work in zip(begun, works, strict=True) if each.handle]
    follower = Follower(works[0] / "out" / EVENTS)
    until = time.monotonic() + sum(each.started.trial.timeout_seconds for each in begun) + GRACE_SECONDS
    while time.monotonic() < until:
        running = [engine.poll(*each) is None for each in handles]
        measured = [(work / "out" / assemble.MEASUREMENT).is_file() for work in works]
        if any(not (goes_on or done) for goes_on, done in zip(running, measured, strict=True)):
            break
        if not any(running):
            return True
        watcher.trial_goes_on(follower.look())
        time.sleep(POLL_SECONDS)
    reasons = [found.message for work in works if (found := assemble.read_failure(work / "out"))]
    for handle, work in handles:
        _remove_attempt(engine, handle, work)
    watcher.say(f"{NO_TURNS}: {reasons[0] if reasons else 'one was ended from outside'}")
    return False


def _finish_attempt(
    ready: ReadyRun, opened: Session, begun: InFlight, work: Path, watcher: Watcher, began: float
) -> Record:
    """Wait for a started trial and write its record. `began` is of time.monotonic, which nobody sets."""
    gone = None
    try:
        exit = _wait_for_exit(ready, begun, work, watcher)
    except NoEngine as error:
        watcher.say(str(error))
        gone, exit = error, GONE
    record = conclude_attempt(
        ready.root,
        opened,
        begun.started,
        work,
        exit,
        watcher.say,
        wall_seconds=time.monotonic() - began,
    )
    if begun.handle is not None and exit.cause != GONE.cause:
        ready.setup.engine.forget(begun.handle, work)
    (work / STARTED).unlink(missing_ok=True)
    watcher.trial_ends(record)
    if gone is not None:
        raise gone
    return record


@contextmanager
def _stop_on_interrupt(ready: ReadyRun, started: Started, work: Path) -> Iterator[None]:
    """Stop the trial, looked up by its name, whenever an interrupt comes; no record keeps it."""
    try:
        yield
    except KeyboardInterrupt:
        engine = ready.setup.engine
        _remove_attempt(engine, engine.find(started.name, work), work)
        raise


def _remove_attempt(engine: Engine, handle: Handle | None, work: Path) -> None:
    """Stop an attempt and leave nothing of it."""
    if handle is not None:
        engine.stop(handle, work)
        engine.forget(handle, work)
    recorder.stop_sampling(work)
    shutil.rmtree(work, ignore_errors=True)


def _wait_for_exit(ready: ReadyRun, begun: InFlight, work: Path, watcher: Watcher) -> Exit:
    handle, engine, limit = begun.handle, ready.setup.engine, begun.started.trial.timeout_seconds
    if handle is None:
        return Exit()
    follower = Follower(work / "out" / EVENTS)
    until = time.monotonic() + limit + GRACE_SECONDS
    progress, moved, waits = Progress(), time.monotonic(), _waits_for_links(begun.started.trial)
    while (ended := engine.poll(handle, work)) is None:
        if waits and time.monotonic() - moved > assemble.NO_STEP_SECONDS:
            engine.stop(handle, work)
            minutes = assemble.NO_STEP_SECONDS / 60
            return Exit(cause="timeout", said=assemble.NO_STEP.format(minutes=minutes))
        if time.monotonic() > until:
            engine.stop(handle, work)
            said = f"the trial ran past its limit of {limit:.0f} s and was stopped"
            return replace(engine.poll(handle, work) or Exit(), cause="timeout", said=said)
        if (newest := follower.look()) != progress:
            progress, moved = newest, time.monotonic()
            waits = waits and not progress.done
        watcher.trial_goes_on(progress)
        time.sleep(POLL_SECONDS)
    return ended


def _waits_for_links(trial: TrialSpec) -> bool:
    """Return whether a trial's first step waits for several devices, and is seen from outside."""
    return trial.asked.variant.gpus > 1 and trial.asked.own is None and trial.asked.file is None


def _resume_attempts(ready: ReadyRun, opened: Session, watcher: Watcher) -> list[Record]:
    """Return the records of what an earlier process left: waited for, collected, or written as failed.

    Two that take turns are removed and start again together, unless both have measured.
    """
    taken: list[Record] = []
    attempts = [*read_attempts(ready.root, opened.id)]
    if opened.looks and not all((work / "out" / assemble.MEASUREMENT).is_file() for _, work in attempts):
        for begun, work in attempts:
            engine = ready.setup.engine
            _remove_attempt(engine, begun.handle or engine.find(begun.started.name, work), work)
        return []
    for begun, work in attempts:
        started = begun.started
        name = store.record_name(started.trial.id, started.attempt)
        if (store.session_folder(ready.root, opened) / name).exists():
            (work / STARTED).unlink()
            continue
        watcher.say(f"taking up {started.trial.id} where an earlier run left it")
        handle = begun.handle or ready.setup.engine.find(started.name, work)
        begun = begun.model_copy(update={"handle": handle})
        running = handle is not None and ready.setup.engine.poll(handle, work) is None
        began = time.monotonic() - elapsed_seconds(begun, work, running=running)
        with _stop_on_interrupt(ready, started, work):
            taken.append(_finish_attempt(ready, opened, begun, work, watcher, began))
    return taken


def read_attempts(root: Path, session_id: str) -> Iterator[tuple[InFlight, Path]]:
    """Yield each attempt of a session (`*`: of all) with its work folder; what cannot be read is removed."""
    folder = store.clone_state_folder(root) / "work"
    for path in sorted(folder.glob(f"{session_id}/*/{STARTED}")):
        try:
            yield InFlight.parse(path.read_bytes(), path.name), path.parent
        except RecordError:
            path.unlink()


def stop_orphans(root: Path, session_id: str, engine: Engine, say: Callable[[str], None]) -> None:
    """Stop trials of other sessions that go on after their run died, since two would disturb each other.

    They stay written down as started: their own session makes a record of each when it goes on. A trial of
    another engine than this run's is not looked for.
    """
    for begun, work in read_attempts(root, "*"):
        started = begun.started
        if started.session == session_id:
            continue
        handle = begun.handle or engine.find(started.name, work)
        if handle is None or handle.engine != engine.name or engine.poll(handle, work) is not None:
            continue
        say(f"stopping {started.trial.id} of session {started.session}, whose run died without it")
        engine.stop(handle, work)
        recorder.stop_sampling(work)


def elapsed_seconds(begun: InFlight, work: Path, *, running: bool) -> float:
    """Return how long an attempt has taken, or had when it ended: no more than its limit.

    It ended when it last wrote. A clock that was set meanwhile cannot make it longer than it was.
    """
    now, began = time.monotonic(), begun.monotonic_seconds
    if began <= now:
        elapsed = now - began
    else:
        # The machine was started again since.
        elapsed = max(0.0, (datetime.now(UTC) - begun.started.started_at).total_seconds())
    if not running:
        written = max((path.stat().st_mtime for path in (work / "out").rglob("*")), default=time.time())
        since = time.time() - written
        elapsed -= since if 0 <= since <= elapsed else 0.0
    return min(elapsed, begun.started.trial.timeout_seconds)
