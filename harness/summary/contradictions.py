"""What a record says against itself, and what the records of a session say against each other or it.

Each is something that no run of ours writes. What agrees with itself throughout is found by no reader.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from itertools import pairwise

from harness.record import DEEP, DeviceUsed, Machine, Measurement, Record, Session, TrialRequest
from harness.record.ledger import Ledger
from harness.record.store import Results, Stored, in_order

CLOCKS_APART = 0.02
"""Of a window: two clocks, and the first step of a segment, may differ by so much."""

ITEMS_APART = 0.01
"""Of an epoch: what does not fill a batch, or a column of a text, may be left out."""

VIRTUAL_RANKS = "virtual_ranks"
"""An option of how many ranks one device stands in for, each with its own batch."""

DIFFERENT = 10
"""Step times that differ: fewer may be the ticks of a coarse clock."""

SAMPLED_SECONDS = 1.0
"""The telemetry's windows are rounded, and those outside its samples are left out."""

SET_BACK = timedelta(seconds=2)
"""By so much a clock may be set while a session runs."""

OWN_MEMORY = 0.02
"""Of a machine's memory: a kernel keeps a little more or less of it."""

_GPU = re.compile(r"GeForce|\b[RG]TX\b|Quadro|Tesla|Instinct|(?<!with )\bRadeon|NVIDIA (?!Grace\b)")
"""What a card is called, and no processor."""

A_DAY = timedelta(days=1)
"""The clocks of a node and of the machine that keeps the ledger may be hours apart."""

PAUSE = timedelta(minutes=59)
"""An hour lies between two blocks, but for a clock that is set."""


def not_as_asked(asked: TrialRequest, measured: Measurement) -> Iterator[str]:
    """Each of a measurement's terms that is not the one that was asked for."""
    pairs = (
        ("workload", measured.workload, asked.workload),
        ("protocol", measured.protocol_name, asked.protocol),
        ("precision", measured.precision.label, asked.variant.precision),
        ("data source", measured.data.source, asked.data),
        ("device", measured.device.kind, asked.device),
    )
    for what, found, wanted in pairs:
        if found != wanted:
            yield f"its {what} is {found[:80]!r}, where {wanted!r} was asked for"


def within(record: Record) -> Iterator[str]:
    """Each thing in a record that another part of it denies."""
    asked, measured = record.trial.asked, record.measurement
    if measured is None:
        return
    yield from not_as_asked(asked, measured)
    yield from _device(record, measured.device)
    yield from _window(record, measured)
    if not measured.ceilings and record.plan != DEEP:
        yield from _step_size(asked, measured)


def _device(record: Record, device: DeviceUsed) -> Iterator[str]:
    """A device that its image is not for, and a card's name on a processor."""
    image = record.environment.image
    kind = next((kind for kind in ("cuda", "rocm", "cpu") if kind in image), device.kind)
    if kind != device.kind:
        yield f"its device is of '{device.kind}', and its image '{image[:40]}' is for '{kind}'"
    if device.kind == "cpu" and _GPU.search(device.name):
        yield f"its processor is called {device.name[:80]!r}, as no processor is"


def _step_size(asked: TrialRequest, measured: Measurement) -> Iterator[str]:
    """A step's samples against its batch, length and devices; an epoch's steps against its items.

    A text's samples are its rows or its tokens; how many tokens a user's rows have, and how a user's file
    draws an epoch, is its own.
    """
    variant, samples = asked.variant, measured.samples_per_step
    devices = 1 if measured.parallel in (None, "each") else variant.gpus
    rows = variant.batch_size * devices * int(variant.options.get(VIRTUAL_RANKS, 1))
    token, length = measured.sample_unit == "token", variant.sequence_length
    known = not token or (length is not None and asked.file is None)
    wanted = rows * (length or 1) if token else rows
    if (samples not in (rows, wanted)) if known else samples % rows:
        yield f"its steps have {samples} samples, where its batches on all devices have {wanted}"
    items, steps = measured.data.train_items, measured.protocol.steps_per_epoch
    if items is None or asked.file is not None:
        return
    if abs(items / samples - steps) > max(1, ITEMS_APART * steps):
        yield f"an epoch has {steps} steps of {samples} samples, where its data have {items}"


