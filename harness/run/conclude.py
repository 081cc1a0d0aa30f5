"""The end of one attempt, wherever it ran: its record is made, written, and entered in the ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.engine.base import Exit
from harness.engine.local import LOG
from harness.record import Record, Session, store
from harness.run import assemble, ledger
from harness.run.assemble import Started
from harness.telemetry import recorder

SAID_LINES = 6


@dataclass(frozen=True, slots=True)
class Terms:
    """What a record is made by, beside what its attempt left behind."""

    root: Path
    locked: Mapping[str, str] | None
    """What the environment's lock pins; null where no lock holds it."""
    over_base: bool


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
    made = assemble.assemble(
        started,
        exit,
        work / "out",
        wall_seconds=wall_seconds,
        locked=terms.locked,
        over_base=terms.over_base,
        timed_out=timed_out,
    )
    recorder.stop(work)
    record = assemble.judged(_with_changes(earlier, recorder.added(made, work)))
    store.write_record(terms.root, opened, record)
    ledger.trial_ended(terms.root, opened, record, say)
    if record.failure is not None:
        _say_log(exit.log, work, say)
    return record


def _say_log(log: str, work: Path, say: Callable[[str], None]) -> None:
    """The log's end goes to whoever ran the trial; no record has it, since it may name folders and people."""
    last = [line.rstrip() for line in log.splitlines() if line.strip()][-SAID_LINES:]
    if last:
        say("\n".join((f"the end of its log, {work / LOG}:", *(f"  {line[:200]}" for line in last))))


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
