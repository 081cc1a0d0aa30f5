"""The decision table, and what is in doubt."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from report import text
from report.comparisons.cells import Cell
from report.comparisons.groups import Contest, Line
from report.comparisons.parity import Parity
from report.comparisons.speedups import Speedup
from report.sections import names, tables
from report.sections.names import standing
from report.sections.view import Badge, Table
from report.stats.intervals import BLOCKS_NEEDED, outlying_run, unequal_spread
from report.trials.pairs import each_nearest_the_card
from report.trials.trial import Trial

MOST_DECISION_ROWS = 24


def decision(contests: Sequence[Contest], gains: Sequence[Speedup]) -> Table | None:
    """One row per line of every contest, the leading session's first."""
    chosen = [(contest, line) for contest in contests for line in contest.lines]
    caption = (
        "The figures to decide by. Total: seconds for the whole protocol, with its 95 % interval. "
        "Time-scaled: the total over the reference's, which is 1.00."
    )
    if len(chosen) > MOST_DECISION_ROWS:
        near = _nearest_the_card(contests)
        brief = [(contest, line) for contest in near for line in _brief(contest)][:MOST_DECISION_ROWS]
        caption += (
            f" {len(brief)} of {len(chosen)} lines: of each work fp32-ieee and the fastest, in the data mode "
            "nearest the card."
        )
        chosen = brief
    alike = len({line.cell.card for _, line in chosen}) < len({_unit(line.cell) for _, line in chosen})
    rows = [_decision_row(contest, line, gains, alike=alike) for contest, line in chosen]
    keys = [(names.unit_of(line.cell), line.cell.key.precision) for _, line in chosen]
    rows += [_failed_row(contest, trial) for contest in contests for trial in contest.failed]
    keys += [
        (names.unit(trial.card, trial.machine_label), trial.key.precision)
        for c in contests
        for trial in c.failed
    ]
    if not rows:
        return None
    columns = (
        "Work",
        "Card",
        "Precision",
        "Batch",
        "Total",
        "Time-scaled",
        "Against fp32-ieee",
        "Quality",
        "Standing",
    )
    return Table(caption, columns, tuple(rows), tuple(keys))


def _nearest_the_card(contests: Sequence[Contest]) -> list[Contest]:
    """Of contests that differ in their data mode alone, the one that shows the card best."""
    return [nearest[0] for nearest in each_nearest_the_card(contests, lambda contest: contest.base)]


def _brief(contest: Contest) -> list[Line]:
    """The strict baseline with the most runs, and the reference that all are scaled to."""
    strict = [line for line in contest.lines if line.cell.key.precision == "fp32-ieee" and line.own]
    strict.sort(key=lambda line: line.cell.seconds.n, reverse=True)
    fastest = [contest.reference] if contest.reference else []
    return [line for line in contest.lines if line in [*strict[:1], *fastest]]


def _unit(cell: Cell) -> tuple[str, str]:
    return cell.card, cell.machine


def _decision_row(contest: Contest, line: Line, gains: Sequence[Speedup], *, alike: bool) -> tuple[str, ...]:
    """`alike` cards are told apart by their machines, which then come first: the sheet has room for one."""
    cell = line.cell
    told = (names.short_card(cell.card), text.clean(cell.machine_label, 24))
    strict = next((g for g in gains if g.of is cell and g.over.key.precision == "fp32-ieee"), None)
    total = text.seconds(cell.seconds.mean)
    total += f"\n{tables.beneath_total(cell)}" if cell.seconds.n else ""
    return (
        f"{names.model(contest.base.model)}, {contest.base.data_mode}{names.setting(contest.base)}",
        "\n".join(reversed(told) if alike else told),
        cell.key.precision,
        str(cell.key.batch_size),
        total,
        names.scaled(line),
        names.gain(strict),
        _quality(contest, cell),
        f"n = {cell.seconds.n or cell.throughput.n}\n{standing(cell)}",
    )


def _quality(contest: Contest, cell: Cell) -> str:
    """The quality at the protocol's end; of the whole run of the same key where this line has none."""
    same = [line.cell for line in contest.lines if line.cell.key == cell.key and line.own]
    for one in (cell, *same):
        if one.quality.mean is not None and not one.trials[0].validated:
            return text.quality(one.trials[0].quality_name, one.quality.mean)
    return "–"


def _failed_row(contest: Contest, trial: Trial) -> tuple[str, ...]:
    assert trial.failure is not None
    return (
        f"{names.model(contest.base.model)}, {contest.base.data_mode}",
        f"{names.short_card(trial.card)}\n{text.clean(trial.machine_label, 24)}",
        trial.key.precision,
        str(trial.key.batch_size),
        names.failure(trial.failure.reason),
        *("–",) * 3,
        f"repeat {trial.repeat}",
    )


def doubts(
    contests: Sequence[Contest],
    gains: Sequence[Speedup],
    badges: Sequence[Badge],
    trials: Sequence[Trial],
    parities: Sequence[Parity],
    *,
    now: datetime,
    baseline: str | None,
) -> tuple[str, ...]:
    """What a careful reader would ask, answered before it is asked."""
    found = [f"{badge.word}: {badge.because}." for badge in badges]
    failed = sum(trial.failure is not None for trial in trials)
    if failed:
        found.append(
            f"{text.count(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} listed below."
        )
    if any(line.cell.units and len(line.cell.units) < 3 for c in contests for line in c.lines):
        found.append("One or two units of a card were measured: cards of one model differ by 8 % and more.")
    if tables.unchecked(parities):
        found.append("Mixed precision: speed only, convergence not checked, where the table says so.")
    found += _blocks(contests)
    found += _odd_runs(contests, gains)
    for contest in contests:
        if contest.baseline_missing and baseline is not None:
            found.append(
                f"The baseline '{text.clean(baseline, 40)}' does not stand in "
                f"{names.model(contest.base.model)}, which is scaled to its fastest line."
            )
    late = sum(trial.started_at > now + timedelta(days=1) for trial in trials)
    if late:
        found.append(f"{text.count(late, 'record')} dated after this page was written.")
    return tuple(dict.fromkeys(found))


def _blocks(contests: Sequence[Contest]) -> list[str]:
    """Intervals that leave out what another hour or day would change."""
    intervals = [line.cell.seconds.interval for c in contests for line in c.lines]
    fewest = min((line.cell.blocks for c in contests for line in c.lines), default=BLOCKS_NEEDED)
    if fewest >= BLOCKS_NEEDED or not any(intervals):
        return []
    count = "within one block" if fewest == 1 else f"within {fewest} blocks"
    return [
        f"Intervals stand {count} of time: what another hour or day would change is not in them; "
        f"{BLOCKS_NEEDED} blocks an hour apart would show it."
    ]


def _odd_runs(contests: Sequence[Contest], gains: Sequence[Speedup]) -> list[str]:
    """Runs that stand apart and sides that scatter unequally: their intervals cover less than they say."""
    found = []
    for contest in contests:
        for line in contest.lines:
            said = outlying_run(line.cell.seconds.values)
            if said:
                found.append(f"{_place(line.cell)}: {said}.")
    for gain in gains:
        said = unequal_spread(gain.of.seconds.values, gain.over.seconds.values)
        if said:
            found.append(f"{_place(gain.of)} over {gain.over.key.precision}: {said}.")
    return found


def _place(cell: Cell) -> str:
    return f"{names.model(cell.key.model)}, {cell.key.data_mode}, {cell.key.precision}"
