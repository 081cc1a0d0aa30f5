"""Contests → drawings: which figure goes into which chart, under which name."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from harness.record import Claim, Epoch
from harness.record import Curve as PublishedCurve
from report import charts, words
from report.charts import Mark
from report.contests import Contest, Line, Speedup
from report.stats import Cell, Figure
from report.view import Panel

_MAKERS = re.compile(
    r"\b(NVIDIA|AMD|Intel|GeForce|Radeon|Graphics|Tesla|Instinct|CPU|\(R\)|\(TM\))\b|\((R|TM)\)"
)


def short_card(name: str) -> str:
    """A card's name without its maker: 'RTX 2080 Ti'."""
    said = " ".join(_MAKERS.sub(" ", words.clean(name, 60)).split())
    return words.clean(said, 24) if said else words.clean(name, 24)


def label(cell: Cell, contest: Contest) -> str:
    """The precision; the card too where several stand side by side."""
    several = (
        len({line.cell.card for line in contest.lines} | {c.of.card or "" for c in contest.published}) > 1
    )
    return f"{short_card(cell.card)} {cell.key.precision}" if several else cell.key.precision


def note(line: Line) -> str:
    """What else tells a line apart."""
    cell = line.cell
    parts = [f"batch {cell.key.batch_size}", words.count(cell.seconds.n or cell.throughput.n, "run")]
    parts += ["projected"] if cell.length.projected else []
    parts += ["unproven"] if cell.verdict == "unproven" else []
    parts += [] if line.own else [f"{words.clean(cell.machine_label, 22)}, {cell.started_at:%Y-%m-%d}"]
    return " · ".join(parts)


def panels(
    contest: Contest,
    gains: Sequence[Speedup],
    claims: Sequence[Claim],
    published: Sequence[PublishedCurve],
    anchor: str,
) -> tuple[Panel, ...]:
    """All charts of one contest that have something to show, in reading order."""
    found = [
        seconds_panel(contest, anchor),
        scaled_panel(contest, anchor),
        gains_panel(contest, gains, claims, anchor),
        memory_panel(contest, anchor),
        *_curve_panels(contest, published, anchor),
    ]
    return tuple(panel for panel in found if panel is not None)


def seconds_panel(contest: Contest, anchor: str) -> Panel | None:
    """Seconds for the whole protocol, or for a step where no total is known; published single runs hollow."""
    if any(line.cell.seconds.mean is not None for line in contest.lines):
        epochs = words.count(contest.length.epochs, "epoch")
        title, unit, read = "Seconds", f"for all {epochs}; less is better", _seconds
    else:
        title, unit, read = "Seconds per step", "less is better", _step
    marks = [_mark(line, contest, read(line.cell), words.seconds) for line in contest.lines]
    marks += [_published(claim) for claim in contest.published]
    return _dots(f"{anchor}-seconds", title, unit, marks, lambda tick: f"{tick:,.6g}", ratio=False)


def _seconds(cell: Cell) -> Figure:
    return cell.seconds


def _step(cell: Cell) -> Figure:
    return cell.step_seconds


def _mark(line: Line, contest: Contest, figure: Figure, write: Callable[[float | None], str]) -> Mark:
    interval = figure.interval
    return Mark(
        label=label(line.cell, contest),
        note=note(line),
        said=write(figure.mean) if figure.mean is not None else "no valid run",
        value=figure.mean,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        runs=figure.values,
        crosses=figure.invalid,
        look=line.cell.key.precision,
        doubtful=not line.cell.ranked,
    )


def _published(claim: Claim) -> Mark:
    side = claim.of
    where = [f"batch {side.batch_size}"] if side.batch_size else []
    runs = "single run" if claim.runs in (None, 1) else words.count(claim.runs, "run")
    return Mark(
        label=f"{short_card(side.card or 'any card')} {side.precision or ''}".strip(),
        note=" · ".join([*where, f"published, {runs}", f"study {claim.study}"]),
        said=words.seconds(claim.value),
        value=claim.value,
        look=side.precision or "",
        hollow=True,
    )