def of_another_place(record: Record) -> Iterator[str]:
    """An environment, devices or telemetry that are not those of what was asked, measured, or at hand."""
    asked, environment, measured = record.trial.asked, record.environment, record.measurement
    if environment.lock_sha256 not in (None, asked.lock_sha256):
        yield f"its lock is {environment.lock_sha256[:12]!r}, where another was asked for"
    if environment.device != asked.device:
        yield f"its environment is for '{environment.device}', where '{asked.device}' was asked for"
    if measured is None:
        return
    if measured.device.count != asked.variant.gpus:
        yield f"it ran on {measured.device.count} devices, where {asked.variant.gpus} were asked for"
    if asked.variant.gpus % record.nodes:
        yield f"its {asked.variant.gpus} devices have no even place on its {record.nodes} nodes"
    if not _has(record.machine, measured.device):
        yield f"it ran on {measured.device.name[:80]!r}, which its machine does not have"
    window_seconds = measured.window.seconds
    sampled = sum(end - begin for begin, end in record.telemetry.windows) if record.telemetry else 0.0
    if sampled > (1 + CLOCKS_APART) * window_seconds + SAMPLED_SECONDS:
        yield f"its telemetry saw {sampled:.4g} s of a window of {window_seconds:.4g} s"


def _has(machine: Machine, device: DeviceUsed) -> bool:
    """Whether a machine has the processor or the card that was measured, as far as both are described.

    Of AMD's cards a driver and a framework give one chip two names, so the chip and the unit tell.
    """
    if device.kind == "cpu":
        return machine.cpu.model is None or device.name in (machine.cpu.model, "CPU")
    vendor = "NVIDIA" if device.kind == "cuda" else "AMD"
    cards = [gpu for gpu in machine.gpus if gpu.vendor == vendor]
    if vendor == "NVIDIA" and not any(device.name in gpu.name for gpu in cards):
        return False
    units = {gpu.unit for gpu in cards if gpu.unit}
    chips = {gpu.architecture for gpu in cards if gpu.architecture}
    known = device.unit is None or not units or device.unit in units
    chip = (device.capability or "").partition(":")[0]
    alike = vendor == "NVIDIA" or not chip or not chips or chip in chips
    return bool(cards) and known and alike


def _window(record: Record, measured: Measurement) -> Iterator[str]:
    """Steps, samples and seconds of the window, counted in every way that a record has."""
    window, series = measured.window, measured.step_us
    steps = series.count * series.steps_per_value
    if not window.steps - series.steps_per_value < steps <= window.steps:
        yield f"its window has {window.steps} steps, and its series has {steps}"
    if window.samples > window.steps * measured.samples_per_step:
        yield f"{window.samples} samples are more than {window.steps} steps of {measured.samples_per_step}"
    # A file of the user's may make its batches as it likes; of ours the last one of an epoch may be smaller.
    least_full = window.steps - max(len(measured.epochs), 1)
    if record.trial.asked.file is None and window.samples < least_full * measured.samples_per_step:
        yield f"{window.samples} samples are fewer than {window.steps} steps of {measured.samples_per_step}"
    slack = max(CLOCKS_APART * window.seconds, 0.01)
    if record.wall_seconds + slack < window.seconds:
        yield f"its window of {window.seconds:.4g} s stands in {record.wall_seconds:.4g} s"
    trained = sum(epoch.train_seconds for epoch in measured.epochs)
    all_trained = sum(epoch.steps for epoch in measured.epochs) == window.steps
    if all_trained and abs(trained - window.seconds) > slack:
        yield f"its epochs trained for {trained:.4g} s in a window of {window.seconds:.4g} s"


def among(results: Results) -> Iterator[str]:
    """What `across` finds in each session."""
    of_session: dict[str, list[Stored]] = {}
    for stored in results.records:
        of_session.setdefault(stored.record.session, []).append(stored)
    for session in results.sessions:
        yield from across(session, of_session.get(session.id, []))
    for copy, first in copies([stored.record for stored in results.records]):
        paths = [results.records[place].path for place in (copy, first)]
        yield f"{paths[0]}: its step times are those of {paths[1]}: it is one measurement, told twice"
    yield from _out_of_order(results.sessions)
    for ledger in results.ledgers:
        yield from _unlike_its_ledger(ledger, of_session.get(ledger.begin.session, []))


