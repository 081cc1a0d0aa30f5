"""What ran on what: software, machines and the computers around the cards, and what failed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from harness.record import Machine, PrecisionFound, Probe, differing_fields
from harness.summary.device_checks import machine_remarks
from report.comparisons.account import Account
from report.sections.view import FailureView, Table
from report.text import PRECISION_WORDS, clean, gibibytes
from report.trials.pairs import grouped_by
from report.trials.trial import Trial

MOST_DIFFERENCES = 40

NAMES = {
    "cpu.model": "processor",
    "cpu.sockets": "processor sockets",
    "cpu.cores": "cores",
    "cpu.threads": "hardware threads",
    "cpu.usable": "CPUs that a process may use",
    "cpu.mhz_max": "highest clock of the processor, MHz",
    "cpu.governor": "CPU governor",
    "cpu.turbo": "turbo",
    "cpu.smt": "simultaneous threads",
    "cpu.features": "instructions",
    "cpu.numa_affinity": "NUMA nodes used",
    "memory_bytes": "host memory",
    "memory_limit_bytes": "limit on host memory",
    "shared_memory_bytes": "shared memory",
    "numa_nodes": "NUMA nodes",
    "numa_balancing": "NUMA balancing",
    "virtual": "virtual machine",
    "gpus": "number of devices",
    "links": "ways between the devices",
}
_TAILS = {
    "pcie_generation": "PCIe generation at rest",
    "pcie_width": "PCIe lanes at rest",
    "pcie_generation_max": "PCIe generation",
    "pcie_width_max": "PCIe lanes",
    "vbios": "VBIOS",
    "bar1_bytes": "BAR1",
    "remapped_rows": "rows of memory replaced",
    "power_limit_max_watts": "highest power limit, W",
    "ecc": "ECC",
    "mig": "MIG",
    "numa_node": "NUMA node",
}


def first_of(trials: Iterable[Trial]) -> dict[str, Machine]:
    """Each machine by its id, as its first record describes it."""
    machines: dict[str, Machine] = {}
    for trial in trials:
        machines.setdefault(trial.machine, trial.record.machine)
    return machines


def apart(machines: Sequence[Machine]) -> Table | None:
    """Every field in which these machines are not alike, a column for each; null where nothing differs."""
    if len(machines) < 2:
        return None
    differing: dict[str, list[Any]] = {}
    for place, other in enumerate(machines[1:], 1):
        for field, mine, theirs in differing_fields(machines[0], other):
            values = differing.setdefault(field, [mine] * len(machines))
            values[place] = theirs
    if not differing:
        return None
    told = [(name_of(field), *(shown(field, each) for each in values)) for field, values in differing.items()]
    # Bytes that differ by a page or two read alike, and make no machine faster.
    unlike = [row for row in told if len(set(row[1:])) > 1]
    if not unlike:
        return None
    rows = tuple(unlike[:MOST_DIFFERENCES])
    caption = "What differs between the machines: any of it may be what makes one faster."
    if len(unlike) > MOST_DIFFERENCES:
        caption += f" {len(unlike) - MOST_DIFFERENCES} more fields are not listed."
    labels = tuple(clean(machine.label, 40) for machine in machines)
    return Table(caption, ("Differs in", *labels), rows)


def name_of(field: str) -> str:
    """A field of the fingerprint as the page calls it."""
    if field.startswith("gpu "):
        _, place, name = field.split(" ", 2)
        return f"device {place}: {_TAILS.get(name, name.replace('_', ' '))}"
    return NAMES.get(field, field.replace("cpu.", "processor ").replace("_", " "))


def shown(field: str, value: Any) -> str:
    """A field's value in its unit; unknown where it is not known."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if field.endswith("_bytes") and isinstance(value, int):
        return gibibytes(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, tuple):
        return clean(" ".join(map(str, value)) or "none", 60)
    return clean(value, 60)


def failures(trials: Sequence[Trial]) -> tuple[FailureView, ...]:
    """Every trial without a measurement."""
    return tuple(_failure(trial) for trial in trials if trial.failure is not None)


def _failure(trial: Trial) -> FailureView:
    failure = trial.failure
    assert failure is not None
    key = trial.key
    what = f"{key.workload}, {key.model}, {key.precision}, batch {key.batch_size}, repeat {trial.repeat}"
    fits = (
        "does not fit (out of memory)"
        if failure.reason == "out-of-memory"
        else failure.reason.replace("-", " ")
    )
    code = f", exit code {failure.exit_code}" if failure.exit_code is not None else ""
    return FailureView(
        what=clean(f"{what}, on {trial.card}", 160),
        reason=f"{fits}, in stage {failure.stage}{code}",
        message=clean(failure.message, 300),
        path=clean(trial.path, 160),
    )


def stacks(trials: Sequence[Trial]) -> tuple[Table, ...]:
    """What ran on what: environments with their pins, machines, and what each precision was found to be."""
    if not trials:
        return ()
    drawn = (_environments(trials), _machines(trials), _ways(trials), _arithmetic(trials))
    return tuple(table for table in drawn if table.rows)


def _environments(trials: Sequence[Trial]) -> Table:
    environments = grouped_by(trials, _environment_row)
    columns = ("Environment", "Engine", "Pinned", "Base", "Lock", "Variables passed", "Versions", "Trials")
    values = tuple((*place, _versions(used), str(len(used))) for place, used in environments.items())
    return Table("Software", columns, values)


