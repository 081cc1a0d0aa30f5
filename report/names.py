"""What lines, cards and pairs are called in charts and tables."""

from __future__ import annotations

import re

from harness.record import Claim
from report import words
from report.comparability import PARALLEL, Key
from report.contests import Contest, Line
from report.speedups import Speedup
from report.stats import Cell

_MAKERS = re.compile(
    r"\b(?:NVIDIA|AMD|Intel|GeForce|Radeon|Graphics|Tesla|Instinct)\b|\((?:R|TM)\)|CPU(?= @)"
)
_RESNET = re.compile(r"resnet(\d+)")
_EFFICIENT = re.compile(r"efficientnet_b(\d)")
_WRITTEN = {
    "inception_v3": "InceptionV3",
    "mlp": "MLP",
    "cnn": "CNN",
    "lstm": "LSTM",
    "gru": "GRU",
    "rnn_tanh": "RNN (tanh)",
    "rnn_relu": "RNN (ReLU)",
}


def short_card(name: str) -> str:
    """A card's name without its maker: 'RTX 2080 Ti'."""
    said = " ".join(_MAKERS.sub(" ", words.clean(name, 60)).split())
    return words.clean(said or name, 24)


def model(name: str) -> str:
    """A model as people write it: 'ResNet-50', 'LSTM'."""
    found = _RESNET.fullmatch(name.casefold())
    if found:
        return f"ResNet-{found[1]}"
    found = _EFFICIENT.fullmatch(name.casefold())
    return f"EfficientNet-B{found[1]}" if found else _WRITTEN.get(name.casefold(), words.clean(name, 40))


def setting(key: Key) -> str:
    """What besides batch and data marks a work: ', 2 devices (ddp), tuned'; empty where nothing does."""
    way = dict(key.options).get(PARALLEL)
    parts = [f"{key.gpus} devices" + (f" ({way})" if way else "")] if key.gpus > 1 else []
    parts += [] if key.profile == "default" else [key.profile]
    parts += [] if key.layout == "contiguous" else [key.layout]
    return "".join(f", {words.clean(part, 40)}" for part in parts)


def unit(card: str, machine_label: str) -> str:
    """A card in its machine: what a reader filters by."""
    return f"{short_card(card)} ({words.clean(machine_label, 40)})"


def unit_of(cell: Cell) -> str:
    """The card of a cell in its machine."""
    return unit(cell.card, cell.machine_label)


def label(cell: Cell, contest: Contest) -> str:
    """The precision; the card too where several stand side by side, the machine where cards are alike."""
    return line_name(cell.card, cell.machine_label, cell.key.precision, contest)


def line_name(card: str, machine_label: str, precision: str, contest: Contest) -> str:
    """The name of a line of that card, machine and precision, which may have failed."""
    cards = {line.cell.card for line in contest.lines} | {claim.of.card or "" for claim in contest.published}
    alike = {line.cell.machine for line in contest.lines if line.cell.card == card}
    parts = [short_card(card)] if len(cards) > 1 else []
    parts += [words.clean(machine_label, 24)] if len(alike) > 1 else []
    return " ".join([*parts, precision])


def note(line: Line, contest: Contest) -> str:
    """What else tells a line apart: of another session its date, of another machine its label."""
    cell = line.cell
    parts = [f"batch {cell.key.batch_size}", words.count(cell.seconds.n or cell.throughput.n, "run")]
    parts += ["projected"] if cell.length.projected else []
    parts += ["unproven"] if cell.verdict == "unproven" else []
    if not line.own:
        here = {other.cell.machine for other in contest.lines if other.own}
        label = words.clean(cell.machine_label, 24)
        if cell.machine in here:
            parts.append(f"{cell.started_at:%Y-%m-%d}")
        elif label not in line_name(cell.card, cell.machine_label, "", contest):
            parts.append(label)
    return " · ".join(parts)


def scaled(line: Line) -> str:
    """'1.42', '1.01, tied', '1.42 (n = 1)'"""
    if line.scaled is None:
        return "–"
    said = words.times(line.scaled.estimate)
    if line.reference:
        return said
    if line.scaled.tied is None:
        return f"{said} (n = 1)"
    return f"{said}, tied" if line.scaled.tied else said


def published(claim: Claim) -> tuple[str, str]:
    """A published figure's name and note."""
    side = claim.of
    name = f"{short_card(side.card or 'any card')} {side.precision or ''}".strip()
    where = [f"batch {side.batch_size}"] if side.batch_size else []
    runs = "single run" if claim.runs in (None, 1) else words.count(claim.runs, "run")
    return name, " · ".join([*where, f"published, {runs}", f"study {claim.study}"])


def failure(reason: str) -> str:
    """Why there is no figure, as short as a chart needs it."""
    return {"out-of-memory": "does not fit"}.get(reason, f"failed: {reason.replace('-', ' ')}")


def gain_note(gain: Speedup) -> str:
    """The denominator, what differs besides the precision, and the runs of both sides."""
    parts = [f"over {gain.over.key.precision}"]
    parts += ["no difference shown"] if gain.ratio.tied else []
    batches = (gain.of.key.batch_size, gain.over.key.batch_size)
    parts += [f"batch {batches[0]} vs {batches[1]}"] if batches[0] != batches[1] else []
    parts.append(f"n {gain.ratio.n[0]}+{gain.ratio.n[1]}")
    return " · ".join(parts)


def gain(found: Speedup | None) -> str:
    """'1.62 × (1.58 to 1.66)'"""
    if found is None:
        return "–"
    said = f"{words.times(found.ratio.estimate)} ×"
    interval = found.ratio.interval
    if interval is None:
        return f"{said}\nsingle runs"
    shown = f"{said}\n{words.between(interval, 'times')}"
    return f"{shown}, no difference shown" if found.ratio.tied else shown
