"""What each machine's sessions planned, and what of it a page shows: every planned trial counts once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from harness.record import Session
from harness.record.store import Results
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

Fate = Literal["shown", "failed", "invalid", "elsewhere", "missing"]
"""What became of a planned trial; "elsewhere" is of another session, plan or work than what is shown."""


@dataclass(frozen=True, slots=True)
class MachineAccount:
    """The sessions of one machine, the trials that they planned, and what became of each."""

    machine: str
    label: str
    sessions_shown: int
    sessions: int
    """Those that are known by a gap in the machine's numbers alone among them."""
    absent_sessions: int
    """Known by such a gap: what they planned is in no count."""
    fates: tuple[tuple[Fate, int], ...]
    """How many trials each, by their last attempt."""

    @property
    def planned(self) -> int:
        return sum(number for _, number in self.fates)

    @property
    def shown(self) -> int:
        return dict(self.fates).get("shown", 0)


def accounts(
    results: Results, trials: Iterable[TrialResult], shown: Collection[str], lead: str | None
) -> tuple[MachineAccount, ...]:
    """Account for each machine with a record on the page, that of session `lead` first. `shown` are paths."""
    by_machine = grouped_by(trials, lambda trial: trial.machine)
    standing = [machine for machine, rows in by_machine.items() if any(row.path in shown for row in rows)]
    standing.sort(key=lambda machine: not any(row.session == lead for row in by_machine[machine]))
    sessions = grouped_by(results.sessions, lambda session: session.machine)
    return tuple(_account(sessions.get(machine, ()), by_machine[machine], shown) for machine in standing)


def _account(
    sessions: Sequence[Session], trials: Sequence[TrialResult], shown: Collection[str]
) -> MachineAccount:
    numbers = {session.number for session in sessions if session.number}
    gap = max(numbers, default=0) - len(numbers)
    ordered = sorted(trials, key=lambda row: row.record.attempt)
    last = {(row.session, row.record.trial.id): row for row in ordered}
    planned = {(session.id, trial.id) for session in sessions for trial in session.trials}
    fates = Counter(_fate(row, shown) for row in last.values())
    fates["missing"] = len(planned - last.keys())
    return MachineAccount(
        machine=trials[0].machine,
        label=trials[0].machine_label,
        sessions_shown=len({row.session for row in trials if row.path in shown}),
        sessions=len({session.id for session in sessions} | {row.session for row in trials}) + gap,
        absent_sessions=gap,
        fates=tuple((fate, fates[fate]) for fate in get_args(Fate) if fates[fate]),
    )


def _fate(trial: TrialResult, shown: Collection[str]) -> Fate:
    if trial.failure is not None:
        return "failed"
    if trial.verdict == "invalid":
        return "invalid"
    return "shown" if trial.path in shown else "elsewhere"
