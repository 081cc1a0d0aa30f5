"""Figures of one device, published or of a program that ran here: which work, on which card, how fast."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import numpy as np
from pydantic import Field

from harness.record import Model, Precision, Record
from harness.record.published.claim_set import suggest_name
from harness.record.published.program import Program
from report.expected.specs import FOLDER, CardSpecs, csv_rows, read_rows

if TYPE_CHECKING:
    import pandas as pd

PUBLISHED = FOLDER / "published"

RateUnit = Literal["images/s", "samples/s", "sequences/s", "tokens/s", "items/s", "mel items/s", "points"]
TimeUnit = Literal["ms/step", "ms/image", "s", "min total"]
RATES, TIMES = frozenset(get_args(RateUnit)), frozenset(get_args(TimeUnit))


class PublishedRow(Model):
    """One row of a table in results/tables/published/."""

    source: str
    licence: str
    commit: Annotated[str, Field(pattern="^([0-9a-f]{7,40}|not recorded)$")]
    path: str
    program: str
    work: str
    precision: Precision
    batch: Annotated[int, Field(ge=1)] | None = None
    batch_rule: Literal["fixed", "tuned"]
    """Whether every card had this batch, or each one that fits it."""
    card: str
    software: str
    year: int | None = None
    """When its software was released, where another row differs from it in that alone."""
    unit: Literal[RateUnit, TimeUnit]
    value: Annotated[float, Field(gt=0)]


@dataclass(frozen=True, slots=True, order=True)
class TrainingTask:
    """What was trained: a program's work in one precision; the batch where it is the same for every card."""

    program: str
    work: str
    precision: Precision
    batch: int | None
    unit: str

    @property
    def key(self) -> str:
        """Its name in a table."""
        return f"{self.program}\t{self.work}\t{self.precision}\t{self.batch or ''}\t{self.unit}"

    def value(self, log_speed: float) -> float:
        """Return the figure in the task's unit."""
        return float(np.exp(-log_speed if self.unit in TIMES else log_speed))

    def log_speed(self, value: float) -> float:
        """Return the logarithm of a figure's speed: larger is faster, whatever the unit."""
        return float(-np.log(value) if self.unit in TIMES else np.log(value))


def read_tables(root: Path) -> dict[str, tuple[PublishedRow, ...]]:
    """Return the rows of every table by its name; raises UserError with the file and the wrong line."""
    paths = sorted((root / PUBLISHED).glob("*.csv"))
    return {
        path.stem: tuple(row for _, row in csv_rows(root, path.relative_to(root), PublishedRow))
        for path in paths
    }


def table_problems(root: Path, cards: Collection[str]) -> Iterator[str]:
    """Yield a sentence for each row of a published table that cannot be used, with its line and column."""
    for path in sorted((root / PUBLISHED).glob("*.csv")):
        name = path.relative_to(root)
        for line, row in read_rows(root, name, PublishedRow):
            if isinstance(row, str):
                yield f"{name}, line {line}, {row}"
            elif row.card not in cards:
                unknown = f"'{row.card[:40]}' is in no table of cards{suggest_name(row.card, cards)}"
                yield f"{name}, line {line}, column 'card': {unknown}"


def task_of(row: PublishedRow) -> TrainingTask:
    """Return the task that a row is of."""
    batch = row.batch if row.batch_rule == "fixed" else None
    return TrainingTask(row.program, row.work, row.precision, batch, row.unit)


def software_of(row: PublishedRow) -> str:
    """Return the software that a row's figure goes with, which is one program's."""
    return f"{row.program} {row.software}"


def figures_of(rows: Iterable[PublishedRow]) -> pd.DataFrame:
    """Return one line for each task, software and card: the median of its rows, and how many they are."""
    import pandas as pd

    found = pd.DataFrame(
        {
            "task": task.key,
            "program": row.program,
            "work": row.work,
            "precision": row.precision,
            "software": software_of(row),
            "card": row.card,
            "log_speed": task.log_speed(row.value),
            "unit": row.unit,
            "batch": task.batch or 0,
        }
        for row in rows
        for task in (task_of(row),)
    )
    keys = [name for name in found.columns if name != "log_speed"]
    return found.groupby(keys, sort=True, as_index=False).agg(
        log_speed=("log_speed", "median"), rows=("log_speed", "size")
    )


def fingerprint(rows: Iterable[PublishedRow], specs: Mapping[str, CardSpecs], settings: object) -> str:
    """Return the hash of all that a fit is of."""
    digest = hashlib.sha256(repr(settings).encode())
    for part in (*rows, *specs.values()):
        digest.update(part.model_dump_json().encode())
    return digest.hexdigest()


def table_row(record: Record, program: Program, card: str, rate: float) -> PublishedRow | None:
    """Return a record as a row of its program's table; null where its command or options are others.

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
    return PublishedRow(
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
    """Return the values of the names in braces, as the workload fills them."""
    asked, on = record.trial.asked, program.on.get(record.trial.asked.device)
    options = {**program.options, **(on.options if on else {}), **asked.variant.options}
    return {**asked.variant.model_dump(), "seed": record.trial.seed, **options}


def _filled(word: str, names: Mapping[str, object]) -> str:
    return re.sub(r"\{(\w+)\}", lambda found: str(names.get(found[1], found[0])), word)
