"""What a submission lacks, sent: one batch for each variant, with its repeats as an array."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from harness.device_kinds import DEVICE_KINDS
from harness.engine.choose import venv_engine
from harness.engine.container import DeviceRequest
from harness.engine.slurm.scheduler import ClusterJob, Slurm
from harness.engine.slurm.script import CACHE, ROOT, WORK, Batch, Spread, batch_script, spread_devices
from harness.engine.slurm.site import Site
from harness.errors import UserError
from harness.machine.devices import Selection, recorded_variables
from harness.machine.fingerprint import local_names, look_at_machine
from harness.plan import budget, plan_file
from harness.plan.estimate import warms_up
from harness.record import Gpu, store
from harness.record.trial_spec import work_words
from harness.run.assemble import SayLine
from harness.run.blocks import PAUSE
from harness.run.choice import Chosen
from harness.run.jobs import submission as kept
from harness.run.jobs.submission import JobSpec, Submission
from harness.run.missing import FEWEST_BATCH_SIZES, Missing, sweep_key
from harness.run.ready import ReadyRun, warm_up_trial
from harness.run.setup import RunSetup, prepare_run
from harness.settings import Settings
from harness.units import count_noun


def make_batches(ready: ReadyRun, submission: Submission, missing: Sequence[Missing]) -> tuple[Batch, ...]:
    """Return what is missing as batches, those first whose first trial comes first in the plan."""
    groups: dict[tuple[str, int], list[Missing]] = {}
    blocks = submission.whole.block_of
    for item in missing:
        groups.setdefault((item.trial.asked.canonical(), blocks.get(item.trial.id, 1)), []).append(item)
    first = len(submission.batches) + 1
    numbered = enumerate(groups.values(), first)
    return tuple(_make_batch(ready, submission, number, group) for number, group in numbered)


def _make_batch(ready: ReadyRun, submission: Submission, number: int, items: Sequence[Missing]) -> Batch:
    jobs = kept.submission_folder(ready.root, submission.id).resolve()
    begun = kept.begun_attempts(jobs)
    # Beyond its records, an attempt may have begun that has none.
    attempts = tuple(max(item.attempt, begun.get(item.trial.id, [0])[-1] + 1) for item in items)
    asked = items[0].trial.asked
    return Batch(
        job=ClusterJob(
            name=f"gpudyno-{submission.id}-{number}",
            trials=tuple(item.trial.id for item in items),
            attempts=attempts,
            sent_at=datetime.now(UTC),
        ),
        title=f"{work_words(asked)}: {count_noun(len(items), 'trial')} of plan '{submission.whole.plan}'",
        root=ready.root.resolve(),
        jobs=jobs,
        cache=jobs / "cache" / asked.environment,
        python=sys.executable,
        spec=ready.spec(
            items[0].trial,
            submission.id,
            1,
            DeviceRequest(asked.device),
            work=Path(WORK),
            cache=Path(CACHE),
            workloads=Path(ROOT) / "workloads",
        ),
        warm=warms_up(items[0].trial),
    )


def lay_out_orders(ready: ReadyRun, submission: Submission, batch: Batch) -> None:
    """Write what the batch's jobs will read on their nodes."""
    places = {trial.id: (place, trial) for place, trial in enumerate(submission.whole.trials)}
    (batch.jobs / "work").mkdir(parents=True, exist_ok=True)
    batch.cache.mkdir(parents=True, exist_ok=True)
    for name in batch.job.trials:
        place, trial = places[name]
        placed = spread_devices(trial.asked.variant.gpus, submission.site) or Spread(nodes=1, on_each=1)
        spec = JobSpec(
            trial=trial,
            order=place,
            plan=submission.whole.plan,
            environment=ready.stack(trial).built.environment,
            harness=ready.harness,
            label=ready.setup.settings.label,
            declared=ready.setup.settings.declared,
            devices=placed.on_each,
            nodes=placed.nodes,
            folders=tuple(str(folder) for _, folder in ready.data(trial)),
            warm=warm_up_trial(trial) if batch.warm else None,
        )
        path = batch.jobs / "orders" / f"{name}.json"
        if beside := ready.beside(trial):
            store.write_whole(path.with_suffix(".py"), beside, replace=True)
        store.write_whole(path, spec.model_dump_json() + "\n", replace=True)


def dependency(
    batch: Batch, submission: Submission, sent: Iterable[tuple[Batch, str]], last: str | None = None
) -> str | None:
    """Return what a batch waits for among those sent before, each with its job; null for nothing.

    A larger batch size of a sweep waits until the smaller one fitted. A later block of time waits until an
    hour after an earlier one can have ended. Where the site's jobs go one by one, `last` ends first.
    """
    blocks = submission.whole.block_of
    own_trial, key = batch.spec.trial, sweep_key(batch.spec.trial)
    sizes = {one.asked.variant.batch_size for one in submission.whole.trials if sweep_key(one) == key}
    smaller: list[tuple[int, str]] = []
    earlier: list[str] = []
    for other, job in sent:
        size, trial = other.spec.trial.asked.variant.batch_size, other.spec.trial
        if len(sizes) >= FEWEST_BATCH_SIZES and sweep_key(trial) == key:
            smaller += [(size, job)] if size < own_trial.asked.variant.batch_size else []
        if 0 < blocks.get(trial.id, 1) < blocks.get(own_trial.id, 1):
            minutes = (PAUSE.total_seconds() + trial.timeout_seconds) / 60
            earlier.append(f"{job}+{minutes:.0f}")
    parts = [f"afterok:{max(smaller)[1]}"] if smaller else []
    parts += [f"after:{':'.join(earlier)}"] if earlier else []
    parts += [f"afterany:{last}"] if last and submission.site.one_by_one else []
    return ",".join(parts) or None


