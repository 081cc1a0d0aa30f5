"""What records say against each other: those of one session, of one machine, and of one commit."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import pairwise

from harness.engines import ENGINES
from harness.record import Measurement, Record, Session
from harness.record.machine import differing_fields
from harness.record.store import Results, Stored

PAUSE = timedelta(seconds=60)
"""A machine gets other cores, memory or another kernel by a restart, which takes as long."""
FIXED = frozenset(
    (
        *(
            "system",
            "kernel",
            "distribution",
            "libc",
            "architecture",
            "virtual",
            "memory_bytes",
            "numa_nodes",
        ),
        *("cpu.model", "cpu.sockets", "cpu.cores", "cpu.threads", "cpu.features"),
    )
)
"""What no machine changes while it runs."""
MEMORY_APART = 0.05
"""What a host takes back from a virtual machine while it runs."""


def session_contradictions(results: Results) -> Iterator[str]:
    """Yield trials out of their session's order, attempts that lack an earlier one, and other machines."""
    sessions = {session.id: session for session in results.sessions}
    for name, records in _by_session(results.records).items():
        if name in sessions:
            yield from _unplanned(sessions[name], records)
        yield from _other_software(records)
        yield from (f"{path}: {what}" for path, what, paused in _changes(records) if not paused)


def changes_over_pauses(results: Results) -> Iterator[str]:
    """Yield what of a machine changed between two trials with time enough for a restart."""
    for records in _by_session(results.records).values():
        yield from (f"{path}: {what}, after a pause" for path, what, paused in _changes(records) if paused)


def _by_session(records: Sequence[Stored]) -> dict[str, list[Stored]]:
    by_session: dict[str, list[Stored]] = {}
    for stored in sorted(records, key=lambda each: each.record.started_at):
        by_session.setdefault(stored.record.session, []).append(stored)
    return by_session


def _unplanned(session: Session, records: Sequence[Stored]) -> Iterator[str]:
    places = {trial.id: place for place, trial in enumerate(session.trials)}
    attempts = {(stored.record.trial.id, stored.record.attempt) for stored in records}
    for stored in records:
        record = stored.record
        place = places.get(record.trial.id, record.order)
        # A submission's trials have their places in the whole, of which this machine's session is a part.
        if record.order != place and ENGINES[record.environment.engine].in_order:
            yield f"{stored.path}: it is number {record.order} of its session, which has it as number {place}"
        if record.attempt > 1 and (record.trial.id, record.attempt - 1) not in attempts:
            yield f"{stored.path}: it is attempt {record.attempt}, and the one before it is not there"


def _changes(own: Sequence[Stored]) -> Iterator[tuple[str, str, bool]]:
    """Yield each record's path, what its machine has other than the one before it, and if after a pause."""
    for before, after in pairwise(own):
        paused = after.record.started_at - _end(before.record) >= PAUSE
        if before.record.harness != after.record.harness:
            yield after.path, "another gpudyno made it than the trial before it", paused
        for field, was, now in differing_fields(before.record.machine, after.record.machine):
            alike = field == "memory_bytes" and was and now and abs(now - was) <= MEMORY_APART * was
            if field in FIXED and not alike:
                yield after.path, f"its {field} is {now}, where the trial before it had {was}", paused


def _other_software(own: Sequence[Stored]) -> Iterator[str]:
    """Yield each record whose stack is not that of one before it, of one environment and without a pause."""
    first: dict[Hashable, Stored] = {}
    for last, stored in pairwise((own[0], *own)):
        if stored.record.started_at - _end(last.record) >= PAUSE:
            first.clear()
        environment, measured = stored.record.environment, stored.record.measurement
        if measured is not None:
            key = (environment.image, tuple(sorted(environment.passed_variables.items())))
            before = first.setdefault((*key, measured.workload), stored).record
            one = before.measurement
            if one and (before.environment, one.versions, one.packages) != (
                environment,
                measured.versions,
                measured.packages,
            ):
                yield f"{stored.path}: its environment or versions are not those of the trials before it"


def _end(record: Record) -> datetime:
    return record.started_at + timedelta(seconds=record.wall_seconds)


def number_contradictions(sessions: Sequence[Session]) -> Iterator[str]:
    """Yield each session whose number another session of its machine has."""
    first: dict[tuple[str, int], str] = {}
    for session in sessions:
        if session.number is not None:
            other = first.setdefault((session.machine, session.number), session.id)
            if other != session.id:
                yield f"session {session.id}: it is number {session.number} of its machine, as {other} is"


def source_contradictions(known: Sequence[Stored], records: Sequence[Stored]) -> Iterator[str]:
    """Yield records with other code or data than one before, `known` first, of the same work and commit."""
    code: dict[Hashable, Stored] = {}
    given: dict[Hashable, Stored] = {}
    for stored in (*known, *records):
        record, measured = stored.record, stored.record.measurement
        commit, asked = record.harness.revision, record.trial.asked
        if measured is None or commit is None or record.harness.modified:
            continue
        earlier = code.setdefault(
            (commit, asked.file, *_code_of(record, measured)), stored
        ).record.measurement
        if earlier and earlier.workload_sha256 != measured.workload_sha256:
            yield f"{stored.path}: its workload's code is not that of other records of commit {commit[:12]}"
        request = record.trial.id.rpartition("-")[2]
        earlier = given.setdefault((commit, request), stored).record.measurement
        if earlier and _given(earlier) != _given(measured):
            yield f"{stored.path}: its data or protocol is not that of records of its request and commit"


def _given(measured: Measurement) -> tuple[Hashable, ...]:
    """Return what of a measurement follows from its request and its code."""
    data, protocol = measured.data, measured.protocol
    items = (data.name, data.sha256, data.train_items, data.valid_items, data.test_items)
    # What has no items of its own may end where it found its figure.
    lengths = (protocol.steps_per_epoch, protocol.epochs, protocol.valid_batches)
    return (*items, measured.sample_unit, *(lengths if data.train_items else ()))


def _code_of(record: Record, measured: Measurement) -> tuple[Hashable, ...]:
    """Return what decides which files of a commit a trial imports."""
    asked, used, ran = record.trial.asked, measured.framework, measured.program
    names = (used.name if used else None, ran.name if ran else None, record.environment.image)
    return (asked.workload, asked.device, asked.variant.model, asked.variant.precision, *names)