def scaled_panel(contest: Contest, anchor: str) -> Panel | None:
    """Duration ÷ the reference's, 1.00; drawn as tied where the interval includes 1."""
    reference = contest.reference
    if reference is None:
        return None
    marks = []
    for line in contest.lines:
        if line.scaled is not None:
            interval = line.scaled.interval
            scale = reference.cell.seconds.mean or 1.0
            marks.append(
                Mark(
                    label=label(line.cell, contest),
                    note=note(line),
                    said=scaled_words(line),
                    value=line.scaled.estimate,
                    low=interval.low if interval else None,
                    high=interval.high if interval else None,
                    runs=tuple(value / scale for value in line.cell.seconds.values),
                    crosses=tuple(value / scale for value in line.cell.seconds.invalid),
                    look=line.cell.key.precision,
                    doubtful=not line.cell.ranked,
                )
            )
    base = f"{label(reference.cell, contest)} = 1.00; less is better"
    return _dots(f"{anchor}-scaled", "Time-scaled", base, marks, words.times, ratio=True)


def scaled_words(line: Line) -> str:
    """'1.42', '1.01, tied', '1.00, reference'"""
    if line.scaled is None:
        return "–"
    said = words.times(line.scaled.estimate)
    if line.reference:
        return f"{said}, reference"
    if line.scaled.tied is None:
        return f"{said}, not sure"
    return f"{said}, tied" if line.scaled.tied else said


def gains_panel(
    contest: Contest, gains: Sequence[Speedup], claims: Sequence[Claim], anchor: str
) -> Panel | None:
    """Each precision against full precision; the denominator is part of every label."""
    several = len({gain.of.card for gain in gains}) > 1
    marks = [_gain(gain, several) for gain in gains]
    if contest.base.data_source != "generated":
        marks += [_published_gain(claim) for claim in claims]
    title, unit = "Speed against 32-bit", "times as fast; more is better"
    return _dots(f"{anchor}-gain", title, unit, marks, words.times, ratio=True)


def _gain(gain: Speedup, several: bool) -> Mark:
    interval = gain.ratio.interval
    card = f"{short_card(gain.of.card)} " if several else ""
    parts = [f"over {gain.over.key.precision}"]
    parts += [f"{name} {mine} against {theirs}" for name, mine, theirs in gain.differs]
    if gain.of.key.batch_size != gain.over.key.batch_size and not gain.differs:
        parts.append(f"batch {gain.of.key.batch_size} against {gain.over.key.batch_size}")
    parts.append(f"{gain.ratio.n[0]} + {gain.ratio.n[1]} runs")
    said = words.times(gain.ratio.estimate)
    return Mark(
        label=f"{card}{gain.of.key.precision}",
        note=" · ".join(parts),
        said=f"{said} ×, no difference shown" if gain.ratio.tied else f"{said} ×",
        value=gain.ratio.estimate,
        low=interval.low if interval else None,
        high=interval.high if interval else None,
        look=gain.of.key.precision,
        doubtful=not (gain.of.ranked and gain.over.ranked),
    )


def _published_gain(claim: Claim) -> Mark:
    over = claim.over.precision if claim.over else None
    return Mark(
        label=f"{short_card(claim.of.card or claim.card_class or 'any card')} {claim.of.precision or ''}".strip(),
        note=f"over {over} · published, single runs · study {claim.study}",
        said=f"{words.times(claim.value)} ×",
        value=claim.value,
        look=claim.of.precision or "",
        hollow=True,
    )


