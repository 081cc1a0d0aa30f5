"""What ran on what, what failed, and what was left out."""

from __future__ import annotations

from collections.abc import Sequence

from harness.record import LeftOut, PrecisionFound, Probe
from report import words
from report.frame import Row
from report.view import FailureView, Table


def failures(rows: Sequence[Row]) -> tuple[FailureView, ...]:
    """Every trial without a measurement, with the end of its log."""
    return tuple(_failure(row) for row in rows if row.failure is not None)


def _failure(row: Row) -> FailureView:
    failure = row.failure
    assert failure is not None
    key = row.key
    what = f"{key.workload}, {key.model}, {key.precision}, batch {key.batch_size}, repeat {row.repeat}"
    fits = (
        "does not fit (out of memory)"
        if failure.reason == "out-of-memory"
        else failure.reason.replace("-", " ")
    )
    code = f", exit code {failure.exit_code}" if failure.exit_code is not None else ""
    return FailureView(
        what=words.clean(f"{what}, on {row.card}", 160),
        reason=f"{fits}, in stage {failure.stage}{code}",
        message=words.clean(failure.message, 300),
        tail=words.clean_lines(failure.log_tail),
        path=words.clean(row.path, 160),
    )


def stacks(rows: Sequence[Row]) -> tuple[Table, ...]:
    """What ran on what: environments with their pins, machines, and what each precision was found to be."""
    if not rows:
        return ()
    found = (_environments(rows), _machines(rows), _arithmetic(rows))
    return tuple(table for table in found if table.rows)


def _environments(rows: Sequence[Row]) -> Table:
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        found.setdefault(_environment_row(row), []).append(row)
    columns = ("Environment", "Engine", "Pinned", "Base", "Lock", "Variables passed", "Versions", "Trials")
    values = tuple((*place, _versions(used), str(len(used))) for place, used in found.items())
    return Table("Software", columns, values)


def _versions(rows: Sequence[Row]) -> str:
    """Every version that was found; of failed trials none is known."""
    found = dict.fromkeys(f"{name} {value}" for row in rows for name, value in row.stack.versions if value)
    return words.clean(", ".join(found) or "–", 200)


def _environment_row(row: Row) -> tuple[str, ...]:
    used = row.environment
    because = "; ".join(words.clean(reason, 120) for reason in used.unpinned_because)
    base = words.clean(used.base_digest or used.base or "–", 28)
    return (
        f"{used.image} ({used.device})",
        words.clean(f"{used.engine} {used.engine_version or ''}", 40).strip(),
        "yes" if used.pinned else f"no: {because or 'no reason given'}",
        f"{base} (substituted)" if used.base_substituted else base,
        (used.lock_sha256 or "–")[:12],
        words.clean(", ".join(f"{name}={value}" for name, value in row.stack.variables) or "–", 80),
    )


def _machines(rows: Sequence[Row]) -> Table:
    found: dict[tuple[str, ...], int] = {}
    for row in rows:
        place = (
            words.clean(row.machine_label, 40),
            words.clean(row.card, 60),
            words.clean(row.stack.driver or "–", 30),
            words.clean(row.unit or "unknown", 16),
            row.session,
        )
        found[place] = found.get(place, 0) + 1
    columns = ("Machine", "Device", "Driver", "Unit", "Session", "Trials")
    return Table("Machines and devices", columns, tuple((*place, str(n)) for place, n in found.items()))


def _arithmetic(rows: Sequence[Row]) -> Table:
    """Each precision as it was probed, the switches that the framework showed, and what overrides them."""
    found: dict[tuple[str, ...], list[PrecisionFound]] = {}
    for row in rows:
        measured = row.record.measurement
        if measured is not None:
            told = measured.precision
            place = (told.label, f"{row.environment.image} ({row.environment.device})", told.method)
            found.setdefault((*place, *_switches(told)), []).append(told)
    columns = ("Precision", "Environment", "Done by", "Switches", "Overrides set", "Largest error", "Trials")
    values = tuple(
        (*(words.clean(text, 400) for text in place), _probed(of), str(len(of)))
        for place, of in sorted(found.items())
    )
    return Table("Arithmetic: probed against float64, as a share of the mean magnitude", columns, values)


def _switches(found: PrecisionFound) -> tuple[str, str]:
    """The framework's flags, and the environment's variables that override them; those are in capitals."""
    told = {name: value for name, value in found.flags.items() if value is not None}
    said = [f"{name}={value}" for name, value in told.items() if not name.isupper()]
    overrides = [f"{name}={value}" for name, value in told.items() if name.isupper()]
    return ", ".join(said) or "not told", ", ".join(overrides) or ("none" if found.flags else "not told")


def _probed(found: Sequence[PrecisionFound]) -> str:
    """What each operation's largest error reads as."""
    most: dict[str, Probe] = {}
    for probe in (probe for one in found for probe in one.probes):
        if probe.operation not in most or not probe.error <= most[probe.operation].error:
            most[probe.operation] = probe
    said = [f"{name} {probe.error:.1e}: {words.clean(probe.reads_as, 20)}" for name, probe in most.items()]
    return "\n".join(said) or "not probed"


def left_out(found: Sequence[LeftOut]) -> Table | None:
    """What a budget or a machine left out of the plan."""
    if not found:
        return None
    rows = tuple((words.clean(one.what, 80), str(one.trials), words.clean(one.reason, 120)) for one in found)
    return Table("Planned and left out", ("What", "Trials", "Why"), rows)
