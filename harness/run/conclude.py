"""The end of one attempt, wherever it ran: its record is made, written, and entered in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.engine.base import Exit
from harness.record import Record, Session, store
from harness.run import assemble, ledger
from harness.run.assemble import Started
from harness.telemetry import recorder


@dataclass(frozen=True, slots=True)
class Terms:
    """What a record is made by, beside what its attempt left behind."""

    root: Path
    locked: Mapping[str, str] | None
    """What the environment's lock pins; null where no lock holds it."""
    over_base: bool
    redact: assemble.Redact


def conclude(
    terms: Terms,
    opened: Session,
    started: Started,
    work: Path,
    exit: Exit,
    say: Callable[[str], None],
    *,
    earlier: Iterable[Record],
    wall_seconds: float,
    timed_out: bool = False,
) -> Record:
    """Writes the record of an attempt that took `wall_seconds`; raises as store.write_record does.

    `earlier` are the session's records by now.
    """
    assembled = assemble.assemble(
        started,
        exit,
        work / "out",
        wall_seconds=wall_seconds,
        locked=terms.locked,
        over_base=terms.over_base,
        redact=terms.redact,
        timed_out=timed_out,
    )
    recorder.stop(work)
    record = assemble.judged(_with_changes(earlier, recorder.added(assembled.record, work)))
    if assembled.rejected is not None:
        store.keep_rejected(terms.root, opened, record.trial.id, record.attempt, assembled.rejected)
    store.write_record(terms.root, opened, record)
    ledger.trial_ended(terms.root, opened, record, say)
    return record


def _with_changes(earlier: Iterable[Record], record: Record) -> Record:
    """Adds a warning for each thing that differs from the session's first measured trial."""
    alike = [
        before
        for before in earlier
        if before.measurement is not None and before.trial.asked.workload == record.trial.asked.workload
    ]
    first = min(alike, key=lambda before: before.started_at, default=record)
    changes = assemble.changed_since(first, record)
    return record.model_copy(update={"warnings": (*record.warnings, *changes)})
