"""What each question gives to the frame of page one: its headline, picture, table, notes and next step."""

from __future__ import annotations

from collections.abc import Sequence

from report import text
from report.analysis import Analysis
from report.compare.cells import Cell, time_breakdown
from report.page.filters import work_name
from report.page.values import Sentence
from report.stats.intervals import BLOCKS_NEEDED
from report.trials.key import LOADER_ALONE

FIRST = "invoke build run report"


def limiting_shares(cells: Sequence[Cell]) -> Sentence:
    """Return where a step goes in the work that computes least, and what a faster device would gain."""
    trained = [cell for cell in cells if cell.key.protocol != LOADER_ALONE]
    known = [(breakdown, cell) for cell in trained if (breakdown := time_breakdown(cell)) is not None]
    if not known:
        return Sentence("limits-unknown" if trained or not cells else "limits-loader")
    parts, cell = min(known, key=lambda each: each[0].compute)
    device = cell.trials[0].record.trial.asked.device
    return Sentence("limits", {"work": work_name(cell, trained), "parts": parts, "device": device})


def repeat_line(analysis: Analysis) -> Sentence:
    """The line that measures the leading session once more, in blocks of time until it has three."""
    own = analysis.own
    if analysis.request.longer:
        return Sentence("next-longer", {"commands": (analysis.request.longer,)})
    if not own:
        return Sentence("next-first", {"commands": (FIRST,)})
    first = own[0].record
    plan, image = text.clean(first.plan, 64), text.clean(first.environment.image, 64)
    line = f"invoke run --plan {plan} --image {image} --new-session"
    if max(trial.record.block for trial in own) < BLOCKS_NEEDED:
        return Sentence("next-blocks", {"commands": (f"{line} --blocks {BLOCKS_NEEDED}",)})
    return Sentence("next-again", {"commands": (line,)})


def runs_of(cells: Sequence[Cell]) -> tuple[int, int]:
    """Return the fewest and the most processes behind a figure."""
    counts = [n for cell in cells if (n := len(cell.all_runs.values))]
    return min(counts, default=0), max(counts, default=0)
