"""Contests → what the page says of each workload, chart by chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.claims import ClaimSet
from report import (
    curves,
    figures,
    labels,
    matching,
    modes,
    names,
    overview,
    profiles,
    series,
    sharing,
    states,
    tables,
    traces,
    words,
)
from report.contests import Contest
from report.frame import Row
from report.parity import Gate, Parity
from report.speedups import Speedup
from report.stats import Cell
from report.view import ContestView, Panel, Table, WorkloadView


@dataclass(frozen=True, slots=True)
class Drawn:
    """All that the workloads' charts and tables are made from."""

    contests: Sequence[Contest]
    cells: Sequence[Cell]
    rows: Sequence[Row]
    gains: Sequence[Speedup]
    parities: Sequence[Parity]
    gates: Sequence[tuple[Row, Gate]]
    claims: ClaimSet


def heading(workload: str) -> str:
    """What the page calls a workload."""
    return words.WORKLOAD_WORDS.get(workload, words.clean(workload, 60))


def views(drawn: Drawn) -> tuple[WorkloadView, ...]:
    """Each workload with its contests, numbered through the page."""
    groups: dict[str, list[Contest]] = {}
    for contest in drawn.contests:
        groups.setdefault(contest.base.workload, []).append(contest)
    traced = traces.panels(drawn.contests)
    beside = {(line.cell.session, line.cell.machine) for c in drawn.contests for line in c.lines}
    cells = [cell for cell in drawn.cells if (cell.session, cell.machine) in beside]
    failed = [row for row in drawn.rows if row.failure is not None]
    found: list[WorkloadView] = []
    number = 0
    for workload, members in groups.items():
        anchor = f"w-{len(found) + 1}"
        mine = [cell for cell in cells if cell.key.workload == workload]
        rows = [row for row in failed if row.key.workload == workload]
        shown = []
        for contest in members:
            number += 1
            shown.append(_contest(contest, drawn, traced, number))
        found.append(
            WorkloadView(
                anchor=anchor,
                heading=heading(workload),
                about=_about(workload, drawn.gains),
                overview=(
                    *overview.panels(members, drawn.gains, anchor),
                    *series.panels(mine, rows, anchor),
                    *sharing.panels(mine, drawn.gains, anchor),
                ),
                tables=_tables(members, mine, rows, drawn.gains),
                contests=tuple(shown),
                apart=tables.apart_table(members, [view.heading for view in shown]),
            )
        )
    return tuple(found)


def _about(workload: str, gains: Sequence[Speedup]) -> str:
    plain = words.WORKLOAD_ABOUT.get(workload, f"Workload {words.clean(workload, 60)}.")
    return " ".join([plain, *modes.sentences([one for one in gains if one.of.key.workload == workload])])


def _tables(
    contests: Sequence[Contest], cells: Sequence[Cell], failed: Sequence[Row], gains: Sequence[Speedup]
) -> tuple[Table, ...]:
    found = [
        overview.table(contests, gains),
        *sharing.tables(cells, gains),
        profiles.table(cells),
        series.table(cells, failed),
    ]
    return tuple(table for table in found if table is not None)


def _contest(contest: Contest, drawn: Drawn, traced: Mapping[str, Panel], number: int) -> ContestView:
    anchor, claims = f"f-{number}", drawn.claims
    cells = [line.cell for line in contest.lines]
    own = [gain for gain in drawn.gains if any(gain.of is cell for cell in cells)]
    published = [claim for claim in claims.claims if matching.published_gain(claim, own)]
    behind = [curve for curve in claims.curves_for(contest.base.workload) if matching.behind(curve, cells)]
    return ContestView(
        anchor=anchor,
        number=number,
        heading=_heading(contest),
        setting=_setting(contest),
        badges=labels.badges(contest),
        panels=(*figures.panels(contest, own, published, anchor), *curves.panels(contest, behind, anchor)),
        table=tables.contest_table(contest, own),
        states=states.table(contest, drawn.parities, drawn.gates),
        trials=traces.table(contest),
        traces=tuple(traced[row.path] for row in _rows(contest) if row.path in traced),
        untraced=_untraced(contest, traced),
        notes=_notes(contest),
        provenance=tables.provenance(contest),
    )


def _notes(contest: Contest) -> tuple[str, ...]:
    notes = [f"{name} differs: {' | '.join(values)}" for name, values in contest.stacks]
    stacks = dict.fromkeys(claim.stack for claim in contest.published if claim.stack)
    notes += [f"The published figures stand on another stack: {stack}" for stack in stacks]
    cleaned = [words.clean(said, 300) for said in notes]
    return (*cleaned, *tables.projections(contest))


def _rows(contest: Contest) -> list[Row]:
    return [row for line in contest.lines for row in line.cell.rows]


def _untraced(contest: Contest, traced: Mapping[str, Panel]) -> str:
    left = sum(row.path not in traced for row in _rows(contest))
    if not left:
        return ""
    return (
        f"{words.count(left, 'trial')} of this chart not drawn, to keep the page small; the records hold all."
    )


def _heading(contest: Contest) -> str:
    base = contest.base
    batch = f", batch {base.batch_size}" if base.batch_size else ""
    stacks = ", on different stacks" if contest.stacks else ""
    return f"{names.model(base.model)}{batch}, {base.data_mode} data{names.setting(base)}{stacks}"


def _setting(contest: Contest) -> str:
    base, length = contest.base, contest.length
    batches = {line.cell.key.batch_size for line in contest.lines}
    steps = f" of {words.count(length.steps_per_epoch, 'step')}" if len(batches) == 1 else ""
    size = f", {base.image_size} px" if base.image_size else ""
    size += f", sequences of {base.sequence_length}" if base.sequence_length else ""
    options = "".join(f", {name} {value}" for name, value in base.options)
    batch = f", batch {min(batches)}" if len(batches) == 1 else ", the batch as published for each precision"
    return words.clean(
        f"Protocol {base.protocol}: {words.count(length.epochs, 'epoch')}{steps}{batch}{size}{options}. "
        f"Data: {base.data_source}, {base.data_mode} ({words.DATA_MODE_WORDS[base.data_mode]}).",
        400,
    )
