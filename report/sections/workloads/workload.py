"""Each workload of the page, and why mixed precision gains with one loader what it does not with another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from report import text
from report.analysis import Analysis
from report.charts.intervals import GroupedIntervals, Mark
from report.claims import matching
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup, faster_published
from report.comparisons.speedups import FULL_PRECISION, Speedup, best_supported
from report.comparisons.time_breakdown import time_breakdown
from report.sections import names
from report.sections.view import GroupView, Panel, Table, WorkloadView
from report.sections.workloads import batch_sweep, charts, curves, labels, scaling, tables, trials
from report.trials.all_reduce import Devices, Reached, reached
from report.trials.key import Key
from report.trials.pairs import Place, grouped_by, matched, same_but
from report.trials.table import trials_of
from report.trials.trial import Trial

MOST_SAID = 4
INPUT_WAIT = 0.1
"""Of the time: from here on a trial is called input-bound."""

_side = same_but("data_mode", within=("data_sha256", "session", "machine", "card"))


def data_mode_sentences(gains: Sequence[Speedup]) -> tuple[str, ...]:
    """For each gain with the published loader that was measured on the device too: both, and who waited."""
    mixed = [gain for gain in gains if gain.of.key.precision not in FULL_PRECISION]
    hosts, devices = ([g for g in mixed if g.of.key.data_mode == mode] for mode in ("host", "device"))
    pairs = [(host, beside[0]) for host, beside in matched(hosts, devices, _place) if beside]
    return tuple(_loader_sentence(host, device) for host, device in pairs[:MOST_SAID])


def _place(gain: Speedup) -> tuple[Place, Place]:
    return _side(gain.of), _side(gain.over)


def _loader_sentence(host: Speedup, device: Speedup) -> str:
    key, over = host.of.key, host.over.key
    batch = f"batch {key.batch_size}"
    batch += f" against {over.batch_size}" if over.batch_size != key.batch_size else ""
    words = (
        f"{text.model_name(key.model)}, {batch}: with the published loader {key.precision} is "
        f"{text.times(host.ratio.estimate)} times as fast as {over.precision}, with the same data on the "
        f"device {text.times(device.ratio.estimate)} times"
    )
    waits = [(mode, time_breakdown(cell)) for mode, cell in (("host", host.of), ("device", device.of))]
    waited = {mode: part.input_wait for mode, part in waits if part is not None}
    if len(waited) < len(waits):
        return f"{words}."
    words += (
        f": the loader kept it waiting for {text.percent(waited['host'])} of the time, "
        f"the device's own data for {text.percent(waited['device'])}"
    )
    if waited["host"] > INPUT_WAIT and device.ratio.estimate > host.ratio.estimate:
        words += ". What waits for input is not shortened by faster arithmetic"
    return f"{words}."


FEWEST_GROUPS = 3


def panels(groups: Sequence[ComparisonGroup], gains: Sequence[Speedup], anchor: str) -> tuple[Panel, ...]:
    """A panel for each data mode and protocol, a row for each model, all on one axis."""
    by_setting = _gains_by_setting(groups, gains)
    everything = [_extent(gain) for members in by_setting.values() for gain in members]
    if not everything:
        return ()
    span = (min(low for low, _ in everything), max(high for _, high in everything))
    drawn = []
    for place, ((protocol, mode, setting), members) in enumerate(by_setting.items(), 1):
        rows: dict[str, list[Mark]] = {}
        for gain in members:
            rows.setdefault(text.model_name(gain.of.key.model), []).append(
                charts.gain_mark(gain, gain.of.key.precision, "")
            )
        unit = f"times as fast as fp32-ieee; {protocol}, {mode} data{setting}"
        alt = "; ".join(
            f"{text.model_name(g.of.key.model)} {g.of.key.precision} {text.times(g.ratio.estimate)} ×"
            for g in members[:24]
        )
        name, title = f"{anchor}-gain-{place}", "Speed against 32-bit, by model"
        chart = GroupedIntervals(tuple((model, tuple(marks)) for model, marks in rows.items()), span)
        drawn.append(Panel(name, title, unit, chart, alt))
    return tuple(drawn)


def overview_table(groups: Sequence[ComparisonGroup], gains: Sequence[Speedup]) -> Table | None:
    """The same figures with their intervals: a row for each model, a column for each precision."""
    by_setting = _gains_by_setting(groups, gains)
    precisions = list(dict.fromkeys(g.of.key.precision for members in by_setting.values() for g in members))
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for (protocol, mode, setting), members in by_setting.items():
        for gain in members:
            place = (text.model_name(gain.of.key.model), f"{protocol}, {mode}{setting}")
            rows.setdefault(place, {})[gain.of.key.precision] = names.gain(gain)
    if not rows:
        return None
    caption = "Times as fast as fp32-ieee on the same machine, with the 95 % interval."
    ratios = (gain.ratio for gains in by_setting.values() for gain in gains)
    caption += names.together(ratios, "The intervals of one work")
    values = tuple(
        (*place, *(by_precision.get(name, "–") for name in precisions))
        for place, by_precision in rows.items()
    )
    return Table(caption, ("Model", "Protocol and data", *precisions), values)


def _gains_by_setting(
    groups: Sequence[ComparisonGroup], gains: Sequence[Speedup]
) -> dict[tuple[str, str, str], list[Speedup]]:
    """By protocol, data mode, and what else is never mixed: devices and how they share, profile, layout."""
    if len(groups) < FEWEST_GROUPS:
        return {}
    own = [entry.cell for group in groups for entry in group.entries if entry.own]
    by_setting: dict[tuple[str, str, str], list[Speedup]] = {}
    for gain in gains:
        if gain.over.key.precision == "fp32-ieee" and any(gain.of is cell for cell in own):
            key = gain.of.key
            by_setting.setdefault((key.protocol, key.data_mode, names.setting(key)), []).append(gain)
    return {place: best_supported(members) for place, members in by_setting.items()}


def _extent(gain: Speedup) -> tuple[float, float]:
    interval = gain.ratio.interval
    return (interval.low, interval.high) if interval else (gain.ratio.estimate, gain.ratio.estimate)


def heading(workload: str) -> str:
    """What the page calls a workload."""
    return text.WORKLOAD_WORDS.get(workload, text.clean(workload, 60))


def views(analysis: Analysis) -> tuple[WorkloadView, ...]:
    """Each workload with its groups, numbered through the page."""
    groups = grouped_by(analysis.groups, lambda group: group.base.workload)
    traced = trials.panels(analysis.groups)
    beside = {(entry.cell.session, entry.cell.machine) for c in analysis.groups for entry in c.entries}
    cells = [cell for cell in analysis.cells if (cell.session, cell.machine) in beside]
    failed = [trial for trial in analysis.trials if trial.failure is not None]
    together = reached(trial.record for trial in trials_of(analysis.table) if trial.is_ceiling)
    sections: list[WorkloadView] = []
    number = 0
    for workload, members in groups.items():
        anchor = f"w-{len(sections) + 1}"
        mine = [cell for cell in cells if cell.key.workload == workload]
        mine_failed = [trial for trial in failed if trial.key.workload == workload]
        shown = []
        for group in members:
            number += 1
            shown.append(_group_view(group, analysis, traced, number))
        sections.append(
            WorkloadView(
                anchor=anchor,
                heading=_own_words(members, "title") or heading(workload),
                about=_about(workload, _own_words(members, "about"), analysis.speedups),
                overview=(
                    *panels(members, analysis.speedups, anchor),
                    *batch_sweep.panels(mine, mine_failed, anchor),
                    *scaling.panels(mine, analysis.speedups, anchor),
                ),
                tables=_tables(members, mine, mine_failed, analysis.speedups, together),
                groups=tuple(shown),
                apart=tables.apart_table(members, [view.heading for view in shown]),
            )
        )
    return tuple(sections)


def _own_words(groups: Sequence[ComparisonGroup], field: str) -> str | None:
    """What a workload's own file says of itself, where all of its trials here say the same."""
    trials = [trial for group in groups for entry in group.entries for trial in entry.cell.trials]
    said = {getattr(trial.record.measurement, field, None) for trial in trials}
    return text.clean(words, 300) if len(said) == 1 and (words := said.pop()) else None


