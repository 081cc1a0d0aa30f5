"""How each line ran: its trials' verdicts, its energy, its loss scale, whether it converges, its doubts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from report import names, split, words
from report.contests import Contest, Line
from report.frame import Row
from report.parity import SPEED_ONLY, Gate, Parity, scale_words
from report.stats import Cell, olympic_mean
from report.view import Table

Gates = Sequence[tuple[Row, Gate]]


def table(contest: Contest, parities: Sequence[Parity], gates: Gates) -> Table:
    """One row per line; a column stays away where no line has anything to say in it."""
    lines = contest.lines
    columns: list[tuple[str, list[str]]] = [
        ("Line", [_name(line, contest) for line in lines]),
        ("Trials", [verdicts(line.cell.rows) for line in lines]),
        ("Where the time goes", [_time(line.cell) for line in lines]),
        ("Energy", [energy(line.cell) for line in lines]),
        ("Convergence", [convergence(line.cell, parities, gates) for line in lines]),
        ("Loss scale", [_scale(line.cell) for line in lines]),
        ("The interval", [interval_words(line) for line in lines]),
    ]
    kept = [(name, values) for name, values in columns if any(value != "–" for value in values)]
    rows = tuple(zip(*(values for _, values in kept), strict=True))
    keys = tuple((names.unit_of(line.cell), line.cell.key.precision) for line in lines)
    return Table("How each line ran.", tuple(name for name, _ in kept), rows, keys)


def _name(line: Line, contest: Contest) -> str:
    return f"{names.label(line.cell, contest)}\nbatch {line.cell.key.batch_size}"


def _time(cell: Cell) -> str:
    bound = next((row.bound for row in cell.rows if row.bound), "")
    said = split.said(split.split(cell))
    return f"{said}\n{bound}" if bound else said


def verdicts(rows: Sequence[Row]) -> str:
    """'3 valid, 1 warn' and beneath it what speaks against them, each cause once."""
    counted = Counter(row.verdict for row in rows)
    said = ", ".join(
        f"{counted[word]} {word}" for word in ("valid", "warn", "unproven", "invalid") if counted[word]
    )
    causes = dict.fromkeys(cause.partition(":")[0].replace("-", " ") for row in rows for cause in row.causes)
    return f"{said}\n{words.clean(', '.join(causes), 160)}" if causes else said


def energy(cell: Cell) -> str:
    """Joules per sample with method, window and systematic band; else that it is unknown, and why."""
    told = [row.record.telemetry.energy for row in cell.rows if row.record.telemetry]
    known = [one for one in told if one.joules_per_sample is not None]
    if not known or cell.joules.mean is None:
        reasons = dict.fromkeys(one.unknown_because or "not told" for one in told)
        return f"unknown\n{words.clean('; '.join(reasons) or 'nothing was watched', 140)}"
    unit = cell.rows[0].sample_unit
    said = f"{words.number(cell.joules.mean)} J / {unit}"
    first = known[0]
    said += f"\n{words.between(cell.joules.interval)}" if cell.joules.interval else "\none run"
    said += f"\n{first.method}, {first.scope}, {first.window_seconds or 0:.0f} s"
    said += f", ±{first.band:.0%} systematic" if first.band else ""
    warnings = dict.fromkeys(one.warning for one in known if one.warning)
    return said + "".join(f"\n{words.clean(warning, 100)}" for warning in warnings)


def convergence(cell: Cell, parities: Sequence[Parity], gates: Gates) -> str:
    """Whether a mixed precision learns as fp32-ieee does, or that it was not checked."""
    found = next((one for one in parities if one.of is cell), None)
    if found is None:
        return "–"
    early = [gate for row, gate in gates if any(row is own for own in cell.rows)]
    known = [gate for gate in early if gate.word != "unknown"]
    first = ""
    if known:
        follows = sum(gate.word == "follows" for gate in known)
        first = f"\nthe first steps follow fp32's in {follows} of {len(known)} trials"
        departed = next((gate.because for gate in known if gate.word == "departs"), "")
        first += f": {words.clean(departed, 180)}" if departed else ""
    head, _, because = found.said.partition(": ")
    return f"{head}\n{words.clean(because, 140)}{first}" if because else f"{head}{first}"


def unchecked(parities: Sequence[Parity]) -> bool:
    """Whether any mixed precision's speed stands without a verdict on what it learns."""
    return any(one.said.startswith(SPEED_ONLY) for one in parities)


def _scale(cell: Cell) -> str:
    said = dict.fromkeys(scale_words(row) for row in cell.rows if row.loss_scale)
    skipped = [row.loss_scale.skipped_steps for row in cell.rows if row.loss_scale]
    if not said:
        return "–"
    least = "" if min(skipped) == max(skipped) else f"{min(skipped):,} to "
    found = f"{least}{words.count(max(skipped), 'step')} skipped\n{words.clean(next(iter(said)), 140)}"
    waits = any(row.loss_scale.kind == "dynamic" for row in cell.rows if row.loss_scale)
    return found + ("\nthe host looks for overflow at every step, and that wait is timed" if waits else "")


def interval_words(line: Line) -> str:
    """How the line's interval was made, over how many comparisons, and what makes it doubtful."""
    figure = line.cell.seconds if line.cell.seconds.n else line.cell.throughput
    interval = (
        line.scaled.interval
        if line.scaled and line.scaled.interval and not line.reference
        else figure.interval
    )
    if interval is None:
        return f"none\n{words.count(figure.n, 'run')}"
    said = [f"{interval.method}, n = {' + '.join(map(str, interval.n))}"]
    if interval.comparisons > 1:
        said.append(f"{interval.level:.0%} over {interval.comparisons} comparisons together")
    said += [words.clean(note, 120) for note in interval.notes]
    olympic = olympic_mean(figure.values)
    if olympic is not None:
        write = words.seconds if line.cell.seconds.n else words.number
        said.append(f"olympic mean {write(olympic)}")
    return "\n".join(said)
