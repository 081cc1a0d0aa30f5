"""A plan's jobs on a cluster: how far they are, their records, and their end."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from commands.terminal import Screen
from harness.engine.slurm.scheduler import Slurm
from harness.record import Record
from harness.run import missing
from harness.run.jobs import submission as kept
from harness.run.jobs.collect import (
    Collected,
    Place,
    ask_queue,
    collect_records,
    submission_records,
    trial_places,
)
from harness.run.jobs.submission import Submission
from report.text import count

LOOK_AGAIN_SECONDS = 10.0


def collect_ended(root: Path, submission: Submission, scheduler: Slurm, screen: Screen) -> Collected:
    found = ask_places(root, submission, scheduler)
    return collect_records(root, submission, scheduler, found, screen.say)


def ask_places(root: Path, submission: Submission, scheduler: Slurm) -> tuple[Place, ...]:
    """Return what its scheduler reports of each trial; it is not asked where nothing was sent."""
    if not submission.batches:
        return ()
    return trial_places(root, submission, ask_queue(scheduler))


def print_status(root: Path, scheduler: Slurm | None = None) -> None:
    """Print how far each open submission is, and change nothing."""
    scheduler = scheduler or Slurm()
    with Screen() as screen:
        for submission in _open_submissions(root, screen):
            found = ask_places(root, submission, scheduler)
            screen.say(_standing_line(submission, submission_records(root, submission), found))
            for line in _batch_lines(submission, found):
                screen.say(line)


def _open_submissions(root: Path, screen: Screen) -> tuple[Submission, ...]:
    submissions = kept.open_submissions(root)
    if not submissions:
        screen.say("no submission is under way (`invoke submit --plan NAME` begins one)")
    return submissions


def _standing_line(submission: Submission, records: Sequence[Record], found: Sequence[Place]) -> str:
    whole = submission.whole
    last = missing.last_attempts(records)
    measured = sum(record.measurement is not None for record in last.values())
    failures = Counter(record.failure.reason for record in last.values() if record.failure)
    running = {place.trial for place in found if not all(each.over for each in place.attempts)}
    waiting = {place.trial for place in found if place.in_flight} - running
    over = sum(attempt.over and not attempt.collected for place in found for attempt in place.attempts)
    parts = [f"{measured} measured", *(f"{count} {reason}" for reason, count in sorted(failures.items()))]
    parts += [f"{len(running)} running"] if running else []
    parts += [f"{len(waiting)} waiting"] if waiting else []
    parts += [f"{over} ended and not collected"] if over else []
    head = f"submission {submission.id}, plan {whole.plan}: {count(len(whole.trials), 'trial')}"
    return f"{head}: {', '.join(parts)}"


def _batch_lines(submission: Submission, found: Sequence[Place]) -> Iterator[str]:
    """Yield a line for each batch with anything under way."""
    for batch in submission.batches:
        under_way = [place for place in found if place.batch.name == batch.name and place.in_flight]
        if not under_way:
            continue
        words = Counter(place.state.word if place.state else "not known yet" for place in under_way)
        nodes = sorted({place.state.nodes for place in under_way if place.state and place.state.nodes})
        counts = "; ".join(f"{count} {word}" for word, count in words.items())
        job = f"job {batch.job}" if batch.job else batch.name
        yield f"  {job}: {counts}{' on ' + ', '.join(nodes) if nodes else ''}"


def collect_all(root: Path, *, wait: bool = False, scheduler: Slurm | None = None) -> None:
    """Write the records of what has ended; with `wait`, until nothing is under way."""
    scheduler = scheduler or Slurm()
    with Screen() as screen, kept.submissions_lock(root):
        while True:
            under_way = 0
            for submission in _open_submissions(root, screen):
                came = collect_ended(root, submission, scheduler, screen)
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
    """End the jobs of all open submissions; what ran of them is collected as cancelled."""
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
