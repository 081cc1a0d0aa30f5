"""What a machine started and what of it a page shows: every attempt counts once, with why it is not shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

from harness.record import Session
from harness.record.ledger import Attempt, Ledger, LedgerBegin
from harness.record.store import Results
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

Fate = Literal[
    "shown",
    "superseded by a newer session of its plan",
    "of another plan",
    "not comparable",
    "invalid",
    "failed",
    "stopped",
    "failed, and the record is not here",
    "measured, and the record is not here",
]


@dataclass(frozen=True, slots=True)
class Account:
    """Of one machine: its sessions, the attempts that they started, and what became of each."""

    machine: str
    label: str
    sessions_shown: int
    sessions: int
    """That started something, those that are known by their number alone among them."""
    absent_sessions: int
    """Known by their number or their ledger, and not here."""
    unknown_sessions: int
    """Of these, those that are known by their number alone: what they started is in no count."""
    fates: tuple[tuple[Fate, int], ...]
    """How many attempts each, the shown ones first."""
    before_ledgers: int
    """Sessions from before one was kept: what they stopped is not known."""
    lost_ledgers: int
    unentered: int
    """Records that stand in no ledger, though their session has one."""
    without_trace: int
    """Planned trials that left neither a record nor a line in a ledger."""
    cut_short: int
    """Ledgers whose last line is half a line."""
    plan_changes: tuple[tuple[str, int], ...]
    """How often the file of a plan changed from one session to the next."""

    @property
    def started(self) -> int:
        """Attempts."""
        return sum(number for _, number in self.fates)

    @property
    def shown(self) -> int:
        """Attempts."""
        return dict(self.fates).get("shown", 0)


def accounts(
    results: Results, trials: Iterable[TrialResult], shown: Collection[str], lead: str | None
) -> tuple[Account, ...]:
    """Of each machine with a record on the page, that of the session `lead` first. `shown` are paths."""
    by_machine = grouped_by(trials, lambda trial: trial.machine)
    standing = [machine for machine, rows in by_machine.items() if any(row.path in shown for row in rows)]
    standing.sort(key=lambda machine: not any(row.session == lead for row in by_machine[machine]))
    plans = {row.record.plan for rows in by_machine.values() for row in rows if row.session == lead}
    return tuple(_account(results, machine, by_machine[machine], shown, plans) for machine in standing)


def _account(
    results: Results,
    machine: str,
    trials: Sequence[TrialResult],
    shown: Collection[str],
    lead_plans: set[str],
) -> Account:
    sessions = {session.id: session for session in results.sessions if session.machine == machine}
    ledgers = {ledger.begin.session: ledger for ledger in results.ledgers if ledger.begin.machine == machine}
    of_session = grouped_by(trials, lambda trial: trial.session)
    newest = {
        row.record.plan: row.session for row in sorted(trials, key=lambda row: (row.turn, row.started_at))
    }
    fates = Counter(
        _fate(row, shown, row.session == newest[row.record.plan], row.record.plan in lead_plans)
        for row in trials
    )
    unentered = 0
    for name, ledger in ledgers.items():
        records = Counter((row.record.trial.id, row.record.attempt) for row in of_session.get(name, ()))
        without_record, unknown = _without_record(ledger, records)
        fates += without_record
        unentered += unknown
    here = sessions.keys() | of_session.keys()
    numbers = {ledger.begin.number for ledger in ledgers.values()}
    numbers |= {session.number for session in sessions.values() if session.number}
    beyond = max(numbers, default=0) - len(numbers)
    started = of_session.keys() | {name for name, ledger in ledgers.items() if ledger.starts}
    without_ledger = [sessions.get(name) for name in (here & started) - ledgers.keys()]
    lost_ledgers = sum(session is not None and session.number is not None for session in without_ledger)
    return Account(
        machine=machine,
        label=trials[0].machine_label,
        sessions_shown=len({row.session for row in trials if row.path in shown}),
        sessions=len(started) + beyond,
        absent_sessions=beyond + len(started - here),
        unknown_sessions=beyond,
        fates=tuple((fate, fates[fate]) for fate in get_args(Fate) if fates[fate]),
        before_ledgers=len(without_ledger) - lost_ledgers,
        lost_ledgers=lost_ledgers,
        unentered=unentered,
        without_trace=sum(
            _without_trace(session, of_session.get(name, ()), ledgers.get(name))
            for name, session in sessions.items()
        ),
        cut_short=sum(ledger.cut_short for ledger in ledgers.values()),
        plan_changes=_plan_changes([*sessions.values()], [ledger.begin for ledger in ledgers.values()]),
    )


def _fate(trial: TrialResult, shown: Collection[str], newest: bool, of_lead_plan: bool) -> Fate:
    if trial.failure is not None:
        return "failed"
    if trial.verdict == "invalid":
        return "invalid"
    if trial.path in shown:
        return "shown"
    if not newest:
        return "superseded by a newer session of its plan"
    return "not comparable" if of_lead_plan else "of another plan"


def _without_record(ledger: Ledger, records: Counter[Attempt]) -> tuple[Counter[Fate], int]:
    """What became of the attempts without a record, and how many records the ledger does not know."""
    fates: Counter[Fate] = Counter()
    unknown = 0
    for attempt in {*ledger.starts, *ledger.measured, *ledger.failed, *records}:
        starts, measured, failed = (by[attempt] for by in (ledger.starts, ledger.measured, ledger.failed))
        ended = max(measured + failed, records[attempt])
        lost = ended - records[attempt]
        lost_measured = min(lost, measured)
        fates["stopped"] += max(0, starts - ended)
        fates["measured, and the record is not here"] += lost_measured
        fates["failed, and the record is not here"] += lost - lost_measured
        unknown += max(0, records[attempt] - max(starts, measured + failed))
    return +fates, unknown


def _without_trace(session: Session, trials: Sequence[TrialResult], ledger: Ledger | None) -> int:
    """How many of a session's planned trials nothing is known of."""
    known = {trial.record.trial.id for trial in trials}
    if ledger is not None:
        known |= {trial for trial, _ in (*ledger.starts, *ledger.measured, *ledger.failed)}
    return sum(trial.id not in known for trial in session.trials)


def _plan_changes(sessions: Sequence[Session], begun: Sequence[LedgerBegin]) -> tuple[tuple[str, int], ...]:
    """By plan, how often its hash differs from the session's before; in the order in which they began."""
    begins = {session.id: (session.started_at, session.plan, session.plan_sha256) for session in sessions}
    begins |= {begin.session: (begin.at, begin.plan, begin.plan_sha256) for begin in begun}
    hashes = grouped_by(sorted(begins.values()), lambda place: place[1])
    changes = {
        plan: sum(before[2] != after[2] for before, after in pairwise(places))
        for plan, places in hashes.items()
    }
    return tuple((plan, times) for plan, times in changes.items() if times)
