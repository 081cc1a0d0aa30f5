"""What is in doubt: how far the figures carry, and what a careful reader would ask."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from report import text
from report.analysis import Analysis
from report.comparisons import cells
from report.comparisons.account import Account
from report.comparisons.cells import Cell
from report.comparisons.groups import ComparisonGroup
from report.comparisons.speedups import Speedup
from report.sections.view import Badge
from report.sections.workloads import tables
from report.stats.intervals import (
    ASSUMED_BLOCK_SPREAD,
    BLOCKS_NEEDED,
    FLOOR_RUNS,
    outlying_run,
    rare_runs_missed,
    unequal_spread,
)


def sureness(groups: Sequence[ComparisonGroup]) -> str:
    """How far the sentence carries: runs, blocks, and that one card is not its model."""
    own = [entry.cell for group in groups for entry in group.entries if entry.own]
    if not own:
        return ""
    fewest = cells.fewest_runs(own)
    blocks = max(cell.blocks for cell in own)
    least = "as few as" if fewest < FLOOR_RUNS else "at least"
    sitting = "from one sitting; another day may differ"
    sittings = sitting if blocks == 1 else f"from {blocks} sittings an hour apart"
    sentences = [f"Each figure averages {least} {text.count(fewest, 'run')} {sittings}."]
    if any(cell.verdict == "unproven" for cell in own):
        sentences.append("Windows too short to show a settled speed are shown, never ranked.")
    if any(cell.key.data_source == "generated" for cell in own):
        sentences.append("Part of it stands on GENERATED data.")
    return " ".join([*sentences, "All of it speaks of this card, not of every card of its model."])


def caveats(analysis: Analysis, badges: Sequence[Badge]) -> tuple[str, ...]:
    """What a careful reader would ask, answered before it is asked."""
    groups, trials, baseline = analysis.groups, analysis.own, analysis.question.baseline
    sentences = [f"{badge.word}: {badge.because}." for badge in badges]
    failed = sum(trial.failure is not None for trial in trials)
    if failed:
        sentences.append(
            f"{text.count(failed, 'trial')} failed and {'is' if failed == 1 else 'are'} under “What failed?”."
        )
    if any(entry.cell.units and len(entry.cell.units) < 3 for c in groups for entry in c.entries):
        sentences.append(
            "One or two units of a card were measured: cards of one model differ by 8 % and more."
        )
    if tables.unchecked(analysis.parities):
        sentences.append("Mixed precision: speed only, convergence not checked, where the table says so.")
    sentences += _not_here(analysis.accounts)
    sentences += _blocks(groups)
    missed = rare_runs_missed(cells.fewest_runs([entry.cell for c in groups for entry in c.entries]))
    sentences += [f"{missed}."] if missed else []
    sentences += _odd_runs(groups, analysis.speedups)
    for group in groups:
        if group.baseline_missing and baseline is not None:
            sentences.append(
                f"The baseline '{text.clean(baseline, 40)}' does not stand in "
                f"{text.model_name(group.base.model)}, which is scaled to its fastest line."
            )
    late = sum(trial.started_at > analysis.question.now + timedelta(days=1) for trial in trials)
    if late:
        sentences.append(f"{text.count(late, 'record')} dated after this page was written.")
    return tuple(dict.fromkeys(sentences))


def _not_here(accounts: Sequence[Account]) -> list[str]:
    """What ledgers and numbers of sessions know of and the page has not; the first machine leads the page."""
    labels = ["", *(f"{text.clean(account.label, 40)}: " for account in accounts[1:])]
    return [
        f"{label}{doubt}"
        for label, account in zip(labels, accounts, strict=False)
        for doubt in account.doubts()
    ]


def _blocks(groups: Sequence[ComparisonGroup]) -> list[str]:
    """Intervals that leave out what another hour or day would change."""
    intervals = [entry.cell.seconds.interval for c in groups for entry in c.entries]
    fewest = min((entry.cell.blocks for c in groups for entry in c.entries), default=BLOCKS_NEEDED)
    if fewest >= BLOCKS_NEEDED or not any(intervals):
        return []
    count = "within one block" if fewest == 1 else f"within {fewest} blocks"
    return [
        f"Intervals stand {count} of time. Between machines another hour or day is assumed to change "
        f"{ASSUMED_BLOCK_SPREAD:.0%}, on one machine nothing; {BLOCKS_NEEDED} blocks an hour apart would "
        "show it."
    ]


def _odd_runs(groups: Sequence[ComparisonGroup], gains: Sequence[Speedup]) -> list[str]:
    """Runs that stand apart and sides that scatter unequally: their intervals cover less than they say."""
    sentences = []
    for group in groups:
        for entry in group.entries:
            doubt = outlying_run(entry.cell.seconds.values)
            if doubt:
                sentences.append(f"{_place(entry.cell)}: {doubt}.")
    for gain in gains:
        doubt = unequal_spread(gain.of.seconds.values, gain.over.seconds.values)
        if doubt:
            sentences.append(f"{_place(gain.of)} over {gain.over.key.precision}: {doubt}.")
    return sentences


def _place(cell: Cell) -> str:
    return f"{text.model_name(cell.key.model)}, {cell.key.data_mode}, {cell.key.precision}"
