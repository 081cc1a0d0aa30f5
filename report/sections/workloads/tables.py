"""The tables of a group: its figures, how each line ran, and what they stand on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.record.finding import label
from report import text
from report.comparisons import time_breakdown
from report.comparisons.cells import (
    PROJECTION_TOLERANCE,
    Cell,
    cell_ratio,
    olympic_mean,
    standing,
    unit_of,
)
from report.comparisons.groups import ComparisonGroup, Entry, apart
from report.comparisons.parity import SPEED_ONLY, Gate, Parity, scale_words
from report.comparisons.speedups import Speedup, profile_gains
from report.sections import names as names_module
from report.sections.view import Provenance, Table, tabled
from report.trials.pairs import matched, same_but
from report.trials.trial import Trial


def profile_table(cells: Sequence[Cell]) -> Table | None:
    """A row for each work that was measured in both profiles."""
    pairs = profile_gains(cells)
    if not pairs:
        return None
    unit = pairs[0].tuned.trials[0].sample_unit
    rows = tuple(
        (
            f"{text.model_name(pair.default.key.model)}{names_module.setting(pair.default.key)}\n{unit_of(pair.tuned)}",
            f"{pair.default.key.precision}\nbatch {pair.default.key.batch_size}",
            text.number(pair.default.throughput.mean),
            text.number(pair.tuned.throughput.mean),
            names_module.gain(pair),
        )
        for pair in pairs
    )
    caption = (
        "What the profile 'tuned' gains over 'default' (channels_last, tuned convolutions, a fused optimiser "
        "and compilation, as far as the workload has them). No chart holds both."
    )
    caption += names_module.together(pair.ratio for pair in pairs)
    rates = tuple(f"{unit.capitalize()}s / s, {name}" for name in ("default", "tuned"))
    return Table(caption, ("Model", "Precision", *rates, "Tuned over default"), rows)


Gates = Sequence[tuple[Trial, Gate]]


def run_quality_table(group: ComparisonGroup, parities: Sequence[Parity], gates: Gates) -> Table:
    """One row per line; a column stays away where no line has anything to say in it."""
    rows = [
        {
            "Line": f"{names_module.label(entry.cell, group)}\nbatch {entry.cell.key.batch_size}",
            "Trials": verdicts(entry.cell.trials),
            "Where the time goes": _time(entry.cell),
            "Energy": energy(entry.cell),
            "Convergence": convergence(entry.cell, parities, gates),
            "Loss scale": _scale(entry.cell),
            "The interval": interval_words(entry),
        }
        for entry in group.entries
    ]
    return _where_known("How each line ran.", rows, group)


def _where_known(
    caption: str, rows: Sequence[dict[str, str]], group: ComparisonGroup, failed: Sequence[Trial] = ()
) -> Table:
    kept = [name for name in rows[0] if any(row[name] != "–" for row in rows)]
    keys = [(unit_of(entry.cell), entry.cell.key.precision) for entry in group.entries]
    keys += [(text.unit_name(trial.card, trial.machine_label), trial.key.precision) for trial in failed]
    return tabled(caption, [{name: row[name] for name in kept} for row in rows], keys)


def _time(cell: Cell) -> str:
    bound = next((trial.bottleneck for trial in cell.trials if trial.bottleneck), "")
    words = time_breakdown.in_words(time_breakdown.time_breakdown(cell))
    return f"{words}\n{bound}" if bound else words


def verdicts(trials: Sequence[Trial]) -> str:
    """'3 valid, 1 warn' and beneath it what speaks against them, each cause once."""
    counted = Counter(trial.verdict for trial in trials)
    words = ", ".join(
        f"{counted[word]} {word}" for word in ("valid", "warn", "unproven", "invalid") if counted[word]
    )
    causes = dict.fromkeys(label(cause) for trial in trials for cause in trial.causes)
    return f"{words}\n{text.clean(', '.join(causes), 160)}" if causes else words


def energy(cell: Cell) -> str:
    """Joules per sample with method, window and systematic band; else that it is unknown, and why."""
    energies = [trial.record.telemetry.energy for trial in cell.trials if trial.record.telemetry]
    measured = [energy for energy in energies if energy.joules_per_sample is not None]
    if not measured or cell.joules.mean is None:
        reasons = dict.fromkeys(energy.unknown_because or "not told" for energy in energies)
        return f"unknown\n{text.clean('; '.join(reasons) or 'nothing was watched', 140)}"
    unit = cell.trials[0].sample_unit
    words = f"{text.number(cell.joules.mean)} J / {unit}"
    first = measured[0]
    words += f"\n{text.between(cell.joules.interval)}" if cell.joules.interval else "\none run"
    words += f"\n{first.method}, {first.scope}, {first.window_seconds or 0:.0f} s"
    words += f", ±{first.band:.0%} systematic" if first.band else ""
    warnings = dict.fromkeys(energy.warning for energy in measured if energy.warning)
    return words + "".join(f"\n{text.clean(warning, 100)}" for warning in warnings)


def convergence(cell: Cell, parities: Sequence[Parity], gates: Gates) -> str:
    """Whether a mixed precision learns as fp32-ieee does, or that it was not checked."""
    parity = next((parity for parity in parities if parity.of is cell), None)
    if parity is None:
        return "–"
    paths = {trial.path for trial in cell.trials}
    early = [gate for trial, gate in gates if trial.path in paths]
    judged = [gate for gate in early if gate.word != "unknown"]
    first = ""
    if judged:
        follows = sum(gate.word == "follows" for gate in judged)
        first = f"\nthe first steps follow fp32's in {follows} of {len(judged)} trials"
        departed = next((gate.because for gate in judged if gate.word == "departs"), "")
        first += f": {text.clean(departed, 180)}" if departed else ""
    head, _, because = parity.sentence.partition(": ")
    return f"{head}\n{text.clean(because, 140)}{first}" if because else f"{head}{first}"


def unchecked(parities: Sequence[Parity]) -> bool:
    """Whether any mixed precision's speed stands without a verdict on what it learns."""
    return any(parity.sentence.startswith(SPEED_ONLY) for parity in parities)


