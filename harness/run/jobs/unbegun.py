"""Jobs that ended before they began on any node: each is written down where it was sent, for its record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from harness.engine.base import Exit
from harness.engine.scheduler import Told
from harness.machine import look
from harness.record import Load
from harness.redact import Names
from harness.run.assemble import Started
from harness.run.jobs import submission as kept
from harness.run.jobs.follow import Attempt, Place
from harness.run.jobs.node import NAMES, keep, own_session, read_order
from harness.run.unrecorded import FILE as STARTED

WHERE = "it ran on no node, and the machine told here is the one that sent it"


def ended(found: Iterable[Place], forgotten: Mapping[tuple[int, int], Told]) -> Iterator[tuple[Place, Exit]]:
    """Places in which no attempt began, and why, of each trial the newest alone.

    `forgotten` is what accounting tells of jobs that their scheduler knows no more.
    """
    newest = {place.trial: place for place in found}
    for place in newest.values():
        told = _why(place, forgotten)
        if not place.attempts and not place.in_flight and told is not None:
            yield place, Exit(code=None, log="", cause=told.cause, said=f"{told.words}; {WHERE}")


def _why(place: Place, forgotten: Mapping[tuple[int, int], Told]) -> Told | None:
    batch = place.batch
    if place.state is not None and place.state.cause is not None:
        return Told(place.state.cause, f"the scheduler says {place.state.word}")
    # One whose number was lost may never have been sent.
    if place.state is not None or batch.by_hand or batch.job is None:
        return None
    if batch.given_up:
        return Told("cancelled", "it was cancelled by `invoke cancel`")
    unknown = Told("engine-gone", "the scheduler knows nothing of it any more")
    return forgotten.get((batch.job, batch.task_of(place.trial)), unknown)


def write_down(
    jobs: Path, gone: Iterable[tuple[Place, Exit]], names: Names
) -> Iterator[tuple[Started, Attempt, Exit]]:
    """Of each place the attempt that never was, as if it had begun and ended now."""
    machine = None
    for place, exit in gone:
        batch, trial = place.batch, place.trial
        number = batch.attempts[batch.trials.index(trial)]
        work = kept.work_folder(jobs, trial, number)
        (work / "out").mkdir(parents=True, exist_ok=True)
        (work / "job").touch()
        order = read_order(jobs, trial)
        machine = machine or look(order.label)[0].model_copy(update={"declared": order.declared})
        started = Started(
            trial=order.trial,
            attempt=number,
            session=own_session(jobs, order, machine).id,
            plan=order.plan,
            order=order.place,
            block=1,
            started_at=datetime.now(UTC),
            environment=order.environment,
            machine=machine,
            nodes=order.nodes,
            load=Load(unknown_because="its job began on no node"),
            harness=order.harness,
        )
        keep(work / NAMES, json.dumps(asdict(names)))
        keep(work / STARTED, started.model_dump_json())
        attempt = Attempt(trial, number, batch, batch.task_of(trial), work, over=True, last_of_job=True)
        yield started, attempt, exit
