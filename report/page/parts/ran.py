"""What ran: trials, attempts, failures, software and machines, what was left out, and the records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from harness.record import PRECISIONS, PrecisionFound, Probe
from harness.record.finding import label, sentence
from harness.summary.device_checks import machine_findings
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.groups import ComparisonGroup, differences
from report.page.machines import first_of
from report.page.systems import Systems
from report.page.values import Command, Quantity, System
from report.trials.account import LOST, Account
from report.trials.key import grouped_by
from report.trials.trial import TrialResult

MOST_TRIALS = 200
SHORT_HASH = 12


@dataclass(frozen=True, slots=True)
class TrialRow:
    """One trial in short cells."""

    system: System
    name: str
    precision: str
    batch: int
    repeat: int
    verdict: str
    """valid, warn, unproven, invalid, or failed."""
    causes: tuple[str, ...]
    speed: Quantity
    own: bool
    """Whether the leading session ran it."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """What became of all that one machine started."""

    machine: str
    sessions_shown: int
    sessions: int
    started: int
    shown: int
    failed: int
    invalid: int
    superseded: int
    elsewhere: int
    """Of another plan, or not comparable."""
    stopped: int
    lost: int
    """Ended, by the ledger, without a record that is here."""
    before_ledgers: bool
    """Whether sessions are from before a ledger was kept: what they stopped is in no count."""


@dataclass(frozen=True, slots=True)
class FailureRow:
    """Trials that failed alike."""

    name: str
    system: System
    stage: str
    reason: str
    exit_code: int | None
    message: str
    count: int
    log: tuple[str, ...]
    """The last lines of the newest one's log, where it lies on this machine and the page is its own."""


@dataclass(frozen=True, slots=True)
class StackColumn:
    """The software and machine that one system ran with; a value of several is a text with commas."""

    system: System
    machine: str
    processor: str
    memory: Quantity
    driver: str
    image: str
    engine: str
    pinned: bool
    unpinned_because: str
    base: str
    base_substituted: bool
    lock: str
    versions: tuple[tuple[str, str], ...]
    variables: str
    unit: str
    sessions: tuple[str, ...]
    links: str
    remarks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArithmeticRow:
    """One precision as it was probed against float64; `reads` are operations, their error, and its type."""

    precision: str
    image: str
    method: str
    switches: str
    overrides: str
    reads: tuple[tuple[str, float, str], ...]
    trials: int


@dataclass(frozen=True, slots=True)
class PlannedRow:
    """What was planned and not run, by a budget or a machine."""

    what: str
    trials: int
    reason: str


@dataclass(frozen=True, slots=True)
class LeftRow:
    """What is on record and in no comparison, equal reasons of one machine together.

    `differs` are the fields that keep it out of the nearest comparison, each with that one's value and its
    own; none of an older session of a machine that is shown.
    """

    machine: str
    models: tuple[str, ...]
    sessions: int
    trials: int
    other_work: bool
    differs: tuple[tuple[str, str, str], ...]


@dataclass(frozen=True, slots=True)
class RanView:
    """All that ran, and what measures it again."""

    trials: tuple[TrialRow, ...]
    trials_left: int
    attempts: tuple[AttemptRow, ...]
    failures: tuple[FailureRow, ...]
    stacks: tuple[StackColumn, ...]
    version_names: tuple[str, ...]
    arithmetic: tuple[ArithmeticRow, ...]
    planned: tuple[PlannedRow, ...]
    left_over: tuple[LeftRow, ...]
    notes: tuple[str, ...]
    """Of the leading session, as its plan gave them."""
    again: tuple[Command, ...]
    folders: tuple[tuple[str, int], ...]
    """Where the records lie, and how many of each folder stand on the page."""
    precisions: tuple[tuple[str, str], ...]
    """The labels of precisions on the page, and what they mean."""