def memory_panel(contest: Contest, anchor: str) -> Panel | None:
    """Peak memory in GiB: of the framework's allocator on a device, of the process on a CPU."""
    whose = (
        "the process" if all(line.cell.stack.device == "cpu" for line in contest.lines) else "the allocator"
    )
    marks = []
    for line in contest.lines:
        figure = line.cell.peak_bytes
        if figure.mean is not None:
            scaled = [value / 2**30 for value in figure.values]
            marks.append(
                Mark(
                    label=label(line.cell, contest),
                    note=note(line),
                    said=words.gibibytes(max(figure.values)),
                    value=max(scaled),
                    runs=tuple(scaled),
                    look=line.cell.key.precision,
                )
            )
    unit = f"GiB of {whose}, the highest of all runs"
    return _dots(f"{anchor}-memory", "Peak memory", unit, marks, lambda tick: f"{tick:g}", ratio=False)


def _dots(
    name: str, title: str, unit: str, marks: Sequence[Mark], write: Callable[[float], str], *, ratio: bool
) -> Panel | None:
    if not any(mark.value is not None or mark.crosses for mark in marks):
        return None
    alt = "; ".join(f"{mark.label} ({mark.note}): {mark.said}" for mark in marks[:12])
    drawing = charts.dots(name, title, alt, marks, write=write, ratio=ratio)
    return Panel(name, title, unit, drawing, alt)


def _curve_panels(contest: Contest, published: Sequence[PublishedCurve], anchor: str) -> list[Panel | None]:
    quality = next(
        (row.quality_name for line in contest.lines for row in line.cell.rows if row.quality_name), None
    )
    behind = () if contest.base.data_source == "generated" else tuple(published)
    found: list[Panel | None] = []
    if quality is not None:
        title = "Accuracy" if quality == "accuracy" else "Perplexity"
        better = "more" if quality == "accuracy" else "less"
        write = words.percent if quality == "accuracy" else lambda value: words.number(value, 2)
        old = [_old(curve, curve.quality) for curve in behind] if quality == "accuracy" else []
        lines = [*_epoch_curves(contest, lambda epoch: epoch.quality), *old]
        found.append(
            _curves(f"{anchor}-quality", title, f"after each epoch; {better} is better", lines, write)
        )
    old = [_old(curve, curve.valid_loss) for curve in behind]
    lines = [*_epoch_curves(contest, lambda epoch: epoch.valid_loss), *old]
    found.append(
        _curves(f"{anchor}-loss", "Validation loss", "after each epoch; less is better", lines, words.number)
    )
    if found[-1] is None:
        found.append(_step_losses(contest, anchor))
    return found


def _epoch_curves(contest: Contest, read: Callable[[Epoch], float | None]) -> list[charts.Curve]:
    found = []
    for line in contest.lines:
        for row in line.cell.rows:
            points = [(float(e.index), read(e)) for e in row.epochs if e.complete]
            good = tuple((x, y) for x, y in points if y is not None)
            if good:
                found.append(charts.Curve(label(line.cell, contest)[:13], good, line.cell.key.precision))
    return found


def _old(curve: PublishedCurve, values: Sequence[float]) -> charts.Curve:
    points = tuple((float(epoch), value) for epoch, value in zip(curve.epochs, values, strict=False))
    return charts.Curve("published", points, curve.side.precision or "", behind=True)


def _curves(
    name: str,
    title: str,
    unit: str,
    lines: Sequence[charts.Curve],
    write: Callable[[float], str],
    across: str = "epoch",
) -> Panel | None:
    own = [curve for curve in lines if not curve.behind]
    if not own:
        return None
    ends = dict.fromkeys(f"{c.label}: {write(c.points[-1][1])}" for c in lines)
    alt = f"at the last {across} drawn: " + "; ".join(list(ends)[:12])
    return Panel(name, title, unit, charts.curves(name, title, alt, lines, across=across, write=write), alt)


def _step_losses(contest: Contest, anchor: str) -> Panel | None:
    lines = [
        charts.Curve(
            label(line.cell, contest)[:13],
            tuple((float(step), loss) for step, loss in row.losses),
            line.cell.key.precision,
        )
        for line in contest.lines
        for row in line.cell.rows
        if row.losses
    ]
    unit = "at each step; less is better"
    return _curves(f"{anchor}-loss", "Training loss", unit, lines, words.number, across="step")