def _scale(cell: Cell) -> str:
    scales = dict.fromkeys(scale_words(trial) for trial in cell.trials if trial.loss_scale)
    skipped = [trial.loss_scale.skipped_steps for trial in cell.trials if trial.loss_scale]
    if not scales:
        return "–"
    least = "" if min(skipped) == max(skipped) else f"{min(skipped):,} to "
    words = f"{least}{text.count(max(skipped), 'step')} skipped\n{text.clean(next(iter(scales)), 140)}"
    waits = any(trial.loss_scale.kind == "dynamic" for trial in cell.trials if trial.loss_scale)
    return words + ("\nthe host looks for overflow at every step, and that wait is timed" if waits else "")


def interval_words(line: Entry) -> str:
    """How the line's interval was made, over how many comparisons, and what makes it doubtful."""
    figure = line.cell.seconds if line.cell.seconds.n else line.cell.throughput
    interval = (
        line.scaled.interval
        if line.scaled and line.scaled.interval and not line.reference
        else figure.interval
    )
    if interval is None:
        return f"none\n{text.count(figure.n, 'run')}"
    words = [f"{interval.method}, n = {' + '.join(map(str, interval.n))}"]
    if interval.comparisons > 1:
        words.append(f"{interval.level:.0%} over {interval.comparisons} comparisons together")
    words += [text.clean(note, 120) for note in interval.notes]
    olympic = olympic_mean(figure.values)
    if olympic is not None:
        write = text.seconds if line.cell.seconds.n else text.number
        words.append(f"olympic mean {write(olympic)}")
    return "\n".join(words)


def group_table(
    group: ComparisonGroup, gains: Sequence[Speedup], *, published_is_faster: bool = False
) -> Table:
    """One row per line and per failure; a column stays away where no line has its figure."""
    unit = group.entries[0].cell.trials[0].sample_unit.capitalize()
    rows = [
        {
            "Line": _name(entry, group),
            "Runs": _runs(entry.cell),
            "Total": total(entry.cell),
            "Time-scaled": _scaled(entry),
            "Against 32-bit": _gains(entry, gains),
            f"{unit}s / s": "–" if entry.cell.throughput.mean is None else names_module.rate(entry.cell),
            "Step": text.milliseconds(entry.cell.step_seconds.mean),
            "Peak memory": text.gibibytes(max(entry.cell.peak_bytes.values, default=None)),
            _quality_name(group): _quality(entry.cell),
            "Loss": _loss(entry.cell),
        }
        for entry in group.entries
    ]
    caption = "Means of all valid runs, their 95 % intervals below them."
    if published_is_faster:
        caption += " Time-scaled is over the fastest line here; in the chart it is over a published figure."
    scaled = [entry.scaled for entry in group.entries if entry.scaled]
    own = [gain.ratio for gain in gains if any(gain.of is entry.cell for entry in group.entries)]
    caption += names_module.together(scaled, "The time-scaled intervals")
    caption += names_module.together(own, "Those against 32-bit")
    rows += [_failed(trial, group, rows[0]) for trial in group.failed]
    return _where_known(caption, rows, group, group.failed)