def view(analysis: Analysis, systems: Systems) -> RanView | None:
    """Of the leading session and all that stands beside it; null without a trial."""
    trials = [*analysis.own, *(trial for trial in analysis.shown if trial.session != analysis.lead)]
    if not trials:
        return None
    session = analysis.leading_session
    stacks = _stacks(trials, systems)
    words: dict[str, str] = {label: traits.words for label, traits in PRECISIONS.items()}
    labels = dict.fromkeys(trial.key.precision for trial in trials)
    asked = dict.fromkeys((trial.record.plan, trial.record.environment.image) for trial in analysis.own)
    return RanView(
        trials=tuple(_trial(trial, analysis, systems) for trial in trials[:MOST_TRIALS]),
        trials_left=max(0, len(trials) - MOST_TRIALS),
        attempts=tuple(map(_attempts, analysis.accounts)),
        failures=_failures(trials, systems, analysis.question.logs),
        stacks=stacks,
        version_names=tuple(dict.fromkeys(name for stack in stacks for name, _ in stack.versions)),
        arithmetic=_arithmetic(trials),
        planned=tuple(
            PlannedRow(text.clean(entry.what, 80), entry.trials, text.clean(entry.reason, 120))
            for entry in (session.left_out if session else ())
        ),
        left_over=_left_over(analysis.left_over, analysis.groups),
        notes=tuple(text.clean(note, 200) for note in (session.notes if session else ())),
        again=tuple(Command(text.run_again(plan, image)) for plan, image in asked),
        folders=tuple(Counter(text.clean(trial.path.rpartition("/")[0], 160) for trial in trials).items()),
        precisions=tuple((label, words[label]) for label in labels),
    )


def _trial(trial: TrialResult, analysis: Analysis, systems: Systems) -> TrialRow:
    failed = trial.failure is not None
    return TrialRow(
        system=systems.at(trial.machine, trial.card),
        name=text.model_name(trial.key.model),
        precision=trial.key.precision,
        batch=trial.key.batch_size,
        repeat=trial.repeat,
        verdict="failed" if failed else trial.verdict,
        causes=(_reason(trial),) if failed else tuple(dict.fromkeys(map(label, trial.causes))),
        speed=Quantity(trial.samples_per_second, f"{trial.sample_unit}s/s"),
        own=trial.session == analysis.lead,
    )


def _reason(trial: TrialResult) -> str:
    assert trial.failure is not None
    return trial.failure.reason.replace("-", " ")


def _attempts(account: Account) -> AttemptRow:
    fates = dict(account.fates)
    return AttemptRow(
        machine=text.clean(account.label, 40),
        sessions_shown=account.sessions_shown,
        sessions=account.sessions,
        started=account.started,
        shown=account.shown,
        failed=fates.get("failed", 0),
        invalid=fates.get("invalid", 0),
        superseded=fates.get("superseded by a newer session of its plan", 0),
        elsewhere=fates.get("of another plan", 0) + fates.get("not comparable", 0),
        stopped=fates.get("stopped", 0),
        lost=sum(fates.get(fate, 0) for fate in LOST.values()),
        before_ledgers=bool(account.before_ledgers),
    )


def _failures(
    trials: Iterable[TrialResult], systems: Systems, logs: Mapping[str, tuple[str, ...]]
) -> tuple[FailureRow, ...]:
    """Trials without a measurement; those that differ in their repeat alone are one row."""
    failed = (trial for trial in trials if trial.failure is not None)
    alike = grouped_by(
        failed,
        lambda trial: (
            trial.key,
            trial.machine,
            trial.card,
            trial.failure and (trial.failure.stage, trial.failure.reason, trial.failure.message),
        ),
    )
    return tuple(_failure(rows, systems, logs) for rows in alike.values())


def _failure(
    trials: Sequence[TrialResult], systems: Systems, logs: Mapping[str, tuple[str, ...]]
) -> FailureRow:
    trial, failure = trials[0], trials[0].failure
    assert failure is not None
    key = trial.key
    return FailureRow(
        name=f"{text.model_name(key.model)}, {key.precision}, batch {key.batch_size}",
        system=systems.at(trial.machine, trial.card),
        stage=failure.stage,
        reason=_reason(trial),
        exit_code=failure.exit_code,
        message=text.clean(failure.message, 300),
        count=len(trials),
        log=next((logs[one.path] for one in reversed(trials) if one.path in logs), ()),
    )


def _stacks(trials: Iterable[TrialResult], systems: Systems) -> tuple[StackColumn, ...]:
    """A column for each system and environment."""
    places = grouped_by(
        trials,
        lambda trial: (
            trial.machine,
            trial.card,
            trial.environment.image,
            trial.environment.lock_sha256,
            trial.environment.base_digest,
            trial.stack.driver,
        ),
    )
    return tuple(_stack(own, systems) for own in places.values())


