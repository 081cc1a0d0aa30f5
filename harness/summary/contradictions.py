"""What a record says against itself, and records against each other: no run of ours writes it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from datetime import timedelta
from itertools import compress, pairwise

from harness.data.datasets import DATASETS
from harness.device_kinds import DEVICE_KINDS
from harness.engines import ENGINES
from harness.record import DeviceUsed, Machine, Measurement, Record, Session, TrialRequest
from harness.record.machine import differing_fields
from harness.record.store import Results, Stored

CLOCKS_APART = 0.02
"""Two clocks, and the first step of a segment, may differ by so much of a window."""

ENERGY_APART = 0.2
"""By so much the mean of the power that was sampled may give another energy than a counter."""

DIFFERENT = 10
"""Step times that differ: fewer may be the ticks of a coarse clock."""

PAUSE = timedelta(seconds=60)
"""A machine gets other cores, memory or another kernel by a restart, which takes as long."""
FIXED = frozenset(
    (
        *("system", "kernel", "distribution", "libc", "architecture", "virtual", "memory_bytes"),
        *("numa_nodes", "cpu.model", "cpu.sockets", "cpu.cores", "cpu.threads", "cpu.features"),
    )
)
"""What no machine changes while it runs."""
MEMORY_APART = 0.05
"""What a host takes back from a virtual machine while it runs."""


def unasked_terms(asked: TrialRequest, measured: Measurement) -> Iterator[str]:
    """Yield each of a measurement's terms that is not the one that was asked for."""
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


def record_contradictions(record: Record) -> Iterator[str]:
    """Yield each thing in a record that another part of it denies."""
    asked, measured = record.trial.asked, record.measurement
    if measured is None:
        return
    yield from unasked_terms(asked, measured)
    image, device = record.environment.image, measured.device
    kind = next((kind for kind in DEVICE_KINDS if kind in image), device.kind)
    if kind != device.kind:
        yield f"its device is of '{device.kind}', and its image '{image[:40]}' is for '{kind}'"
    yield from _window_contradictions(record, measured)


def place_contradictions(record: Record) -> Iterator[str]:
    """Yield an environment or devices that differ from the trial's request, or from the machine."""
    asked, environment, measured = record.trial.asked, record.environment, record.measurement
    if environment.lock_sha256 not in (None, asked.lock_sha256):
        yield f"its lock is {environment.lock_sha256[:12]!r}, where another was asked for"
    if environment.device != asked.device:
        yield f"its environment is for '{environment.device}', where '{asked.device}' was asked for"
    if measured is None:
        return
    if measured.device.count != asked.variant.gpus:
        yield f"it ran on {measured.device.count} devices, where {asked.variant.gpus} were asked for"
    if not _has_device(record.machine, measured.device):
        yield f"it ran on {measured.device.name[:80]!r}, which its machine does not have"


def _has_device(machine: Machine, device: DeviceUsed) -> bool:
    """Return whether a machine has the processor or the card that was measured, as far as both are described.

    A driver and a framework give an AMD card two names, so the chip and the unit are compared.
    """
    if device.kind == "cpu":
        return machine.cpu.model is None or device.name in (machine.cpu.model, "CPU")
    vendor = DEVICE_KINDS[device.kind].vendor
    cards = [gpu for gpu in machine.gpus if gpu.vendor == vendor]
    if vendor == "NVIDIA" and not any(device.name in gpu.name for gpu in cards):
        return False
    units = {gpu.unit for gpu in cards if gpu.unit}
    chips = {gpu.architecture for gpu in cards if gpu.architecture}
    known = device.unit is None or not units or device.unit in units
    chip = (device.capability or "").partition(":")[0]
    alike = vendor == "NVIDIA" or not chip or not chips or chip in chips
    return bool(cards) and known and alike


def _window_contradictions(record: Record, measured: Measurement) -> Iterator[str]:
    """Yield steps, sample and seconds of the window that deny each other, counted in every way."""
    window, series = measured.window, measured.step_us
    steps = series.count * series.steps_per_value
    if not window.steps - series.steps_per_value < steps <= window.steps:
        yield f"its window has {window.steps} steps, and its series has {steps}"
    if window.samples > window.steps * measured.samples_per_step:
        yield f"{window.samples} samples are more than {window.steps} steps of {measured.samples_per_step}"
    # Of ours the last one of an epoch may be smaller.
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


def shares_steps(one: Record, other: Record) -> bool:
    """Return whether half of the step times of two trials are equal at their places, as never by chance."""
    if one.measurement is None or other.measurement is None:
        return False
    pairs = [*zip(one.measurement.step_us.values(), other.measurement.step_us.values(), strict=False)]
    equal = {place: left for place, (left, right) in enumerate(pairs) if left == right}
    return 2 * len(equal) >= len(pairs) and len(set(equal.values())) >= DIFFERENT


def energy_contradictions(record: Record) -> Iterator[str]:
    """Yield an energy that is not what its own power, its method or its samples give."""
    telemetry, measured = record.telemetry, record.measurement
    joules = telemetry.energy.joules if telemetry else None
    if telemetry is None or measured is None or joules is None:
        return
    share, times, windows = telemetry.energy, telemetry.times.values(), telemetry.windows
    samples = measured.window.samples
    source = share.counter_joules if share.method == "counter" else share.sampled_joules
    whole = None if share.joules_per_sample is None else share.joules_per_sample * samples
    for what, other in (("its method", source), ("its samples", whole)):
        if other is not None and not math.isclose(other, joules, rel_tol=1e-6):
            yield f"its energy is {joules:.4g} J, and {what} give {other:.4g} J"
    within = [any(begin <= (time or 0) <= end for begin, end in windows) for time in times]
    traces = [card.power_watts.mean.values() for card in telemetry.cards if card.power_watts]
    watts = [value for trace in traces for value in compress(trace, within) if value is not None]
    seconds = sum(end - begin for begin, end in windows)
    if watts:
        drawn = sum(watts) / len(watts) * seconds * len(traces)
        if abs(drawn / joules - 1) > ENERGY_APART:
            yield f"its energy is {joules:.4g} J, and its power gives {drawn:.4g} J"


def data_contradictions(record: Record) -> Iterator[str]:
    """Yield data that is called as one of ours, and is another or more of it."""
    data = record.measurement.data if record.measurement else None
    ours = DATASETS.get(data.name) if data and data.source == "real" else None
    if data is None or ours is None:
        return
    if data.sha256 not in (None, ours.sha256):
        yield f"its data's hash is {data.sha256[:12]!r}, and that of '{ours.name}' {ours.sha256[:12]!r}"
    items = sum(filter(None, (data.train_items, data.valid_items, data.test_items)))
    if ours.items is not None and items > ours.items:
        yield f"it has {items:,} items of '{ours.name}', which has {ours.items:,}"


def find_copies(records: Sequence[Record]) -> Iterator[tuple[int, int]]:
    """Yield the place of each copy and of its original: records of one request with the same step times."""
    first: dict[Hashable, int] = {}
    for place in sorted(range(len(records)), key=lambda at: records[at].started_at):
        request, measured = records[place].trial.id.rpartition("-")[2], records[place].measurement
        original = first.setdefault((request, measured.step_us), place) if measured else place
        # Ten steps are never equal to the microsecond by chance.
        if measured and original != place and len(set(measured.step_us.values())) >= DIFFERENT:
            yield place, original


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
        paused = after.record.started_at - before.record.ended_at >= PAUSE
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
        if stored.record.started_at - last.record.ended_at >= PAUSE:
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
