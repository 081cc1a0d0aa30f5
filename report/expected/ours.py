"""A record of a published program, as the row that it would be in the table of that program."""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.record import Record
from harness.record.published.program import Program, Table
from report.expected.figures import TIMES, Row, Task


def table_task(table: Table, model: str, batch: int) -> Task:
    """The task of a model's run at a batch."""
    fixed = batch if table.batch_rule == "fixed" else None
    return Task(table.program, _filled(table.work, {"model": model}), table.precision, fixed, table.unit)


def table_row(record: Record, program: Program, card: str, rate: float) -> Row | None:
    """Null where it is of no table: another command, or other options than the table's.

    `rate` is in samples per second.
    """
    on = program.on.get(record.trial.asked.device)
    names, table = _names(record, program), program.table
    ran = record.measurement.program if record.measurement else None
    if not table or not ran or (ran.commit, ran.tree) != (program.commit, program.tree):
        return None
    given = (*program.command, *(on.arguments if on else ()))
    command = tuple(filled for word in given if (filled := _filled(word, names)))
    if command != ran.command or any(names[name] != value for name, value in table.options.items()):
        return None
    batch = record.trial.asked.variant.batch_size
    return Row(
        source=record.session,
        licence="CC0-1.0",
        commit=ran.commit,
        path=record.trial.id,
        program=table.program,
        work=_filled(table.work, names),
        precision=table.precision,
        batch=batch,
        batch_rule=table.batch_rule,
        card=card,
        software=record.environment.image,
        unit=table.unit,
        value=1000 * batch / rate if table.unit in TIMES else table.per_sample * rate,
    )


def _names(record: Record, program: Program) -> dict[str, object]:
    """What stood in braces, as the workload fills them."""
    asked, on = record.trial.asked, program.on.get(record.trial.asked.device)
    options = {**program.options, **(on.options if on else {}), **asked.variant.options}
    return {**asked.variant.model_dump(), "seed": record.trial.seed, **options}


def _filled(word: str, names: Mapping[str, object]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: str(names.get(found[1], found[0])), word)