def _versions(trials: Sequence[Trial]) -> str:
    """Every version that was found; of failed trials none is known."""
    versions = dict.fromkeys(
        f"{name} {value}" for trial in trials for name, value in trial.stack.versions if value
    )
    return clean(", ".join(versions) or "–", 200)


def _environment_row(trial: Trial) -> tuple[str, ...]:
    used = trial.environment
    because = "; ".join(clean(reason, 120) for reason in used.unpinned_because)
    base = clean(used.base_digest or used.base or "–", 28)
    return (
        f"{used.image} ({used.device})",
        clean(f"{used.engine} {used.engine_version or ''}", 40).strip()
        + (", writable root" if used.writable_root else ""),
        "yes" if used.pinned else f"no: {because or 'no reason given'}",
        f"{base} (substituted)" if used.base_substituted else base,
        (used.lock_sha256 or "–")[:12],
        clean(", ".join(f"{name}={value}" for name, value in trial.stack.variables) or "–", 80),
    )


def _machines(trials: Sequence[Trial]) -> Table:
    counted = Counter(
        (
            clean(trial.machine_label, 40),
            clean(trial.card, 60),
            clean(trial.stack.driver or "–", 30),
            clean(trial.device_unit or "unknown", 16),
            trial.session,
        )
        for trial in trials
    )
    columns = ("Machine", "Device", "Driver", "Unit", "Session", "Trials")
    return Table("Machines and devices", columns, tuple((*place, str(n)) for place, n in counted.items()))


def _ways(trials: Sequence[Trial]) -> Table:
    """What lies between the cards of each machine that has several, equal ways together."""
    pairs: dict[tuple[str, str], list[str]] = {}
    for machine in first_of(trials).values():
        for link in machine.links:
            place = (clean(machine.label, 40), f"{link.vendor}, {link.words}")
            pairs.setdefault(place, []).append(f"{link.first}–{link.second}")
    rows = tuple((*place, clean(", ".join(ends), 200)) for place, ends in pairs.items())
    return Table("Ways between the cards", ("Machine", "Way", "Cards"), rows)


def _arithmetic(trials: Sequence[Trial]) -> Table:
    """Each precision as it was probed, the switches that the framework showed, and what overrides them."""
    probed: dict[tuple[str, ...], list[PrecisionFound]] = {}
    for trial in trials:
        measured = trial.record.measurement
        if measured is not None:
            arithmetic = measured.precision
            place = (
                arithmetic.label,
                f"{trial.environment.image} ({trial.environment.device})",
                arithmetic.method,
            )
            probed.setdefault((*place, *_switches(arithmetic)), []).append(arithmetic)
    columns = ("Precision", "Environment", "Done by", "Switches", "Overrides set", "Largest error", "Trials")
    values = tuple(
        (*(clean(text, 400) for text in place), _probed(of), str(len(of)))
        for place, of in sorted(probed.items())
    )
    return Table("Arithmetic: probed against float64, as a share of the mean magnitude", columns, values)


def _switches(arithmetic: PrecisionFound) -> tuple[str, str]:
    """The framework's flags, and the environment's variables that override them; those are in capitals."""
    flags = {name: value for name, value in arithmetic.flags.items() if value is not None}
    switches = [f"{name}={value}" for name, value in flags.items() if not name.isupper()]
    overrides = [f"{name}={value}" for name, value in flags.items() if name.isupper()]
    return ", ".join(switches) or "not told", ", ".join(overrides) or (
        "none" if arithmetic.flags else "not told"
    )


def _probed(precisions: Sequence[PrecisionFound]) -> str:
    """What each operation's largest error reads as."""
    most: dict[str, Probe] = {}
    for probe in (probe for precision in precisions for probe in precision.probes):
        if probe.operation not in most or not probe.error <= most[probe.operation].error:
            most[probe.operation] = probe
    words = [f"{name} {probe.error:.1e}: {clean(probe.reads_as, 20)}" for name, probe in most.items()]
    return "\n".join(words) or "not probed"


def accounts(of_machines: Sequence[Account]) -> Table | None:
    """Of each machine how much of what it started is shown, and what became of the rest."""
    if not of_machines:
        return None
    rows = tuple(
        (
            clean(account.label, 40),
            f"{account.sessions_shown:,} of {account.sessions:,}",
            f"{account.shown:,} of {account.started:,}",
            "\n".join(account.not_shown) or "–",
            account.ledger,
        )
        for account in of_machines[:MOST_MACHINES]
    )
    caption = "What was started, and what of it is shown: each attempt counts, stopped and failed ones too."
    columns = ("Machine", "Sessions shown", "Trials shown", "Not shown", "Ledger")
    return Table(caption, columns, rows)


MOST_MACHINES = 6


def remarks(trials: Sequence[Trial]) -> Table | None:
    """What belongs to a machine and not to a trial, said once for each."""
    rows = []
    for machine in first_of(trials).values():
        remarks_here = [*machine_remarks(machine)]
        if remarks_here:
            lines = "\n".join(clean(remark.replace("-", " ", 1), 160) for remark in remarks_here)
            rows.append((clean(machine.label, 40), lines))
    if not rows:
        return None
    return Table("What is to be known of each machine.", ("Machine", "Remarks"), tuple(rows[:40]))


def glossary() -> Table:
    """The precision labels in plain words."""
    rows = tuple((name, meaning) for name, meaning in PRECISION_WORDS.items())
    return Table("What the precision labels mean", ("Label", "Meaning"), rows)
