"""Contests, stacks and failures → tables: every figure that a chart draws, in words."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from report import names, words
from report.contests import Contest, Line, apart, differences
from report.labels import standing
from report.names import unit_of
from report.speedups import Speedup
from report.stats import PROJECTION_TOLERANCE, Cell, Figure, cell_ratio
from report.view import Provenance, Table

MOST_LEFT_OVER = 60


def contest_table(contest: Contest, gains: Sequence[Speedup]) -> Table:
    """One row per line; a column stays away where no line has its figure."""
    lines = contest.lines
    columns: list[tuple[str, list[str]]] = [
        ("Line", [_name(line, contest) for line in lines]),
        ("Runs", [_runs(line.cell) for line in lines]),
        ("Total", [_total(line.cell) for line in lines]),
        ("Time-scaled", [_scaled(line) for line in lines]),
        ("Against 32-bit", [_gains(line, gains) for line in lines]),
        (_rate(contest), [_with_interval(line.cell.throughput, words.number) for line in lines]),
        ("Step", [words.milliseconds(line.cell.step_seconds.mean) for line in lines]),
        ("Peak memory", [_peak(line.cell) for line in lines]),
        (_quality_name(contest), [_quality(line.cell) for line in lines]),
        ("Loss", [_loss(line.cell) for line in lines]),
    ]
    kept = [(name, values) for name, values in columns if any(value != "–" for value in values)]
    names = tuple(name for name, _ in kept)
    rows = tuple(zip(*(values for _, values in kept), strict=True))
    caption = "Means of all valid runs, their 95 % intervals below them."
    if contest.comparisons > 1:
        caption += f" The time-scaled intervals hold together, over {contest.comparisons} comparisons."
    keys = tuple((unit_of(line.cell), line.cell.key.precision) for line in lines)
    return Table(caption, names, rows, keys)


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


def _total(cell: Cell) -> str:
    return f"{words.seconds(cell.seconds.mean)}\n{beneath_total(cell)}" if cell.seconds.n else "–"


def beneath_total(cell: Cell) -> str:
    """The interval of a total, and whether it was projected."""
    spread = words.between(cell.seconds.interval) if cell.seconds.interval else "one run"
    return f"projected, {spread}" if cell.length.projected else spread


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
    said = words.quality(cell.rows[0].quality_name, cell.quality.mean)
    where = cell.rows[0].validated
    return f"{said}\n{where}" if where and cell.quality.n else said


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


def left_over(cells: Sequence[Cell], contests: Sequence[Contest]) -> Table | None:
    """Records of other sessions that stand in no row here, with the field that keeps them out."""
    if not cells:
        return None
    rows = []
    for cell in cells[:MOST_LEFT_OVER]:
        reasons = [differences(contest, cell) for contest in contests]
        closest = min((found for found in reasons if found), key=len, default=())
        why = "; ".join(f"{name} {here} instead of {there}" for name, there, here in closest[:3])
        what = f"{cell.key.workload}, {cell.key.model}, {cell.key.precision}, batch {cell.key.batch_size}"
        where = f"{words.clean(cell.machine_label, 30)}, session {cell.session}"
        why = words.clean(why or "nothing: an older session of the same machine", 160)
        rows.append((words.clean(what, 80), where, str(len(cell.rows)), why))
    caption = "On record, but not compared: what keeps each away from the nearest chart of this page."
    if len(cells) > MOST_LEFT_OVER:
        caption += f" {len(cells) - MOST_LEFT_OVER:,} more are not listed."
    return Table(caption, ("What", "Where", "Trials", "Differs in"), tuple(rows))


def glossary() -> Table:
    """The precision labels in plain words."""
    rows = tuple((name, said) for name, said in words.PRECISION_WORDS.items())
    return Table("What the precision labels mean", ("Label", "Meaning"), rows)
