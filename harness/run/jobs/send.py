"""Sending what a submission lacks: one batch for each variant, with its repeats as an array."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from harness.engine.container import DeviceRequest
from harness.engine.slurm.scheduler import JobId, Slurm, Unread
from harness.engine.slurm.script import CACHE, ROOT, WORK, Batch, Spread, script, spread
from harness.engine.slurm.site import Site
from harness.errors import NoEngine
from harness.plan import own_file
from harness.plan.estimate import warms_up
from harness.record import store
from harness.record.machine import Declared
from harness.run.batch_search import FEWEST_BATCH_SIZES
from harness.run.conclude import Say
from harness.run.jobs import submission as kept
from harness.run.jobs.submission import JobSpec, Sent, Submission
from harness.run.session import PAUSE, Missing, sweep_key
from harness.run.setting import Setting, warm_up
from harness.units import counted

MOST_IN_ARRAY = 1000
"""SLURM's own limit, where a site has not set another, is 1001."""


@dataclass(frozen=True, slots=True)
class SubmitContext:
    """What all batches of a line share: the setting of their trials, and the site."""

    setting: Setting
    site: Site
    label: str | None = None
    declared: tuple[Declared, ...] = ()


def batches(context: SubmitContext, submission: Submission, missing: Sequence[Missing]) -> tuple[Batch, ...]:
    """What is missing as batches, those first whose first trial comes first in the plan."""
    if submission.node is not None:
        return (_batch(context, submission, len(submission.batches) + 1, missing),)
    groups: dict[tuple[str, int], list[Missing]] = {}
    blocks = submission.whole.block_of
    for item in missing:
        groups.setdefault((item.trial.asked.canonical(), blocks.get(item.trial.id, 1)), []).append(item)
    most = MOST_IN_ARRAY if context.site.arrays else 1
    parts = [group[at : at + most] for group in groups.values() for at in range(0, len(group), most)]
    first = len(submission.batches) + 1
    return tuple(_batch(context, submission, number, part) for number, part in enumerate(parts, first))


def _batch(context: SubmitContext, submission: Submission, number: int, items: Sequence[Missing]) -> Batch:
    jobs = kept.folder(context.setting.root, submission.id).resolve()
    begun = kept.begun(jobs)
    # Beyond its records, an attempt may have begun that has none.
    attempts = tuple(max(item.attempt, begun.get(item.trial.id, [0])[-1] + 1) for item in items)
    variant = items[0].trial.asked.variant
    what = f"{items[0].trial.asked.workload} {variant.model} {variant.precision}, batch {variant.batch_size}"
    gpus = f", {variant.gpus} devices" if variant.gpus > 1 else ""
    node, cards = submission.node, context.site.gpus_per_node or 1
    where = f" on node {node}" if node else ""
    return Batch(
        name=f"gpudyno-{submission.id}-{number}",
        title=f"{what}{gpus}: {counted(len(items), 'trial')} of plan '{submission.whole.plan}'{where}",
        root=context.setting.root.resolve(),
        jobs=jobs,
        cache=jobs / "cache" / items[0].trial.asked.environment,
        python=sys.executable,
        trials=tuple(item.trial.id for item in items),
        attempts=attempts,
        spec=context.setting.spec(
            items[0].trial,
            submission.id,
            1,
            DeviceRequest(items[0].trial.asked.device),
            work=Path(WORK),
            cache=Path(CACHE),
            workloads=Path(ROOT) / "workloads",
        ),
        warm=warms_up(items[0].trial),
        node=node,
        cards=tuple((item.trial.repeat - 1) % cards for item in items) if node else (),
    )


def lay_out(context: SubmitContext, submission: Submission, batch: Batch) -> None:
    """Writes what the batch's jobs will read on their nodes."""
    places = {trial.id: (place, trial) for place, trial in enumerate(submission.whole.trials)}
    # The site's mounts, where a container has them, and the trial's data.
    mounts = () if context.site.runtime == "none" else context.site.mounts
    (batch.jobs / "work").mkdir(parents=True, exist_ok=True)
    batch.cache.mkdir(parents=True, exist_ok=True)
    for name in batch.trials:
        place, trial = places[name]
        data = (str(folder) for _, folder in context.setting.data(trial))
        placed = spread(trial.asked.variant.gpus, context.site) or Spread(nodes=1, on_each=1)
        spec = JobSpec(
            trial=trial,
            place=place,
            plan=submission.whole.plan,
            submission=submission.id,
            environment=context.setting.built.environment,
            harness=context.setting.harness,
            label=context.label,
            declared=context.declared,
            devices=placed.on_each,
            nodes=placed.nodes,
            folders=(*(mount.source for mount in mounts), *data),
            network_interface=context.site.network_interface,
            warm=warm_up(trial) if batch.warm else None,
        )
        path = batch.jobs / "orders" / f"{name}.json"
        if trial.asked.file is not None:
            store.write_whole(
                path.with_suffix(".py"),
                own_file.content(context.setting.root, trial.asked.file),
                replace=True,
            )
        store.write_whole(path, spec.model_dump_json() + "\n", replace=True)