def send_batches(
    ready: ReadyRun, submission: Submission, parts: Sequence[Batch], scheduler: Slurm, say: SayLine
) -> Submission:
    """Send batches one after the other, each written down before; raises as Slurm.send does."""
    # The last that was sent before and may still wait.
    known = [batch for each in kept.open_submissions(ready.root) for batch in each.batches]
    live = [batch for batch in known if batch.job and not batch.given_up]
    last = str(max(live, key=lambda batch: batch.sent_at).job) if live else None
    sent: list[tuple[Batch, str]] = []
    for part in sort_batches(parts, submission):
        batch = replace(part, dependency=dependency(part, submission, sent, last))
        lay_out_orders(ready, submission, batch)
        path = batch.jobs / f"batch-{batch.job.name.rpartition('-')[2]}.sh"
        store.write_whole(path, batch_script(batch, submission.site), replace=True)
        job = batch.job.model_copy(update={"sent_at": datetime.now(UTC)})
        submission = _replace_job(ready.root, submission, job)
        number = scheduler.send(path)
        submission = _replace_job(ready.root, submission, job.model_copy(update={"job": number}))
        last = str(number)
        sent.append((batch, last))
        say(f"job {number}: {batch.title}")
    return submission


def preview_scripts(submission: Submission, parts: Sequence[Batch]) -> Iterator[str]:
    """Yield the scripts that would be sent; the number of a job that another waits for is made up."""
    sent: list[tuple[Batch, str]] = []
    for number, part in enumerate(sort_batches(parts, submission), 1):
        last = sent[-1][1] if sent else None
        batch = replace(part, dependency=dependency(part, submission, sent, last))
        sent.append((batch, f"JOB{number}"))
        yield batch_script(batch, submission.site)


def sort_batches(parts: Sequence[Batch], submission: Submission) -> list[Batch]:
    """Return batches sorted by block of time, and in a sweep by batch size; else as they come."""
    blocks = submission.whole.block_of
    places: dict[str, int] = {}
    for at, part in enumerate(parts):
        places.setdefault(sweep_key(part.spec.trial), at)

    def key(part: Batch) -> tuple[int, int, int]:
        trial = part.spec.trial
        return blocks.get(trial.id, 1), places[sweep_key(trial)], trial.asked.variant.batch_size

    return sorted(parts, key=key)


def _replace_job(root: Path, submission: Submission, job: ClusterJob) -> Submission:
    others = tuple(each for each in submission.batches if each.name != job.name)
    changed = submission.model_copy(update={"batches": (*others, job)})
    kept.write_submission(root, changed)
    return changed


def prepare_jobs(root: Path, settings: Settings, site: Site) -> RunSetup:
    """Return what `submit` works with, before anything is built or fetched.

    Raises what prepare_run() does, of the site's devices in a virtual environment.
    """
    machine, _ = look_at_machine(settings.label)
    # This node's processor says nothing of the processors that the jobs will have.
    unknown = machine.cpu.model_copy(update={"native_16_bit": None})
    machine = machine.model_copy(update={"cpu": unknown})
    # Slurm chooses a trial's card.
    run_plan = plan_file.load_plan(root, settings.plan).model_copy(update={"each_card": False})
    asked = settings.model_copy(update={"engine": "venv", "against": ()})
    setup = prepare_run(root, asked, seen=(machine, _site_selection(site)), plan=run_plan)
    passed = recorded_variables(setup.passed, local_names())
    engine = replace(venv_engine(root, settings), name="slurm", passed=passed)
    return replace(setup, settings=settings, engine=engine, notes=())


def _site_selection(site: Site) -> Selection:
    """Return the most devices that a trial may have, as far as the profile names them."""
    if site.device == "cpu":
        return Selection("cpu")
    count = site.nodes * (site.gpus_per_node or 1)
    card = {
        "vendor": DEVICE_KINDS[site.device].vendor,
        "name": site.gpu_type or "unknown",
        "architecture": site.capability,
    }
    return Selection(
        site.device, gpus=tuple(Gpu.model_validate({"index": at, **card}) for at in range(count))
    )


def keep_fitting(chosen: Chosen, site: Site) -> Chosen:
    """Return the chosen trials without those whose devices cannot be spread evenly over the site's nodes."""
    reason = f"they have no even place on {site.nodes} nodes of {site.gpus_per_node or 1} devices"
    able, others = budget.keep_wanted(
        chosen.planned,
        lambda item: spread_devices(item.trial.asked.variant.gpus, site) is not None,
        "trials on more devices",
        reason,
    )
    if not able:
        raise UserError(
            "no trial of the plan fits this site's nodes",
            remedy="see 'nodes' and 'gpus_per_node' of its profile",
        )
    return replace(chosen, planned=able, left_out=(*chosen.left_out, *others))