def copies(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """The place of each record whose step times are those of another of one request, and of that one."""
    first: dict[Hashable, int] = {}
    for place in sorted(range(len(records)), key=lambda at: records[at].started_at):
        request, measured = records[place].trial.id.rpartition("-")[2], records[place].measurement
        # So many steps are never equal to the microsecond by chance.
        if measured is None or len(set(measured.step_us.values())) < DIFFERENT:
            continue
        found = first.setdefault((request, measured.step_us), place)
        if found != place:
            yield place, found


def _unlike_its_ledger(ledger: Ledger, records: Sequence[Stored]) -> Iterator[str]:
    """Attempts that ended otherwise by the ledger than by their record, or began on another day."""
    for stored in records:
        record = stored.record
        began, ended = ledger.last.get((record.trial.id, record.attempt), (record.started_at, None))
        if abs(record.started_at - began) > A_DAY:
            here, there = (moment.date() for moment in (record.started_at, began))
            yield f"{stored.path}: it began on {here}, in its ledger on {there}"
        reason = record.failure.reason if record.failure else None
        if ended is not None and ended.reason != reason:
            yield f"{stored.path}: it {_ended(reason)}, and by its ledger it {_ended(ended.reason)}"


def _ended(reason: str | None) -> str:
    return f"failed ({reason})" if reason else "was measured"


def _out_of_order(sessions: Sequence[Session]) -> Iterator[str]:
    """A machine counts its sessions, so one is no older by its clock than the one before it by its number."""
    numbered = sorted(
        (session for session in sessions if session.number is not None),
        key=lambda session: (session.machine, in_order(session)),
    )
    for before, after in pairwise(numbered):
        if before.machine == after.machine and after.started_at < before.started_at - SET_BACK:
            yield f"session '{after.id}' of {after.label}: it is dated before '{before.id}', its last one"


def across(session: Session, records: Sequence[Stored]) -> Iterator[str]:
    """Each thing in a session's records that its plan, its clock or another of its records denies."""
    planned = {trial.id: trial for trial in session.trials}
    for stored in records:
        record = stored.record
        for what, found, wanted in (
            ("plan", record.plan, session.plan),
            ("trial", record.trial, planned.get(record.trial.id, record.trial)),
        ):
            if found != wanted:
                yield f"{stored.path}: its {what} is not its session's"
        if record.started_at < session.started_at - SET_BACK:
            yield f"{stored.path}: it started before its session"
    yield from _of_other_builds(records)
    yield from _one_after_the_other(records)
    yield from _measured_twice(records)


def _of_other_builds(records: Sequence[Stored]) -> Iterator[str]:
    """Records that tell another build of their machine than the session's first one of it."""
    machines = [stored.record.machine for stored in records]
    for stored, machine in zip(records, machines, strict=True):
        first = next(other for other in machines if other.id == machine.id)
        for name, here, there in (
            ("processor", machine.cpu.model, first.cpu.model),
            ("cores", machine.cpu.cores, first.cpu.cores),
            ("threads", machine.cpu.threads, first.cpu.threads),
            ("kernel", machine.kernel, first.kernel),
        ):
            if here != there:
                yield f"{stored.path}: its machine's {name} is {here}, in its session's first record {there}"
        here, there = machine.memory_bytes or 0, first.memory_bytes or 0
        if abs(here - there) > OWN_MEMORY * there:
            yield f"{stored.path}: its machine's memory is {here} B, in its session's first record {there} B"


def _one_after_the_other(records: Sequence[Stored]) -> Iterator[str]:
    """A session runs one trial at a time, and an hour lies between its blocks."""
    ordered = sorted(records, key=lambda stored: (stored.record.started_at, stored.path))
    for before, after in pairwise(ordered):
        # A clock that is set back between two trials makes them overlap, and hardly by half of one.
        half = before.record.started_at + timedelta(seconds=before.record.wall_seconds / 2)
        if after.record.started_at < half - SET_BACK:
            yield f"{after.path}: it started before '{before.record.trial.id}' had ended"
        pause = after.record.started_at - before.record.started_at
        if after.record.block > before.record.block and pause < PAUSE:
            yield f"{after.path}: it is of block {after.record.block}, and no hour lies before it"


def _measured_twice(records: Sequence[Stored]) -> Iterator[str]:
    """A trial that was measured is done: no attempt follows."""
    done: dict[str, int] = {}
    for stored in sorted(records, key=lambda stored: stored.record.attempt):
        record = stored.record
        if record.trial.id in done:
            yield f"{stored.path}: attempt {done[record.trial.id]} of it was measured already"
        if record.measurement is not None:
            done.setdefault(record.trial.id, record.attempt)