def _about(workload: str, own: str | None, gains: Sequence[Speedup]) -> str:
    plain = own or text.WORKLOAD_ABOUT.get(workload, f"Workload {text.clean(workload, 60)}.")
    return " ".join(
        [plain, *data_mode_sentences([gain for gain in gains if gain.of.key.workload == workload])]
    )


def _tables(
    groups: Sequence[ComparisonGroup],
    cells: Sequence[Cell],
    failed: Sequence[Trial],
    gains: Sequence[Speedup],
    together: Mapping[Devices, Reached],
) -> tuple[Table, ...]:
    drawn = [
        overview_table(groups, gains),
        *scaling.tables(cells, gains, together),
        tables.profile_table(cells),
        batch_sweep.table(cells, failed),
        labels.table(cells),
    ]
    return tuple(table for table in drawn if table is not None)


def _group_view(
    group: ComparisonGroup, analysis: Analysis, traced: Mapping[str, Panel], number: int
) -> GroupView:
    anchor, claims = f"f-{number}", analysis.evidence.claims
    cells = [entry.cell for entry in group.entries]
    own = [gain for gain in analysis.speedups if any(gain.of is cell for cell in cells)]
    published = [claim for claim in claims.claims if matching.published_gain(claim, own)]
    behind = [curve for curve in claims.curves_for(group.base.workload) if matching.behind(curve, cells)]
    faster = faster_published(group, analysis.question.baseline)
    return GroupView(
        anchor=anchor,
        number=number,
        heading=_heading(group, (other.base for other in analysis.groups)),
        setting=_setting(group),
        badges=names.badges(cells),
        panels=(
            *charts.panels(group, own, published, faster, analysis.spreads, anchor),
            *curves.panels(group, behind, anchor),
        ),
        table=tables.group_table(group, own, published_is_faster=faster is not None),
        states=tables.run_quality_table(group, analysis.parities, analysis.early_gates),
        trials=trials.table(group),
        traces=tuple(
            {panel.name: panel for trial in _trials(group) if (panel := traced.get(trial.path))}.values()
        ),
        untraced=_untraced(group, traced),
        notes=_notes(group),
        provenance=tables.provenance(group),
    )


