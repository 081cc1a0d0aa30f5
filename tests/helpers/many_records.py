"""Constructed records of 300 steps, ten to a machine: as many as a report's growth is shown by."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from harness.record import KernelTime, Machine, Record, Series
from harness.record.store import write_record, write_session
from harness.summary.statistics import judge_trial
from tests.helpers import records_builder as build
from tests.helpers.bundled import session_of

PER_MACHINE = 10
STEPS = 300
WALL_SECONDS = 600.0
PRECISIONS = ("fp32-ieee", "amp-fp16")


def make_machine(place: int) -> Machine:
    """Return a constructed machine with one of twenty models of card."""
    made = build.machine(f"Constructed Card {place % 20}", label=str(place), digits=f"{place:012x}")
    card = made.gpus[0].model_copy(update={"unit": f"{place:016x}"})
    return made.model_copy(update={"gpus": (card,)})


def make_record(place: int, order: int, fp32_seconds: float) -> Record:
    """Return one of a machine's trials: two precisions in turn, the steps of the second half as long."""
    on = make_machine(place)
    asked = build.trial(build.LM, PRECISIONS[order % 2], order // 2 + 1, batch_size=20)
    measured = build.measurement(
        build.LM,
        asked,
        fp32_seconds / (1 + order % 2),
        card=on.gpus[0].name,
        complete=False,
        steps=STEPS,
        seed=PER_MACHINE * place + order,
        packages={f"package-{n}": "1.0" for n in range(30)},
    )
    steps = measured.step_us.values()
    watched = {
        "input_us": Series.from_microseconds([value // 30 for value in steps]),
        "kernels": KernelTime(steps=1, busy_seconds=0.9 * sum(steps) / len(steps) / 1e6),
    }
    record = build.record(
        asked,
        measured.model_copy(update=watched),
        on=on,
        session=f"20260131-{place:06x}",
        order=order,
        started_at=build.STARTED + timedelta(minutes=place, seconds=order * WALL_SECONDS),
        wall_seconds=WALL_SECONDS,
    )
    return record.model_copy(update={"summary": judge_trial(record)})


def write_records(root: Path, records: int) -> None:
    """Write sessions of ten records, a machine to each: two precisions, five repeats."""
    for place in range(records // PER_MACHINE):
        made = [make_record(place, order, 0.5 * (1 + place % 20 / 10)) for order in range(PER_MACHINE)]
        session = session_of(made, "f" * 64)
        write_session(root, session)
        for record in made:
            write_record(root, session, record)
