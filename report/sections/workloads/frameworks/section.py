"""Frameworks that train one network alike on one machine: what they are, and which is faster."""

from __future__ import annotations

from report import text
from report.analysis import Analysis
from report.charts.intervals import Mark
from report.claims.matching import smaller
from report.claims.studies import DRAWN
from report.comparisons.cells import Cell, standing, unit_of
from report.comparisons.figures import Figure
from report.comparisons.scaling import step_seconds
from report.sections.view import Fact, FrameworksView, FrameworkWorkView, Panel, Table, tabled
from report.sections.workloads.charts import ratios_panel
from report.sections.workloads.frameworks import characteristics, pairs, timelines
from report.sections.workloads.frameworks.lines import Line, Work, works
from report.sections.workloads.scaling import AT_WORK, load_words, memory_words
from report.trials.key import FRAMEWORK


def view(analysis: Analysis) -> FrameworksView | None:
    """What this machine measured of frameworks that keep one protocol; null where fewer than two do."""
    found = works(analysis)
    if not found:
        return None
    drawn = {
        claim.workload
        for claim in analysis.evidence.claims.claims
        if FRAMEWORK in claim.of.options and claim.metric in DRAWN
    }
    lines = [line for work in found for line in work.lines]
    return FrameworksView(
        characteristics.table(lines),
        characteristics.differences(lines),
        tuple(_work_view(work, f"frameworks-{place}", drawn) for place, work in enumerate(found, 1)),
        pairs.table([line.cell for line in lines]),
    )


def leading(analysis: Analysis) -> Work | None:
    """The first work of the leading session that ranks two frameworks; null where there is none."""
    for work in works(analysis):
        leads = any(line.cell.session == analysis.lead for line in work.alike)
        if leads and len({line.framework for line in work.ranked}) > 1:
            return work
    return None


def brief(work: Work) -> str:
    """The fastest of the ranked lines, and which of the others nothing shows to be slower."""
    first, others = work.ranked[0], work.ranked[1:]
    key = first.cell.key
    where = f"On this {text.short_card(first.cell.card)}"
    what = f"{text.model_name(key.model)} at batch {key.batch_size}"
    speed = f"{_rate(first)} {_unit(first)}s a second"
    level = [line for line in others if line.scaled is None or line.scaled.tied is not False]
    if level:
        names = text.joined(list(map(_plain, [first, *level])))
        return f"{where} no difference is shown between {names} for {what}; {_plain(first)} trained {speed}."
    longer = f"{_plain(others[0])} takes {_times(others[0])} times as long"
    return f"{where} {_plain(first)} trains {what} the fastest: {speed}; {longer}."


def brief_times(work: Work) -> str:
    """'Against PyTorch, TensorFlow takes 1.11 (0.87 to 1.41) times as long, MXNet 1.27 (…).'"""
    first, *others = work.ranked
    each = [f"{_plain(line)} {_times(line)}" for line in others]
    return f"Times as long as {_plain(first)}, with 95 % confidence: {text.joined(each)}."


def brief_panel(work: Work, name: str) -> Panel | None:
    """Every framework's time over the fastest's."""
    return _panel(work, name, _heading(work))


def brief_facts(work: Work) -> tuple[Fact, ...]:
    """The rates that the sentence is of."""
    return tuple(
        Fact(
            f"{_rate(line)} {_unit(line)}s/s",
            f"{_plain(line)} ({line.cell.key.precision}, {text.count(line.cell.throughput.n, 'run')})",
        )
        for line in work.ranked
    )


def _rate(line: Line) -> str:
    mean, interval = line.cell.throughput.mean or 0.0, line.cell.throughput.interval
    return text.about(mean, interval.low, interval.high) if interval else text.number(mean)


def _unit(line: Line) -> str:
    return text.clean(line.cell.trials[0].sample_unit, 20)


def _plain(line: Line) -> str:
    """'MXNet (Gluon)' of 'MXNet, Gluon': a name that can stand in a list."""
    name, _, rest = line.name.partition(", ")
    return f"{name} ({rest})" if rest else name


def _heading(work: Work) -> str:
    key = work.alike[0].cell.key
    devices = f", {key.gpus} devices" if key.gpus > 1 else ""
    size = f", {key.image_size} px" if key.image_size else ""
    return f"{text.model_name(key.model)}, batch {key.batch_size}{size}{devices}, {key.precision}"


def _work_view(work: Work, name: str, drawn: set[str]) -> FrameworkWorkView:
    heading = _heading(work)
    return FrameworkWorkView(
        heading,
        _sentences(work, work.alike[0].cell.key.workload in drawn),
        _panel(work, name, heading),
        timelines.panel(work.lines, f"{name}-use", heading),
        _figures(work),
        _load(work),
    )


def _sentences(work: Work, drawn: bool) -> tuple[str, ...]:
    said = [_fastest(work)]
    reduced = dict.fromkeys(note for line in work.lines for note in smaller(line.cell))
    said += [text.sentence(f"{text.clean(note, 160)}.") for note in reduced]
    if len({line.cell.session for line in work.alike}) > 1:
        said.append("Each framework ran in a session of its image: other hours of the same machine.")
    if drawn:
        said.append("The published times of these frameworks stand under “Published numbers”.")
    return tuple(said)


