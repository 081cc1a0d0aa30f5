"""What a run writes into its machine's ledger: its session, and each trial's start and end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from harness.errors import MachineError
from harness.record import Record, Session, store
from harness.record.ledger import LedgerBegin, LedgerLine, TrialEnd, TrialStart
from harness.run.assemble import Started

Say = Callable[[str], None]

_COUNTED = "sessions-begun"


def next_number(kept: Path, root: Path, machine: str) -> int:
    """The number of a machine's next session, from 1; in its folder of the user's state, for all clones."""
    path = kept / _COUNTED
    last = 0
    with suppress(OSError, ValueError):
        last = int(path.read_text(encoding="ascii").strip()[:6])
    known = (session.number or 0 for session in store.read_sessions(root) if session.machine == machine)
    number = max(0, last, *known) + 1
    store.write_whole(path, f"{number}\n", replace=True)
    return number


def begun(root: Path, session: Session) -> None:
    """Writes the first line; raises MachineError where it cannot be written, before anything has run."""
    if session.number is None:
        return
    line = LedgerBegin(
        session=session.id,
        machine=session.machine,
        number=session.number,
        plan=session.plan,
        plan_sha256=session.plan_sha256,
        at=session.started_at,
    )
    store.append_to_ledger(root, session, line)


def trial_started(root: Path, session: Session, started: Started, say: Say) -> None:
    """An attempt is about to start."""
    line = TrialStart(trial=started.trial.id, attempt=started.attempt, at=started.started_at)
    _enter(root, session, line, say)


def trial_stopped(root: Path, session: Session, started: Started, say: Say) -> None:
    """An attempt was stopped, and leaves no record."""
    now = datetime.now(UTC)
    line = TrialEnd(trial=started.trial.id, attempt=started.attempt, at=now, outcome="stopped")
    _enter(root, session, line, say)


def trial_ended(root: Path, session: Session, record: Record, say: Say) -> None:
    """An attempt has ended, and its record is written."""
    line = TrialEnd(
        trial=record.trial.id,
        attempt=record.attempt,
        at=datetime.now(UTC),
        outcome="measured" if record.failure is None else "failed",
        reason=record.failure and record.failure.reason,
    )
    _enter(root, session, line, say)


def _enter(root: Path, session: Session, line: LedgerLine, say: Say) -> None:
    """A ledger that cannot be written stops no trial and loses no record: it is said."""
    if session.number is None:
        return
    try:
        store.append_to_ledger(root, session, line)
    except MachineError as error:
        say(f"{error.problem}: the run goes on, and the page will say what the ledger lacks")