def _stack(trials: Sequence[TrialResult], systems: Systems) -> StackColumn:
    first = max(trials, key=lambda trial: trial.failure is None)
    used, machine = first.environment, first_of([first])[first.machine]
    links: dict[str, list[str]] = {}
    for link in machine.links:
        links.setdefault(f"{link.vendor}, {link.words}", []).append(f"{link.first}–{link.second}")
    units = dict.fromkeys(trial.device_unit for trial in trials if trial.device_unit)
    return StackColumn(
        system=systems.at(first.machine, first.card),
        machine=text.clean(first.machine_label, 40),
        processor=text.clean(machine.cpu.model or "", 60),
        memory=Quantity(machine.memory_bytes, "bytes"),
        driver=text.clean(first.stack.driver or "", 30),
        image=_image(first),
        engine=text.clean(f"{used.engine} {used.engine_version or ''}", 40).strip(),
        pinned=used.pinned,
        unpinned_because=text.clean("; ".join(used.unpinned_because), 160),
        base=text.clean(used.base_digest or used.base or "", 28),
        base_substituted=used.base_substituted,
        lock=(used.lock_sha256 or "")[:SHORT_HASH],
        versions=tuple((name, text.clean(value, 40)) for name, value in first.stack.versions if value),
        variables=text.clean(", ".join(f"{name}={value}" for name, value in first.stack.variables), 160),
        unit=text.clean(", ".join(unit[:SHORT_HASH] for unit in units), 80),
        sessions=tuple(dict.fromkeys(trial.session for trial in trials)),
        links=text.clean("; ".join(f"{way}: {', '.join(ends)}" for way, ends in links.items()), 200),
        remarks=tuple(text.clean(sentence(found), 120) for found in machine_findings(machine)),
    )


def _image(trial: TrialResult) -> str:
    used = trial.environment
    return used.image if used.image == used.device else f"{used.image} ({used.device})"


def _arithmetic(trials: Iterable[TrialResult]) -> tuple[ArithmeticRow, ...]:
    """Each precision as it was probed, the switches that the framework showed, and what overrides them."""
    probed: dict[tuple[str, str, str, str, str], list[PrecisionFound]] = {}
    for trial in trials:
        measured = trial.record.measurement
        if measured is not None:
            found = measured.precision
            place = (found.label, _image(trial), text.clean(found.method, 60), *_switches(found))
            probed.setdefault(place, []).append(found)
    return tuple(ArithmeticRow(*place, _read(of), len(of)) for place, of in sorted(probed.items()))


def _switches(found: PrecisionFound) -> tuple[str, str]:
    """The framework's flags, and the environment's variables that override them; those are in capitals."""
    flags = [(name, f"{name}={value}") for name, value in found.flags.items() if value is not None]
    switches = (shown for name, shown in flags if not name.isupper())
    overrides = (shown for name, shown in flags if name.isupper())
    return text.clean(", ".join(switches), 400), text.clean(", ".join(overrides), 200)


def _read(precisions: Sequence[PrecisionFound]) -> tuple[tuple[str, float, str], ...]:
    """What each operation's largest error reads as."""
    most: dict[str, Probe] = {}
    for probe in (probe for precision in precisions for probe in precision.probes):
        if probe.operation not in most or not probe.error <= most[probe.operation].error:
            most[probe.operation] = probe
    return tuple((name, probe.error, text.clean(probe.reads_as, 20)) for name, probe in most.items())


def _left_over(cells: Iterable[Cell], groups: Sequence[ComparisonGroup]) -> tuple[LeftRow, ...]:
    alike = grouped_by(cells, lambda cell: (text.clean(cell.machine_label, 30), *_apart(cell, groups)))
    return tuple(
        LeftRow(
            machine=machine,
            models=tuple(dict.fromkeys(text.model_name(cell.key.model) for cell in members)),
            sessions=len({cell.session for cell in members}),
            trials=sum(len(cell.trials) for cell in members),
            other_work=other_work,
            differs=differs,
        )
        for (machine, other_work, differs), members in alike.items()
    )


def _apart(cell: Cell, groups: Sequence[ComparisonGroup]) -> tuple[bool, tuple[tuple[str, str, str], ...]]:
    """Whether a cell is of another workload or model than all on the page, else what keeps it out."""
    key = cell.key
    if all((key.workload, key.model) != (group.base.workload, group.base.model) for group in groups):
        return True, ()
    fields = [found for group in groups if (found := differences(group, cell))]
    nearest = min(fields, key=len, default=())[:3]
    return False, tuple((name, text.clean(there, 40), text.clean(here, 40)) for name, there, here in nearest)
