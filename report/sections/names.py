"""The loud labels: what a reader must know before believing a figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from harness.record import Claim, Side
from report import text
from report.claims.matching import smaller
from report.comparisons.cells import Cell, Ratio, fewest_runs, input_bound
from report.comparisons.groups import ComparisonGroup, Entry
from report.comparisons.speedups import ProfileGain, Speedup
from report.sections.view import Badge
from report.stats.intervals import FLOOR_RUNS, HEADLINE_RUNS
from report.text import short_card
from report.trials.key import FRAMEWORK, PARALLEL, VIRTUAL_RANKS, Key, Value

TOLD_BY_SETTING = (FRAMEWORK, PARALLEL, VIRTUAL_RANKS)
SIZES = ("image_size", "sequence_length", "batch_size", "data_source", "weights")
VALUE_WORDS = {
    "protocol": "protocol {}",
    "data_mode": "{} data",
    "image_size": "{} px",
    "sequence_length": "sequences of {}",
    "batch_size": "batch {}",
    "data_source": "{} data",
    "weights": "{} weights",
}
"""How the value of a field is said; of an option, behind its name."""


def badges(cells: Sequence[Cell]) -> tuple[Badge, ...]:
    """Each label once, the gravest first."""
    trials = [trial for cell in cells for trial in cell.trials]
    environments = [trial.environment for trial in trials]
    reduced = dict.fromkeys(note for cell in cells for note in smaller(cell))
    reasons = dict.fromkeys(
        text.clean(reason, 160) for used in environments for reason in used.unpinned_because
    )
    fewest = fewest_runs(cells)
    badges = (
        (
            any(cell.key.data_source == "generated" for cell in cells),
            "GENERATED DATA",
            "random data of the real shape stood in for the real set: no claim is judged on it",
        ),
        (
            reduced,
            "smaller than published",
            f"so that it ends soon: {text.clean('; '.join(reduced), 200)}",
        ),
        (
            any(cell.key.weights == "random" for cell in cells),
            "random weights, speed only",
            "the weights are not the pretrained ones, so accuracy was not tested",
        ),
        (
            any(not used.pinned for used in environments),
            "software not pinned",
            "the software is not what the lock says" + (f": {'; '.join(reasons)}" if reasons else ""),
        ),
        (
            any(used.base_substituted for used in environments),
            "another base image",
            "the image stands on another base than the one that is pinned",
        ),
        (
            any(cell.verdict == "unproven" for cell in cells),
            "too short to rank",
            "the measured window does not show that the speed had settled: shown, never ranked",
        ),
        (
            unproven := sum(len(cell.unproven_left_out) for cell in cells),
            f"{text.count(unproven, 'unproven run')} left out",
            "some windows did not show a settled speed where most of their line did; those trials are drawn "
            "as crosses and take no part in any mean",
        ),
        (
            any(cell.takes_unproven and cell.verdict != "unproven" for cell in cells),
            "unproven runs counted",
            "some windows did not show a settled speed where most of their line did; without them the mean "
            "would be another, so they count",
        ),
        (
            invalid := sum(trial.verdict == "invalid" for trial in trials),
            f"{text.count(invalid, 'invalid run')} left out",
            "some trials broke a rule; they are drawn as crosses and take no part in any mean",
        ),
        (
            0 < fewest < FLOOR_RUNS,
            f"weak: {text.count(fewest, 'run')}",
            f"{text.count(fewest, 'run')}; at least {FLOOR_RUNS} are wanted, {HEADLINE_RUNS} to decide by",
        ),
        (
            any(cell.length.projected and cell.seconds.n for cell in cells),
            "totals projected from a part",
            "the whole protocol's time is worked out from a shorter run",
        ),
        (
            any(input_bound(cell) for cell in cells),
            "waits for input",
            "waiting for input took over 10 % of the time: a faster card would not shorten that part",
        ),
        (
            any(cell.key.data_mode == "host" for cell in cells),
            "loader as published",
            "it runs on the host, so this ranks whole machines, not cards",
        ),
    )
    return tuple(Badge(word, because) for shown, word, because in badges if shown)


def work(cell: Cell, among: Iterable[Cell] = (), *, said: Sequence[str] = ()) -> str:
    """'ResNet-18 in fp32-ieee, tuned'; with what else tells it from those `among` that bear the same name.

    `said` are fields of the key that stand beside the name.
    """
    key = cell.key
    others = (other.key for other in among if other.key.precision == key.precision)
    return f"{text.model_name(key.model)} in {key.precision}{setting(key)}{apart(key, others, said=said)}"


def apart(key: Key, among: Iterable[Key], *, said: Sequence[str] = ()) -> str:
    """', protocol warmed/1, workers 24': what tells a key from those `among` of its model and setting.

    Empty where nothing does, or where only `said` fields do.
    """
    named = (key.workload, key.model, setting(key))
    alike = {other for other in among if (other.workload, other.model, setting(other)) == named}
    options = {name for other in (key, *alike) for name, _ in other.options} - {*TOLD_BY_SETTING}
    parts = []
    for name in ("protocol", "data_mode", *sorted(options), *SIZES):
        value = _value(key, name)
        same = {other for other in alike if _value(other, name) == value}
        if len(same) < len(alike) and name not in said:
            parts.append(_value_words(name, value))
        alike = same
    return "".join(f", {text.clean(part, 40)}" for part in parts if part)


def _value(key: Key, name: str) -> Value:
    options = dict(key.options)
    found: Value = options.get(name) if name in options else getattr(key, name, None)
    return found


def _value_words(name: str, value: Value) -> str:
    if value is None:
        return ""
    return VALUE_WORDS.get(name, f"{name.replace('_', ' ')} {{}}").format(value)


def setting(key: Key) -> str:
    """What besides batch and data marks a work: ', chainer, 2 devices on 2 nodes (ddp)'; else empty."""
    options = dict(key.options)
    way, virtual = options.get(PARALLEL), options.get(VIRTUAL_RANKS, 1)
    devices = f"{key.gpus} devices{text.on_nodes(key.nodes)}"
    parts = [str(options[FRAMEWORK])] if FRAMEWORK in options else []
    parts += [devices + (f" ({way})" if way else "")] if key.gpus > 1 else []
    parts += [] if virtual == 1 else [f"{virtual} virtual ranks"]
    parts += [] if key.profile == "default" else [key.profile]
    parts += [] if key.layout == "contiguous" else [key.layout]
    return "".join(f", {text.clean(part, 40)}" for part in parts)


def label(cell: Cell, group: ComparisonGroup) -> str:
    """The precision; the card too where several stand side by side, the machine where cards are alike."""
    return line_name(cell.card, cell.machine_label, cell.key.precision, group)


def line_name(card: str, machine_label: str, precision: str, group: ComparisonGroup) -> str:
    """The name of a line of that card, machine and precision, which may have failed."""
    cards = {entry.cell.card for entry in group.entries} | {claim.of.card or "" for claim in group.published}
    alike = {entry.cell.machine for entry in group.entries if entry.cell.card == card}
    parts = [short_card(card)] if len(cards) > 1 else []
    parts += [text.clean(machine_label, 24)] if len(alike) > 1 else []
    return " ".join([*parts, precision])


def note(line: Entry, group: ComparisonGroup) -> str:
    """What else tells a line apart: when it was measured, if in another session, and by whose machine."""
    cell = line.cell
    parts = [f"batch {cell.key.batch_size}", text.count(cell.seconds.n or cell.throughput.n, "run")]
    parts += ["projected"] if cell.length.projected else []
    parts += ["unproven"] if cell.verdict == "unproven" else []
    if line.own and cell.session != group.lead:
        parts.append(f"measured {cell.started_at:%Y-%m-%d}")
    if not line.own:
        here = {other.cell.machine for other in group.entries if other.own}
        label = text.clean(cell.machine_label, 24)
        if cell.machine in here:
            parts.append(f"{cell.started_at:%Y-%m-%d}")
        elif label not in line_name(cell.card, cell.machine_label, "", group):
            parts.append(label)
    return " · ".join(parts)


def rate(cell: Cell) -> str:
    """Samples a second, with the interval beneath."""
    interval = cell.throughput.interval
    return f"{text.number(cell.throughput.mean)}\n{text.between(interval) if interval else 'one run'}"


def scaled(line: Entry) -> str:
    """'1.42', '1.01, tied', '1.42 (n = 1)'"""
    if line.scaled is None:
        return "–"
    words = text.times(line.scaled.estimate)
    if line.reference:
        return words
    if line.scaled.tied is None:
        return f"{words} (n = 1)"
    return f"{words}, tied" if line.scaled.tied else words


def variant(side: Side) -> list[str]:
    """What a published side has besides model, precision and card: batch, devices, and options in words."""
    batch = [f"batch {side.batch_size}"] if side.batch_size else []
    devices = [f"{side.gpus} devices"] if side.gpus > 1 else []
    return [*batch, *devices, *(value for value in side.options.values() if isinstance(value, str))]


def published(claim: Claim) -> tuple[str, str]:
    """A published figure's name and note."""
    side = claim.of
    name = f"{short_card(side.card or 'any card')} {side.precision or ''}".strip()
    where = variant(side)
    runs = "single run" if claim.runs in (None, 1) else text.count(claim.runs, "run")
    return name, " · ".join([*where, f"published, {runs}", f"study {claim.study}"])