def _failed(trial: Trial, group: ComparisonGroup, columns: Iterable[str]) -> dict[str, str]:
    assert trial.failure is not None
    name = names_module.line_name(trial.card, trial.machine_label, trial.key.precision, group)
    row = dict.fromkeys(columns, "–")
    row["Line"] = f"{name}\nbatch {trial.key.batch_size}, repeat {trial.repeat}"
    row["Total"] = text.failure_words(trial.failure.reason)
    return row


def _name(line: Entry, group: ComparisonGroup) -> str:
    words = f"batch {line.cell.key.batch_size}, {standing(line.cell)}"
    return f"{names_module.label(line.cell, group)}\n{words}"


def _loss(cell: Cell) -> str:
    if cell.valid_loss.mean is not None:
        return f"{text.number(cell.valid_loss.mean)}\ntraining {text.number(cell.train_loss.mean)}"
    return "–" if cell.train_loss.mean is None else f"{text.number(cell.train_loss.mean)}\ntraining"


def _runs(cell: Cell) -> str:
    n = cell.seconds.n or cell.throughput.n
    bad = sum(trial.verdict == "invalid" for trial in cell.trials)
    return f"{n}\nand {bad} invalid" if bad else str(n)


def total(cell: Cell) -> str:
    """Seconds for the whole protocol, and beneath them their interval and whether they were projected."""
    if not cell.seconds.n:
        return "–"
    spread = text.between(cell.seconds.interval) if cell.seconds.interval else "one run"
    return f"{text.seconds(cell.seconds.mean)}\n{'projected, ' if cell.length.projected else ''}{spread}"


def _scaled(line: Entry) -> str:
    words = names_module.scaled(line)
    if line.scaled is None or line.scaled.interval is None:
        return words
    return f"{words}\n{text.between(line.scaled.interval, 'times')}"


def _gains(line: Entry, gains: Sequence[Speedup]) -> str:
    own = [gain for gain in gains if gain.of is line.cell]
    return "\n".join(f"{names_module.gain(gain)} over {gain.over.key.precision}" for gain in own) or "–"


def _quality_name(group: ComparisonGroup) -> str:
    names = [
        trial.quality_name for entry in group.entries for trial in entry.cell.trials if trial.quality_name
    ]
    if not names:
        return "Quality"
    return "AUC" if names[0] == "auc" else names[0].capitalize()


def _quality(cell: Cell) -> str:
    words = text.quality(cell.trials[0].quality_name, cell.quality.mean)
    where = cell.trials[0].validated
    return f"{words}\n{where}" if where and cell.quality.n else words


def apart_table(groups: Sequence[ComparisonGroup], headings: Sequence[str]) -> Table | None:
    """Why one workload has several charts: the fields in which they differ."""
    fields = apart(groups)
    if not fields:
        return None
    rows = tuple(
        (heading, *(_apart_words(name, values[place]) for name, values in fields))
        for place, heading in enumerate(headings)
    )
    columns = ("Kept apart", *(name for name, _ in fields))
    return Table("Not drawn in one chart, because they differ in what matters.", columns, rows)


def _apart_words(field: str, value: str) -> str:
    """A group of published batches, one for each precision, has no batch size of its own."""
    return "as published" if (field, value) == ("batch size", "0") else text.clean(value, 40)


def projections(group: ComparisonGroup) -> tuple[str, ...]:
    """Projected ÷ whole where one machine has both; further off than 1 % judges no claim."""
    cells = [entry.cell for entry in group.entries]
    projected, whole = ([c for c in cells if c.length.projected == short] for short in (True, False))
    place = same_but(within=("session", "card", "stack"))
    sentences = [
        _projection(cell, beside) for cell, same in matched(projected, whole, place) for beside in same
    ]
    return tuple(sentence for sentence in sentences if sentence)


def _projection(projected: Cell, whole: Cell) -> str:
    ratio = cell_ratio(projected, whole, "seconds")
    if ratio is None:
        return ""
    off = abs(ratio.estimate - 1.0)
    tail = "more than 1 % off: the projection judges no claim" if off > PROJECTION_TOLERANCE else "within 1 %"
    return f"{projected.key.precision}: projected ÷ whole run = {ratio.estimate:.3f} ({tail})."


def provenance(group: ComparisonGroup) -> Provenance:
    """The records a group stands on, and the lines that measure them again."""
    trials = [trial for entry in group.entries for trial in entry.cell.trials]
    own = [trial for entry in group.entries if entry.own for trial in entry.cell.trials]
    asked = dict.fromkeys((trial.record.plan, trial.record.environment.image) for trial in own or trials)
    commands = tuple(text.run_again(plan, image) for plan, image in asked)
    words = f"{text.count(len(trials), 'record')} in {text.count(len(group.entries), 'line')}"
    return Provenance(words, tuple(text.clean(trial.path, 160) for trial in trials), commands)
