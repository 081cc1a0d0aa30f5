"""Contests, stacks and failures → tables: every figure that a chart draws, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.record import LeftOut
from report import names, words
from report.comparability import differing, without_precision
from report.contests import Contest, Line, Speedup, apart
from report.frame import Row
from report.labels import standing
from report.stats import PROJECTION_TOLERANCE, Cell, Figure, cell_ratio
from report.view import FailureView, Provenance, Table


def contest_table(contest: Contest, gains: Sequence[Speedup]) -> Table:
    """One row per line; a column stays away where no line has its figure."""
    lines = contest.lines
    columns: list[tuple[str, list[str]]] = [
        ("Line", [_name(line, contest) for line in lines]),
        ("Runs", [_runs(line.cell) for line in lines]),
        ("Total", [_with_interval(line.cell.seconds, words.seconds) for line in lines]),
        ("Time-scaled", [_scaled(line) for line in lines]),
        ("Against 32-bit", [_gains(line, gains) for line in lines]),
        (_rate(contest), [_with_interval(line.cell.throughput, words.number) for line in lines]),
        ("Step", [words.milliseconds(line.cell.step_seconds.mean) for line in lines]),
        ("Peak memory", [_peak(line.cell) for line in lines]),
        (_quality_name(contest), [_quality(line.cell) for line in lines]),
        ("Loss", [_loss(line.cell) for line in lines]),
        ("Waited for input", [words.percent(line.cell.input_share.mean) for line in lines]),
    ]
    kept = [(name, values) for name, values in columns if any(value != "–" for value in values)]
    names = tuple(name for name, _ in kept)
    rows = tuple(zip(*(values for _, values in kept), strict=True))
    caption = "Means of all valid runs, their 95 % intervals below them."
    if contest.comparisons > 1:
        caption += f" The time-scaled intervals hold together, over {contest.comparisons} comparisons."
    return Table(caption, names, rows)


def _name(line: Line, contest: Contest) -> str:
    said = f"batch {line.cell.key.batch_size}, {standing(line.cell)}"
    return f"{names.label(line.cell, contest)}\n{said}"


def _loss(cell: Cell) -> str:
    if cell.valid_loss.mean is not None:
        return f"{words.number(cell.valid_loss.mean)}\ntraining {words.number(cell.train_loss.mean)}"
    return "–" if cell.train_loss.mean is None else f"{words.number(cell.train_loss.mean)}\ntraining"


def _runs(cell: Cell) -> str:
    n = cell.seconds.n or cell.throughput.n
    bad = sum(row.verdict == "invalid" for row in cell.rows)
    return f"{n}\nand {bad} invalid" if bad else str(n)


def _with_interval(figure: Figure, write: Callable[[float | None], str]) -> str:
    if figure.mean is None:
        return "–"
    if figure.interval is None:
        return f"{write(figure.mean)}\none run"
    return f"{write(figure.mean)}\n{words.between(figure.interval)}"


def _scaled(line: Line) -> str:
    said = names.scaled(line)
    if line.scaled is None or line.scaled.interval is None:
        return said
    return f"{said}\n{words.between(line.scaled.interval, 'times')}"


def _gains(line: Line, gains: Sequence[Speedup]) -> str:
    own = [gain for gain in gains if gain.of is line.cell]
    return "\n".join(f"{names.gain(gain)} over {gain.over.key.precision}" for gain in own) or "–"


def _rate(contest: Contest) -> str:
    unit = contest.lines[0].cell.rows[0].sample_unit
    return f"{unit.capitalize()}s / s"


def _peak(cell: Cell) -> str:
    return words.gibibytes(max(cell.peak_bytes.values, default=None))


def _quality_name(contest: Contest) -> str:
    names = [row.quality_name for line in contest.lines for row in line.cell.rows if row.quality_name]
    return names[0].capitalize() if names else "Quality"


def _quality(cell: Cell) -> str:
    return words.quality(cell.rows[0].quality_name, cell.quality.mean)


def apart_table(contests: Sequence[Contest], headings: Sequence[str]) -> Table | None:
    """Why one workload has several charts: the fields in which they differ."""
    fields = apart(contests)
    if not fields:
        return None
    rows = tuple(
        (heading, *(words.clean(values[place], 40) for _, values in fields))
        for place, heading in enumerate(headings)
    )
    columns = ("Kept apart", *(name for name, _ in fields))
    return Table("Not drawn in one chart, because they differ in what matters.", columns, rows)


def projections(contest: Contest) -> tuple[str, ...]:
    """Projected ÷ whole where one machine has both; further off than 1 % judges no claim."""
    found = []
    for line in contest.lines:
        if line.cell.length.projected:
            for other in contest.lines:
                if _whole_of(other.cell, line.cell):
                    found.append(_projection(line.cell, other.cell))
    return tuple(said for said in found if said)


def _whole_of(whole: Cell, projected: Cell) -> bool:
    same = (whole.key, whole.session, whole.card, whole.stack) == (
        projected.key,
        projected.session,
        projected.card,
        projected.stack,
    )
    return same and not whole.length.projected


def _projection(projected: Cell, whole: Cell) -> str:
    found = cell_ratio(projected, whole, "seconds")
    if found is None:
        return ""
    off = abs(found.estimate - 1.0)
    tail = "more than 1 % off: the projection judges no claim" if off > PROJECTION_TOLERANCE else "within 1 %"
    return f"{projected.key.precision}: projected ÷ whole run = {found.estimate:.3f} ({tail})."


def provenance(contest: Contest) -> Provenance:
    """The records a contest stands on, and the lines that measure them again."""
    rows = [row for line in contest.lines for row in line.cell.rows]
    plans = dict.fromkeys(row.plan for line in contest.lines if line.own for row in line.cell.rows)
    others = dict.fromkeys(row.plan for row in rows)
    commands = tuple(f"invoke run --plan {words.clean(plan, 64)} --new-session" for plan in plans or others)
    said = f"{words.count(len(rows), 'record')} in {words.count(len(contest.lines), 'line')}"
    return Provenance(said, tuple(words.clean(row.path, 160) for row in rows), commands)


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
    """What ran on what: environments with their pins, and machines."""
    if not rows:
        return ()
    return (_environments(rows), _machines(rows))


def _environments(rows: Sequence[Row]) -> Table:
    found: dict[tuple[str, ...], int] = {}
    for row in rows:
        place = _environment_row(row)
        found[place] = found.get(place, 0) + 1
    columns = ("Environment", "Engine", "Pinned", "Base", "Lock", "Versions", "Variables passed", "Trials")
    return Table("Software", columns, tuple((*place, str(n)) for place, n in found.items()))


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
        words.clean(", ".join(f"{name} {value}" for name, value in row.stack.versions if value) or "–", 120),
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


def left_out(found: Sequence[LeftOut]) -> Table | None:
    """What a budget or a machine left out of the plan."""
    if not found:
        return None
    rows = tuple((words.clean(one.what, 80), str(one.trials), words.clean(one.reason, 120)) for one in found)
    return Table("Planned and left out", ("What", "Trials", "Why"), rows)


def left_over(cells: Sequence[Cell], contests: Sequence[Contest]) -> Table | None:
    """Records of other sessions that stand in no row here, with the field that keeps them out."""
    rows = []
    for cell in cells:
        mine = without_precision(cell.key)
        near = [(differing(c.base, mine) + differing(c.length, cell.length)) for c in contests]
        closest = min(near, key=len, default=())
        why = "; ".join(f"{name} {theirs} instead of {ours}" for name, ours, theirs in closest[:3])
        what = f"{cell.key.workload}, {cell.key.model}, {cell.key.precision}, batch {cell.key.batch_size}"
        where = f"{words.clean(cell.machine_label, 30)}, session {cell.session}"
        rows.append((words.clean(what, 80), where, str(len(cell.rows)), words.clean(why or "–", 160)))
    if not rows:
        return None
    caption = "On record, but not compared: what keeps each away from the nearest chart of this page."
    return Table(caption, ("What", "Where", "Trials", "Differs in"), tuple(rows[:60]))


def glossary() -> Table:
    """The precision labels in plain words."""
    rows = tuple((name, said) for name, said in words.PRECISION_WORDS.items())
    return Table("What the precision labels mean", ("Label", "Meaning"), rows)