def dependency(
    batch: Batch, submission: Submission, sent: Iterable[tuple[Batch, str]], before: str | None = None
) -> str | None:
    """What a batch waits for among those sent before it, each with its job: null where order is all one.

    A larger batch size of a sweep waits until the smaller one fitted. A later block of time waits until an
    hour after an earlier one can have ended. `before` is a job that may share its node, and ends first.
    """
    blocks = submission.whole.block_of
    own, key = batch.spec.trial, sweep_key(batch.spec.trial)
    sizes = {one.asked.variant.batch_size for one in submission.whole.trials if sweep_key(one) == key}
    smaller: list[tuple[int, str]] = []
    earlier: list[str] = []
    for other, job in sent:
        size, trial = other.spec.trial.asked.variant.batch_size, other.spec.trial
        if len(sizes) >= FEWEST_BATCH_SIZES and sweep_key(trial) == key:
            smaller += [(size, job)] if size < own.asked.variant.batch_size else []
        if 0 < blocks.get(trial.id, 1) < blocks.get(own.id, 1):
            minutes = (PAUSE.total_seconds() + trial.timeout_seconds) / 60
            earlier.append(f"{job}+{minutes:.0f}")
    parts = [f"afterok:{max(smaller)[1]}"] if smaller else []
    parts += [f"after:{':'.join(earlier)}"] if earlier else []
    parts += [f"afterany:{before}"] if before else []
    return ",".join(parts) or None


def send(
    context: SubmitContext, submission: Submission, parts: Sequence[Batch], scheduler: Slurm, say: Say
) -> Submission:
    """Sends batches one after the other, each written down before; raises as Slurm.send does."""
    sent: list[tuple[Batch, str]] = []
    clusters = scheduler.clusters(context.site.lines)
    # The last that this user sent to these clusters and may still wait for.
    own = [batch for each in kept.all_open(context.setting.root) if each.mine for batch in each.batches]
    live = [batch for batch in own if batch.job and batch.clusters == clusters and not batch.given_up]
    last = str(max(live, key=lambda batch: batch.sent_at).job) if live else None
    for part in in_order(parts, submission):
        before = last if _waits(part, context.site) else None
        batch = replace(part, dependency=dependency(part, submission, sent, before))
        path = write(context, submission, batch)
        note = _note(batch).model_copy(update={"clusters": clusters})
        submission = _with(context.setting.root, submission, note)
        job = _sent(scheduler, path, note, say)
        known = {"job": job.number, "clusters": (job.cluster,) if job.cluster else note.clusters}
        submission = _with(context.setting.root, submission, note.model_copy(update=known))
        last = str(job.number)
        sent.append((batch, last))
        say(f"job {job}: {batch.title}")
    return submission


def _note(batch: Batch) -> Sent:
    known = {name: getattr(batch, name) for name in ("name", "trials", "attempts", "node")}
    return Sent(**known, sent_at=datetime.now(UTC))


def shown(context: SubmitContext, submission: Submission, parts: Sequence[Batch]) -> Iterator[str]:
    """The scripts that `send` would send; the number of a job that another waits for is not known yet."""
    sent: list[tuple[Batch, str]] = []
    for number, part in enumerate(in_order(parts, submission), 1):
        before = sent[-1][1] if sent and _waits(part, context.site) else None
        batch = replace(part, dependency=dependency(part, submission, sent, before))
        sent.append((batch, f"JOB{number}"))
        yield script(batch, context.site)


def _waits(batch: Batch, site: Site) -> bool:
    """Whether it waits for the job before it; what each node does by itself disturbs no other."""
    return site.one_by_one and batch.node is None


def _sent(scheduler: Slurm, path: Path, note: Sent, say: Say) -> JobId:
    """The job that a script became; one whose number cannot be read is found by its name, now or later."""
    try:
        return scheduler.send(path, note.clusters)
    except Unread as unread:
        states = scheduler.states(note.clusters or (None,))
        job = next((state.id for state in states if state.name == note.name), None)
        if job is None:
            raise NoEngine(
                f"{unread.problem}; no job '{note.name}' is known yet",
                remedy="give the same line again: it goes on with that job where it is there by then",
            ) from None
        say(f"{unread.problem}; by its name it is job {job}")
        return job


def in_order(parts: Sequence[Batch], submission: Submission) -> list[Batch]:
    """Earlier blocks of time first, and of a sweep the smaller batch sizes; else as they come."""
    blocks = submission.whole.block_of
    places: dict[str, int] = {}
    for at, part in enumerate(parts):
        places.setdefault(sweep_key(part.spec.trial), at)

    def key(part: Batch) -> tuple[int, int, int]:
        trial = part.spec.trial
        return blocks.get(trial.id, 1), places[sweep_key(trial)], trial.asked.variant.batch_size

    return sorted(parts, key=key)


def write(context: SubmitContext, submission: Submission, batch: Batch) -> Path:
    """The batch's script, and what its jobs read."""
    lay_out(context, submission, batch)
    path = batch.jobs / f"batch-{batch.name.rpartition('-')[2]}.sh"
    store.write_whole(path, script(batch, context.site), replace=True)
    return path


def by_hand(
    context: SubmitContext, submission: Submission, parts: Sequence[Batch]
) -> tuple[Submission, tuple[tuple[Path, int], ...]]:
    """Writes batches that another scheduler will start: each trial's script, and its place in it."""
    lines: list[tuple[Path, int]] = []
    for batch in in_order(parts, submission):
        path = write(context, submission, batch)
        note = _note(batch).model_copy(update={"by_hand": True})
        submission = _with(context.setting.root, submission, note)
        lines += [(path, place) for place in range(len(batch.trials))]
    return submission, tuple(lines)


def _with(root: Path, submission: Submission, note: Sent) -> Submission:
    others = tuple(each for each in submission.batches if each.name != note.name)
    changed = submission.model_copy(update={"batches": (*others, note)})
    kept.write(root, changed)
    return changed
