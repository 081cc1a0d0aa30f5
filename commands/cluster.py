"""A plan on a cluster: sent as jobs, followed from any shell, brought home as records."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commands import plan
from commands.measure import build_environments, data_progress, say_data
from commands.terminal import Screen
from harness.engine.slurm.scheduler import Slurm
from harness.engine.slurm.script import Batch
from harness.engine.slurm.site import Site, load_site
from harness.record import Record, Session
from harness.run import batch_search, session
from harness.run.choice import Chosen, choose_trials, draft_session
from harness.run.jobs import job_setup, send
from harness.run.jobs import submission as kept
from harness.run.jobs.collect import Collected, collect_records, submission_records
from harness.run.jobs.follow import Place, ask_queue, trial_places
from harness.run.jobs.submission import Submission
from harness.run.ready import ReadyRun, ready_run
from harness.run.setup import RunSetup, resolve_data
from harness.settings import Settings
from report.text import count

LOOK_AGAIN_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The switches of `submit`."""

    site: str | None = None
    new_session: bool = False
    retry: bool = False
    dry_run: bool = False


def submit_plan(root: Path, settings: Settings, how: SubmitOptions, scheduler: Slurm | None = None) -> None:
    """Sends what a plan lacks as jobs; what waits or runs already is not sent again."""
    scheduler = scheduler or Slurm()
    site = load_site(root, how.site)
    setup = job_setup.prepare_jobs(root, settings, site)
    with Screen() as screen:
        if how.dry_run:
            built = setup.engine.expected_environment(setup.image)
        else:
            (built,), engine, noted = build_environments(root, settings, (setup.image,), setup.engine, screen)
            setup = replace(setup, engine=engine, notes=(*setup.notes, *noted))
        resolved = resolve_data(setup, data_progress(screen), fetching=not how.dry_run)
        chosen = job_setup.keep_fitting(choose_trials(setup, resolved), site)
        ready = ready_run(setup, (built,), resolved)
        if how.dry_run:
            submission = _open_submission(setup, chosen, site, how, screen)
            found = _trial_places(root, submission, scheduler)
            in_flight = frozenset(place.trial for place in found if place.in_flight)
            for text in send.preview_scripts(submission, _unsent_batches(ready, submission, in_flight, how)):
                screen.say(f"\n{text}")
            return
        say_data(resolved, screen)
        with kept.submissions_lock(root):
            submission = _open_submission(setup, chosen, site, how, screen)
            kept.begin_submission(root, submission)
            _send_unsent(root, ready, submission, scheduler, how, screen)


def _unsent_batches(
    ready: ReadyRun, submission: Submission, in_flight: frozenset[str], how: SubmitOptions
) -> Sequence[Batch]:
    """What is missing and in no job, as batches."""
    records = submission_records(ready.root, submission)
    missing = session.missing_trials(submission.whole, records, retry=how.retry)
    unsent = [item for item in missing if item.trial.id not in in_flight]
    return send.make_batches(ready, submission, unsent) if unsent else ()


def _open_submission(
    setup: RunSetup, chosen: Chosen, site: Site, how: SubmitOptions, screen: Screen
) -> Submission:
    """The plan's open submission, if what it asks for is still asked for, else a new one."""
    alike = [each for each in kept.open_submissions(setup.root) if each.whole.plan == setup.plan.name]
    opened = alike[-1] if alike and not how.new_session else None
    if opened is not None and _is_still_asked(opened.whole, setup, chosen):
        screen.say(f"going on with submission {opened.id}")
        return opened.model_copy(update={"site": site})
    if opened is not None:
        screen.say(f"submission {opened.id} asked for another plan, lock or data: a new one begins")
    screen.say("\n".join(plan.plan_lines(setup, chosen)))
    whole = draft_session(setup, chosen)
    return Submission(whole=whole, site=site)


def _is_still_asked(whole: Session, setup: RunSetup, chosen: Chosen) -> bool:
    planned = [item.trial for item in chosen.planned]
    wanted = {trial.asked.canonical() for trial in planned}
    return whole.plan_sha256 == setup.plan.sha256 and all(
        trial.asked.canonical() in wanted or batch_search.is_between_batches(trial, planned)
        for trial in whole.trials
    )


def _send_unsent(
    root: Path,
    ready: ReadyRun,
    submission: Submission,
    scheduler: Slurm,
    how: SubmitOptions,
    screen: Screen,
) -> None:
    came = _collect(root, submission, scheduler, screen)
    parts = _unsent_batches(ready, came.submission, came.in_flight, how)
    after = send.send_batches(ready, came.submission, parts, scheduler, screen.say)
    under_way, unsent = len(came.in_flight), sum(len(part.job.trials) for part in parts)
    also = f", and {under_way} more wait or run" if under_way else ""
    screen.say(f"submission {after.id}: {count(unsent, 'trial')} sent{also} (`invoke jobs` follows them)")


