"""The three notes of page one: how sure it is, what limits the speed, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from harness.summary.bound import speedup_limit
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell, fewest_runs, time_breakdown
from report.page.names import work
from report.page.one.chips import invalid_of, trials_of
from report.page.values import Headline, Quantity, quantity
from report.stats.intervals import BLOCKS_NEEDED
from report.trials.key import LOADER_ALONE

JUDGE_MORE = "invoke run --claims here --budget 2h"
FIRST = "invoke build run report"


def how_sure(analysis: Analysis, cells: Sequence[Cell]) -> Headline:
    """Runs and sessions of a figure, the work that is least certain, and what other units may do."""
    timed = [cell for cell in cells if cell.throughput.interval]
    widest = max(timed, key=lambda cell: cell.throughput.relative_width, default=None)
    compared = analysis.subject in ("costs", "pair")
    pair = analysis.expectations[0] if compared else None
    data = {
        "runs": fewest_runs(cells),
        "blocks": max((cell.blocks for cell in cells), default=1),
        "widest": work(widest, cells) if widest else "",
        "spread": quantity(widest.throughput, "") if widest else None,
        "tied": [each.of.key.model for each in pair.benchmarks if each.ratio.tied] if pair else None,
        "invalid": len(invalid_of(trials_of(analysis, cells))),
        "short": any(cell.verdict == "unproven" for cell in cells),
    }
    return Headline("how-sure", data)


def what_limits(cells: Sequence[Cell]) -> Headline:
    """What the work that waits longest for input waits, and what a device twice as fast would gain."""
    trained = [cell for cell in cells if cell.key.protocol != LOADER_ALONE]
    known = [(breakdown, cell) for cell in trained if (breakdown := time_breakdown(cell)) is not None]
    if not known:
        return Headline("limits-unknown" if trained or not cells else "limits-loader")
    breakdown, cell = max(known, key=lambda each: each[0].input_wait)
    data = {
        "device": cell.trials[0].record.trial.asked.device,
        "waits": Quantity(breakdown.input_wait, "share"),
        "compute": breakdown.compute,
        "twice": quantity(speedup_limit(1 - breakdown.compute)),
        "work": work(cell, trained),
    }
    return Headline("limits", data)


def again(analysis: Analysis, *, each: bool = False) -> Headline:
    """The line that measures the leading session once more, over several hours where it had one."""
    own = analysis.own
    if analysis.question.longer:
        return Headline("next-longer", {"commands": (analysis.question.longer,)})
    blocks = max((trial.record.block for trial in own), default=1)
    line = text.run_again(own[0].record.plan, own[0].record.environment.image) if own else FIRST
    more = blocks < BLOCKS_NEEDED
    line += f" --blocks {BLOCKS_NEEDED}" if more else ""
    return Headline("next-blocks" if more else "next-again", {"commands": (line,), "each": each})


def judge_more(analysis: Analysis) -> Headline:
    """The line that judges more claims here."""
    met = {judged.claim.id for judged in analysis.verdicts if judged.compared}
    waiting = [name for name in analysis.question.ways if name not in met]
    commands = (JUDGE_MORE,)
    return Headline("next-claims", {"commands": commands, "waiting": len(waiting)})
