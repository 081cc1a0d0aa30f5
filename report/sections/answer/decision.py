"""A table of every line of every group, short enough to stand in a comment."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.comparisons import cells
from report.comparisons.cells import Cell, standing
from report.comparisons.groups import ComparisonGroup, Entry
from report.comparisons.speedups import Speedup
from report.sections import names
from report.sections.view import Table, tabled
from report.sections.workloads import tables
from report.trials.key import Key
from report.trials.pairs import each_nearest_the_card
from report.trials.trial import Trial

MOST_DECISION_ROWS = 24


def decision(groups: Sequence[ComparisonGroup], gains: Sequence[Speedup]) -> Table | None:
    """One row per line of every group, the leading session's first."""
    chosen = [(group, entry) for group in groups for entry in group.entries]
    caption = (
        "The figures to decide by. Total: seconds for the whole protocol, with its 95 % interval. "
        "Time-scaled: the total over the fastest measured line's, or the baseline's."
    )
    if len(chosen) > MOST_DECISION_ROWS:
        near = [nearest[0] for nearest in each_nearest_the_card(groups, lambda group: group.base)]
        brief = [(group, line) for group in near for line in _brief(group)][:MOST_DECISION_ROWS]
        caption += (
            f" {len(brief)} of {len(chosen)} lines: of each work fp32-ieee and the fastest, in the data mode "
            "nearest the card."
        )
        chosen = brief
    drawn = [line.cell for _, line in chosen]
    alike = len({cell.card for cell in drawn}) < len({(cell.card, cell.machine) for cell in drawn})
    among = [group.base for group in groups]
    rows = [_decision_row(group, line, gains, among, alike=alike) for group, line in chosen]
    keys = [(cells.unit_of(cell), cell.key.precision) for cell in drawn]
    rows += [_failed_row(group, trial, among) for group in groups for trial in group.failed]
    failed = [trial for group in groups for trial in group.failed]
    keys += [(text.unit_name(trial.card, trial.machine_label), trial.key.precision) for trial in failed]
    if not rows:
        return None
    return tabled(caption, rows, keys)


def _brief(group: ComparisonGroup) -> list[Entry]:
    """The strict baseline with the most runs, and the reference that all are scaled to."""
    strict = [entry for entry in group.entries if entry.cell.key.precision == "fp32-ieee" and entry.own]
    strict.sort(key=lambda line: line.cell.seconds.n, reverse=True)
    fastest = [group.reference] if group.reference else []
    return [entry for entry in group.entries if entry in [*strict[:1], *fastest]]


def _decision_row(
    group: ComparisonGroup, entry: Entry, gains: Sequence[Speedup], among: Sequence[Key], *, alike: bool
) -> dict[str, str]:
    """`alike` cards are told apart by their machines, which then come first: the sheet has room for one."""
    cell = entry.cell
    unit = (text.short_card(cell.card), text.clean(cell.machine_label, 24))
    strict = next((g for g in gains if g.of is cell and g.over.key.precision == "fp32-ieee"), None)
    return {
        "Work": _work(group.base, among) + names.setting(group.base),
        "Card": "\n".join(reversed(unit) if alike else unit),
        "Precision": cell.key.precision,
        "Batch": str(cell.key.batch_size),
        "Total": tables.total(cell),
        "Time-scaled": names.scaled(entry),
        "Against fp32-ieee": names.gain(strict),
        "Quality": _quality(group, cell),
        "Standing": f"n = {cell.seconds.n or cell.throughput.n}\n{standing(cell)}",
    }


def _quality(group: ComparisonGroup, cell: Cell) -> str:
    """The quality at the protocol's end; of the whole run of the same key where this line has none."""
    same = [entry.cell for entry in group.entries if entry.cell.key == cell.key and entry.own]
    for candidate in (cell, *same):
        if candidate.quality.mean is not None and not candidate.trials[0].validated:
            return text.quality(candidate.trials[0].quality_name, candidate.quality.mean)
    return "–"


def _work(key: Key, among: Sequence[Key]) -> str:
    under = names.apart(key, among, said=("batch_size", "data_mode"))
    return f"{text.model_name(key.model)}, {key.data_mode}{under}"


def _failed_row(group: ComparisonGroup, trial: Trial, among: Sequence[Key]) -> dict[str, str]:
    assert trial.failure is not None
    return {
        "Work": _work(group.base, among),
        "Card": f"{text.short_card(trial.card)}\n{text.clean(trial.machine_label, 24)}",
        "Precision": trial.key.precision,
        "Batch": str(trial.key.batch_size),
        "Total": text.failure_words(trial.failure.reason),
        **dict.fromkeys(("Time-scaled", "Against fp32-ieee", "Quality"), "–"),
        "Standing": f"repeat {trial.repeat}",
    }