def _collect(root: Path, submission: Submission, scheduler: Slurm, screen: Screen) -> Collected:
    found = _trial_places(root, submission, scheduler)
    return collect_records(root, submission, scheduler, found, screen.say)


def _trial_places(root: Path, submission: Submission, scheduler: Slurm) -> tuple[Place, ...]:
    """Return what its scheduler reports of each trial; it is not asked where nothing was sent."""
    if not submission.batches:
        return ()
    return trial_places(root, submission, ask_queue(scheduler))


def print_status(root: Path, scheduler: Slurm | None = None) -> None:
    """Prints how far each open submission is, and changes nothing."""
    scheduler = scheduler or Slurm()
    with Screen() as screen:
        for submission in _open_submissions(root, screen):
            found = _trial_places(root, submission, scheduler)
            screen.say(_standing_line(submission, submission_records(root, submission), found))
            for line in _batch_lines(submission, found):
                screen.say(line)


def _open_submissions(root: Path, screen: Screen) -> tuple[Submission, ...]:
    found = kept.open_submissions(root)
    if not found:
        screen.say("no submission is under way (`invoke submit --plan NAME` begins one)")
    return found


def _standing_line(submission: Submission, records: Sequence[Record], found: Sequence[Place]) -> str:
    whole = submission.whole
    last = session.last_attempts(records)
    measured = sum(record.measurement is not None for record in last.values())
    failures = Counter(record.failure.reason for record in last.values() if record.failure)
    running = {place.trial for place in found if place.running}
    waiting = {place.trial for place in found if place.in_flight} - running
    over = sum(attempt.over and not attempt.collected for place in found for attempt in place.attempts)
    parts = [f"{measured} measured", *(f"{count} {reason}" for reason, count in sorted(failures.items()))]
    parts += [f"{len(running)} running"] if running else []
    parts += [f"{len(waiting)} waiting"] if waiting else []
    parts += [f"{over} ended and not collected"] if over else []
    head = f"submission {submission.id}, plan {whole.plan}: {count(len(whole.trials), 'trial')}"
    return f"{head}: {', '.join(parts)}"


def _batch_lines(submission: Submission, found: Sequence[Place]) -> Iterator[str]:
    """A line for each batch with anything under way."""
    for batch in submission.batches:
        own = [place for place in found if place.batch.name == batch.name and place.in_flight]
        if not own:
            continue
        words = Counter(place.state.word if place.state else "not known yet" for place in own)
        nodes = sorted({place.state.nodes for place in own if place.state and place.state.nodes})
        counts = "; ".join(f"{count} {word}" for word, count in words.items())
        job = f"job {batch.job}" if batch.job else batch.name
        yield f"  {job}: {counts}{' on ' + ', '.join(nodes) if nodes else ''}"


def collect_all(root: Path, *, wait: bool = False, scheduler: Slurm | None = None) -> None:
    """Writes the records of what has ended; with `wait`, until nothing is under way."""
    scheduler = scheduler or Slurm()
    with Screen() as screen, kept.submissions_lock(root):
        while True:
            under_way = 0
            for submission in _open_submissions(root, screen):
                came = _collect(root, submission, scheduler, screen)
                under_way += len(came.in_flight)
                if came.records or not came.in_flight or not wait:
                    _say_collected(came, screen)
            if not wait or not under_way:
                return
            time.sleep(LOOK_AGAIN_SECONDS)


def _say_collected(came: Collected, screen: Screen) -> None:
    for record in came.records:
        if record.failure is not None:
            screen.say(f"  {record.trial.id}: {record.failure.reason}: {record.failure.message}")
    left = f"; {count(len(came.missing), 'trial')} left" if came.missing else "; the plan is complete"
    again = ""
    if came.missing and came.replaced:
        again = ", which a later submission of the plan has"
    elif came.missing:
        unsent = len({item.trial.id for item in came.missing} - came.in_flight)
        line = f"`invoke submit --plan {came.submission.whole.plan}`, with your options, sends them"
        again = f", {unsent} of them in no job ({line})" if unsent else ""
    screen.say(f"submission {came.submission.id}: {count(len(came.records), 'record')} written{left}{again}")


def cancel_jobs(root: Path, scheduler: Slurm | None = None) -> None:
    """Ends the jobs of all open submissions; what ran of them is collected as cancelled."""
    scheduler = scheduler or Slurm()
    with Screen() as screen, kept.submissions_lock(root):
        for submission in _open_submissions(root, screen):
            answer = ask_queue(scheduler)
            names = {batch.name for batch in submission.batches}
            known = {
                state.job for state in answer.states if state.name in names and state.standing != "ended"
            }
            sent = {
                batch.job for batch in submission.batches if batch.job and batch.sent_at >= answer.asked_at
            }
            scheduler.cancel(known | sent)
            given_up = tuple(batch.model_copy(update={"given_up": True}) for batch in submission.batches)
            kept.write_submission(root, submission.model_copy(update={"batches": given_up}))
            screen.say(f"submission {submission.id}: {count(len(known | sent), 'job')} cancelled")