def together(ratios: Iterable[Ratio], what: str = "The intervals") -> str:
    """A sentence where the level holds for several ratios at once; else empty."""
    most = max((ratio.interval.comparisons for ratio in ratios if ratio.interval), default=1)
    return f" {what} hold together, over {most} comparisons." if most > 1 else ""


def gain_note(gain: Speedup) -> str:
    """The denominator, what differs besides the precision, and the runs of both sides."""
    parts = [f"over {gain.over.key.precision}"]
    parts += ["no difference shown"] if gain.ratio.tied else []
    batches = (gain.of.key.batch_size, gain.over.key.batch_size)
    parts += [f"batch {batches[0]} vs {batches[1]}"] if batches[0] != batches[1] else []
    parts.append(f"n {gain.ratio.n[0]}+{gain.ratio.n[1]}")
    return " · ".join(parts)


def gain(speedup: Speedup | ProfileGain | None) -> str:
    """'1.62 × (1.58 to 1.66)'"""
    if speedup is None:
        return "–"
    words = f"{text.times(speedup.ratio.estimate)} ×"
    if speedup.ratio.interval is None:
        return f"{words}\nsingle runs"
    shown = f"{words}\n{text.between(speedup.ratio.interval, 'times')}"
    return f"{shown}, no difference shown" if speedup.ratio.tied else shown
