"""A plan's missing trials, sent to a cluster as jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from commands.build import build_environments, data_progress, say_data
from commands.jobs import ask_places, collect_ended
from commands.plan import plan_lines
from commands.terminal import Screen
from harness.engine.slurm.scheduler import Slurm
from harness.engine.slurm.script import Batch
from harness.engine.slurm.site import Site, load_site
from harness.record import Session
from harness.run.choice import Chosen, choose_trials, draft_session
from harness.run.jobs import send
from harness.run.jobs import submission as kept
from harness.run.jobs.collect import submission_records
from harness.run.jobs.submission import Submission
from harness.run.missing import is_between_batches, missing_trials
from harness.run.ready import ReadyRun, ready_run
from harness.run.setup import RunSetup, resolve_data
from harness.settings import Settings
from report.text import count


@dataclass(frozen=True, slots=True)
class SubmitOptions:
    """The switches of `submit`."""

    site: str | None = None
    new_session: bool = False
    retry: bool = False
    dry_run: bool = False


def submit_plan(root: Path, settings: Settings, how: SubmitOptions, scheduler: Slurm | None = None) -> None:
    """Send what a plan lacks as jobs; what waits or run already is not sent again."""
    scheduler = scheduler or Slurm()
    site = load_site(root, how.site)
    setup = send.prepare_jobs(root, settings, site)
    with Screen() as screen:
        if how.dry_run:
            built = setup.engine.expected_environment(setup.image)
        else:
            (built,), engine, noted = build_environments(root, settings, (setup.image,), setup.engine, screen)
            setup = replace(setup, engine=engine, notes=(*setup.notes, *noted))
        resolved = resolve_data(setup, data_progress(screen), fetching=not how.dry_run)
        chosen = send.keep_fitting(choose_trials(setup, resolved), site)
        ready = ready_run(setup, (built,), resolved)
        if how.dry_run:
            submission = _open_submission(setup, chosen, site, how, screen)
            found = ask_places(root, submission, scheduler)
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
    """Return what is missing and in no job, as batches."""
    records = submission_records(ready.root, submission)
    missing = missing_trials(submission.whole, records, retry=how.retry)
    unsent = [item for item in missing if item.trial.id not in in_flight]
    return send.make_batches(ready, submission, unsent) if unsent else ()


def _open_submission(
    setup: RunSetup, chosen: Chosen, site: Site, how: SubmitOptions, screen: Screen
) -> Submission:
    """Return the plan's open submission, if what it asks for is still asked for, else a new one."""
    alike = [each for each in kept.open_submissions(setup.root) if each.whole.plan == setup.plan.name]
    opened = alike[-1] if alike and not how.new_session else None
    if opened is not None and _is_still_asked(opened.whole, setup, chosen):
        screen.say(f"going on with submission {opened.id}")
        return opened.model_copy(update={"site": site})
    if opened is not None:
        screen.say(f"submission {opened.id} asked for another plan, lock or data: a new one begins")
    screen.say("\n".join(plan_lines(setup, chosen)))
    whole = draft_session(setup, chosen)
    return Submission(whole=whole, site=site)


def _is_still_asked(whole: Session, setup: RunSetup, chosen: Chosen) -> bool:
    planned = [item.trial for item in chosen.planned]
    wanted = {trial.asked.canonical() for trial in planned}
    return whole.plan_sha256 == setup.plan.sha256 and all(
        trial.asked.canonical() in wanted or is_between_batches(trial, planned) for trial in whole.trials
    )


def _send_unsent(
    root: Path,
    ready: ReadyRun,
    submission: Submission,
    scheduler: Slurm,
    how: SubmitOptions,
    screen: Screen,
) -> None:
    came = collect_ended(root, submission, scheduler, screen)
    parts = _unsent_batches(ready, came.submission, came.in_flight, how)
    after = send.send_batches(ready, came.submission, parts, scheduler, screen.say)
    under_way, unsent = len(came.in_flight), sum(len(part.job.trials) for part in parts)
    also = f", and {under_way} more wait or run" if under_way else ""
    screen.say(f"submission {after.id}: {count(unsent, 'trial')} sent{also} (`invoke jobs` follows them)")