def _notes(group: ComparisonGroup) -> tuple[str, ...]:
    notes = [f"{name} differs: {' | '.join(values)}" for name, values in group.stacks]
    stacks = dict.fromkeys(claim.stack for claim in group.published if claim.stack)
    notes += [f"The published figures stand on another stack: {stack}" for stack in stacks]
    cleaned = [text.clean(note, 300) for note in notes]
    return (*cleaned, *tables.projections(group))


def _trials(group: ComparisonGroup) -> list[Trial]:
    return [trial for entry in group.entries for trial in entry.cell.trials]


def _untraced(group: ComparisonGroup, traced: Mapping[str, Panel]) -> str:
    left = sum(trial.path not in traced for trial in _trials(group))
    if not left:
        return ""
    return (
        f"{text.count(left, 'trial')} of this chart not drawn, to keep the page small; the records hold all."
    )


def _heading(group: ComparisonGroup, among: Iterable[Key]) -> str:
    base = group.base
    batch = f", batch {base.batch_size}" if base.batch_size else ""
    stacks = ", on different stacks" if group.stacks else ""
    under = names.apart(base, among, said=("batch_size", "data_mode"))
    return f"{text.model_name(base.model)}{batch}, {base.data_mode} data{names.setting(base)}{under}{stacks}"


def _setting(group: ComparisonGroup) -> str:
    base, length = group.base, group.length
    batches = {entry.cell.key.batch_size for entry in group.entries}
    steps = f" of {text.count(length.steps_per_epoch, 'step')}" if len(batches) == 1 else ""
    size = f", {base.image_size} px" if base.image_size else ""
    size += f", sequences of {base.sequence_length}" if base.sequence_length else ""
    options = "".join(f", {name} {value}" for name, value in base.options)
    batch = f", batch {min(batches)}" if len(batches) == 1 else ", the batch as published for each precision"
    return text.clean(
        f"Protocol {base.protocol}: {text.count(length.epochs, 'epoch')}{steps}{batch}{size}{options}. "
        f"Data: {base.data_source}, {base.data_mode} ({text.DATA_MODE_WORDS[base.data_mode]}).",
        400,
    )