def _fastest(work: Work) -> str:
    ranked, protocol = work.ranked, work.alike[0].cell.key.protocol
    if len({line.framework for line in ranked}) < 2:
        return (
            f"Fewer than two frameworks have a proven window under {protocol}: "
            "the figures show that each trains, and rank nothing."
        )
    first, second = ranked[0], ranked[1]
    rate = f"{text.number(first.cell.throughput.mean)} {first.cell.trials[0].sample_unit}s a second"
    said = f"{first.name} is the fastest under {protocol}: {rate}."
    if second.scaled is None or second.scaled.tied is None:
        return f"{said} These are single runs, so another may turn the order."
    if second.scaled.tied:
        return f"{said} {second.name} is tied with it."
    return f"{said} {second.name} takes {_times(second)} times as long."


def _times(line: Line) -> str:
    assert line.scaled is not None
    interval = line.scaled.interval
    ends = f" ({text.between(interval, 'times')})" if interval else ""
    return f"{text.times(line.scaled.estimate)}{ends}"


def _panel(work: Work, name: str, heading: str) -> Panel | None:
    marks = [
        Mark(
            label=line.name,
            note=_note(line.cell),
            text=text.times(line.scaled.estimate),
            value=line.scaled.estimate,
            low=line.scaled.interval.low if line.scaled.interval else None,
            high=line.scaled.interval.high if line.scaled.interval else None,
            precision=line.cell.key.precision,
            unranked=not line.cell.ranked,
            card=unit_of(line.cell),
        )
        for line in work.alike
        if line.scaled is not None
    ]
    protocol = work.alike[0].cell.key.protocol
    return ratios_panel(
        name,
        f"Time-scaled by framework: {heading}",
        f"protocol {protocol}; the fastest = 1.00, and less is better",
        marks,
    )


def _figures(work: Work) -> Table:
    unit = work.alike[0].cell.trials[0].sample_unit.capitalize()
    rows = [
        {
            "Framework": line.name,
            "Protocol": line.cell.key.protocol,
            "Seconds / step": text.number(step_seconds(line.cell)),
            f"{unit}s / s": text.number(line.cell.throughput.mean),
            "Epoch": _minutes(line.cell.epoch_seconds),
            "Whole protocol": _with_ends(line.cell.seconds),
            "Time-scaled": _ranked_words(line),
            "Runs": str(line.cell.seconds.n),
            "Standing": f"{standing(line.cell)}\nmeasured {line.cell.started_at:%Y-%m-%d}",
        }
        for line in work.lines
    ]
    caption = (
        "One machine, with batch, size, weights and data alike. Time-scaled is the whole protocol's time "
        "over the fastest's, with its 95 % interval."
    )
    for protocol in dict.fromkeys(line.cell.key.protocol for line in work.published):
        caption += f" Under {protocol} each framework keeps its own quirks, so it is shown and not ranked."
    return tabled(caption, rows)


def _note(cell: Cell) -> str:
    """'5 runs · 26 h 31 min, projected, unproven'"""
    words = [text.duration(cell.seconds.mean or 0.0), "projected" if cell.length.projected else "whole run"]
    words += ["unproven"] if cell.verdict == "unproven" else []
    return f"{text.count(cell.seconds.n, 'run')} · {', '.join(words)}"


def _minutes(seconds: Figure) -> str:
    return f"{text.number((seconds.mean or 0.0) / 60)} min"


def _with_ends(seconds: Figure) -> str:
    if seconds.interval is None:
        return f"{_minutes(seconds)}\none run" if seconds.n == 1 else _minutes(seconds)
    low, high = seconds.interval.low / 60, seconds.interval.high / 60
    return f"{_minutes(seconds)}\n{text.number(low)} to {text.number(high)}"


def _ranked_words(line: Line) -> str:
    if line.scaled is None:
        return "not ranked"
    if not line.cell.ranked:
        return f"{_times(line)}\nnot ranked"
    return f"{_times(line)}\ntied" if line.scaled.tied and line.scaled.estimate != 1.0 else _times(line)


def _carried(cell: Cell) -> str:
    """Its memory and forward pass over those of the others, and its share of the work in words."""
    words = [line for line in load_words(cell.trials).split("\n") if not line.startswith((AT_WORK, "–"))]
    share = timelines.share_words(cell)
    return "\n".join([*words, share] if share else words) or "–"


def _load(work: Work) -> Table | None:
    if work.alike[0].cell.key.gpus < 2:
        return None
    rows = [
        {
            "Framework": line.name,
            "Protocol": line.cell.key.protocol,
            "Peak memory by device": memory_words(line.cell.trials),
            "Device 0 against the others": _carried(line.cell),
        }
        for line in work.lines
    ]
    return tabled("What device 0 carries, over the median of the others.", rows)
