"""One short job by the site's profile, and what it tells; where no scheduler answers, a process here."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from commands.doctor import told
from harness.doctor.site import Tried, judge
from harness.engine.slurm.scheduler import Slurm
from harness.engine.slurm.site import Site, load_site
from harness.errors import NoEngine
from harness.plan import estimate
from harness.record import DEEP, TrialSpec
from harness.run import session
from harness.run.choice import choose, session_of
from harness.run.jobs import node, prepare, send
from harness.run.jobs import submission as kept
from harness.run.jobs.collect import NO_LOOK, collect, records_of
from harness.run.jobs.follow import Answer, Place, ask, places
from harness.run.jobs.submission import JobSpec, Submission
from harness.run.setup import RunSetup, data_folders
from harness.settings import Settings

PATH = "folders"
"""The check of plan `deep` that a job takes: it opens the device, and writes wherever a trial may."""
MOST_SECONDS = 120.0
LAG_SECONDS = 10.0
"""Within which a file server shows what a job that has ended wrote."""
LOOK_SECONDS = 0.5
JOB_LIMIT = "5m"


def doctor(root: Path, settings: Settings, named: str | None, scheduler: Slurm | None = None) -> None:
    """Prints what a short job found of the site; raises MachineError where something stands in the way."""
    site = load_site(root, named).model_copy(update={"time_limit": JOB_LIMIT})
    setup = prepare.prepare(root, settings.model_copy(update={"plan": DEEP}), site)
    context = prepare.context(setup, site, setup.engine.built(setup.image), {})
    context = replace(context, setting=replace(context.setting, data=lambda trial: _data(setup)))
    with kept.alone(root):
        findings = judge(_tried(setup, context, scheduler or Slurm()))
    told(findings)


def _data(setup: RunSetup) -> tuple[tuple[str, Path], ...]:
    """The data folder as a whole, so that it is mounted as a data set would be."""
    folders = data_folders(setup.settings, setup.root)
    folder = folders.own or folders.cache
    return ((folder.name, folder),) if folder is not None and folder.is_dir() else ()


def _submission(setup: RunSetup, site: Site) -> Submission:
    """One trial, which is no plan's open submission: nobody collects or sends it again."""

    def keep(trials: Sequence[TrialSpec]) -> frozenset[str]:
        return frozenset(trial.id for trial in trials if trial.asked.variant.model == PATH)

    chosen = choose(setup, keep=keep, speeds=estimate.Speeds())
    return Submission(whole=session_of(setup, replace(chosen, left_out=())), site=site)


def _tried(setup: RunSetup, context: send.SubmitContext, scheduler: Slurm) -> Tried:
    submission = _submission(setup, context.site)
    kept.write(setup.root, submission)
    parts = send.batches(context, submission, session.missing(submission.whole, ()))
    if not _answers(scheduler):
        submission, ((script, _),) = send.by_hand(context, submission, parts)
        print("no scheduler answers: the job's script runs as a process here")
        return _come_back(setup.root, submission, scheduler, _run_here(script))
    submission = send.send(context, submission, parts, scheduler, print)
    begun = time.monotonic()
    try:
        in_time = _wait(lambda: _is_over(setup.root, submission, scheduler), MOST_SECONDS)
    finally:
        if not _is_over(setup.root, submission, scheduler):
            scheduler.cancel([batch.id for batch in submission.batches if batch.id])
    if in_time:
        _wait(lambda: bool(_asked(setup.root, submission, scheduler)[1].attempts), LAG_SECONDS)
    return _come_back(setup.root, submission, scheduler, None if in_time else time.monotonic() - begun)


def _answers(scheduler: Slurm) -> bool:
    try:
        scheduler.version()
    except NoEngine:
        return False
    return True


def _run_here(script: Path) -> float | None:
    """Runs the script to its end; null, or the seconds after which it and what it started were ended."""
    with (script.parent / "log-_0.txt").open("wb") as log:
        process = subprocess.Popen(
            ["bash", str(script), "0"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            process.wait(MOST_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return MOST_SECONDS
    return None


def _wait(come: Callable[[], bool], seconds: float) -> bool:
    """Whether it came to pass in so many seconds."""
    end = time.monotonic() + seconds
    while not (came := come()) and time.monotonic() < end:
        time.sleep(LOOK_SECONDS)
    return came


def _asked(root: Path, submission: Submission, scheduler: Slurm) -> tuple[Answer, Place]:
    by_hand = submission.batches[0].by_hand
    every = submission.site.ask_every_seconds
    answer = ask(root, scheduler, every, submission.clusters, silent=by_hand)
    (place,) = places(root, submission, answer)
    return answer, place


def _is_over(root: Path, submission: Submission, scheduler: Slurm) -> bool:
    _, place = _asked(root, submission, scheduler)
    return not place.in_flight or any(attempt.over for attempt in place.attempts)


def _come_back(root: Path, submission: Submission, scheduler: Slurm, ended_after: float | None) -> Tried:
    """What is here of the job; `ended_after` are the seconds after which it was ended from here."""
    answer, place = _asked(root, submission, scheduler)
    collect(root, submission, scheduler, answer, lambda line: None)
    jobs, (batch,) = kept.folder(root, submission.id), submission.batches
    order = JobSpec.parse((jobs / "orders" / f"{place.trial}.json").read_bytes(), place.trial)
    work = place.attempts[-1].work if place.attempts else None
    absent = work / node.ABSENT if work else None
    word = place.state.word if place.state else "nothing is known of it"
    return Tried(
        where=f"job {batch.job}" if batch.job else "the process here",
        folders=order.folders,
        absent=tuple(json.loads(absent.read_text())) if absent and absent.is_file() else (),
        held_up="" if ended_after is None else word,
        waited_seconds=ended_after or 0.0,
        began=work is not None,
        record=next(
            (one for one in records_of(root, submission) if one.load.unknown_because != NO_LOOK), None
        ),
        last_words=_last_words(jobs),
    )


def _last_words(jobs: Path) -> str:
    """The last line of the job's own output."""
    logs = [path.read_text(encoding="utf-8", errors="replace") for path in sorted(jobs.glob("log-*_0.txt"))]
    said = [line.strip() for log in logs for line in log.splitlines()]
    return next((line[:200] for line in reversed(said) if line and not line.startswith("gpudyno: ")), "")
