"""How sure page one is, in one word with its reason, and what happened to its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from harness.record import Finding
from harness.record.finding import label
from harness.summary import circumstances
from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell, runs_of_figures
from report.sections.answer.memory import on
from report.sections.names import work
from report.stats.intervals import BLOCKS_NEEDED, FLOOR_RUNS, HEADLINE_RUNS
from report.trials.trial import Trial

MOST_NAMED = 3


def sure(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[str]:
    """Confidence with its reason, what is not shown, where doubt is greatest, and what disturbed the runs."""
    word, because = confidence(cells)
    yield f"{word}: {because}."
    left_out = sum(len(cell.unproven_left_out) for cell in cells)
    if left_out:
        are = "is" if left_out == 1 else "are"
        yield f"{text.count(left_out, 'more run')} {are} left out: no settled speed was seen."
    if any(cell.length.projected and cell.seconds.n for cell in cells):
        yield "Times of the whole training are worked out from a part of it."
    if analysis.accounts:
        account = analysis.accounts[0]
        gone = dict(account.fates)
        told = account.shown + gone.get("failed", 0) + gone.get("invalid", 0)
        if account.sessions_shown < account.sessions or told < account.started:
            others = (
                f"; not shown: {text.joined(account.not_shown[:MOST_NAMED])}" if account.not_shown else ""
            )
            yield f"{account.in_brief().removesuffix('.')}{others}."
    widest = max((cell for cell in cells if cell.throughput.interval), key=_half_width, default=None)
    if widest is not None and (interval := widest.throughput.interval):
        unit = text.clean(widest.trials[0].sample_unit, 20)
        values = widest.throughput.values
        apart = text.percent((max(values) - min(values)) / interval.estimate)
        yield (
            f"Doubt is greatest for {work(widest, cells)}{on(analysis, widest)}. Its "
            f"{text.count(len(values), 'run')} differ by up to {apart}, so its mean lies between "
            f"{text.number(interval.low)} and {text.number(interval.high)} {unit}s a second, at 95 %."
        )
    if cells and all(cell.key.data_source == "real" for cell in cells):
        yield "All training data is real."
    trials = {trial.path: trial for cell in cells for trial in cell.trials}
    trials |= {trial.path: trial for trial in analysis.own if trial.failure is None}
    yield from _spoiled([*trials.values()], on(analysis, cells[0]) if cells else "")


def _half_width(cell: Cell) -> float:
    interval = cell.throughput.interval
    return (interval.high - interval.low) / interval.estimate if interval else 0.0


def confidence(cells: Sequence[Cell]) -> tuple[str, str]:
    """One word for how far the figures carry, and why it is no better."""
    counts, blocks = runs_of_figures(cells), max((cell.blocks for cell in cells), default=0)
    fewest, most = min(counts, default=0), max(counts, default=0)
    few = fewest < FLOOR_RUNS
    runs = (
        f"{text.count(fewest, 'run')} to each figure"
        if fewest == most
        else f"{fewest} to {most} runs to a figure"
    )
    runs += f" (at least {FLOOR_RUNS} are wanted)" if few else ""
    each = " on each machine" if len({cell.machine for cell in cells}) > 1 else ""
    sittings = f"from one sitting{each}" if blocks <= 1 else f"from {blocks} sittings an hour apart"
    weak = [
        (any(cell.verdict == "unproven" for cell in cells), "tests too short to have settled"),
        (any(cell.key.data_source == "generated" for cell in cells), "generated data in part"),
    ]
    reasons = [reason for applies, reason in weak if applies]
    if few or reasons:
        return "Weak", ", ".join((runs, sittings, *reasons))
    if fewest < HEADLINE_RUNS or blocks < BLOCKS_NEEDED:
        return (
            "Fair",
            f"{runs}, {sittings}; {HEADLINE_RUNS} runs in {BLOCKS_NEEDED} sittings are wanted to decide by",
        )
    return "Good", f"{runs}, {sittings}"


def _spoiled(trials: Sequence[Trial], where: str) -> Iterator[str]:
    """Invalid trials with their causes, and what disturbed the others; `where` names one machine."""
    invalid = [trial for trial in trials if trial.verdict == "invalid"]
    if invalid:
        causes = Counter(label(cause) for trial in invalid for cause in trial.causes)
        named = ", ".join(f"{text.clean(cause, 40)} ({n})" for cause, n in causes.most_common(MOST_NAMED))
        of = text.count(len(trials), "trial")
        yield f"Invalid, and counted nowhere: {len(invalid)} of {of}, by {named}."
    elif len(trials) == 1:
        yield "The one finished trial is not invalid."
    elif trials:
        machines = len({trial.machine for trial in trials})
        of = f" of {machines} machines" if machines > 1 else where
        yield f"None of the {len(trials):,} finished trials{of} is invalid."
    counted = [() if trial.verdict == "invalid" else _told(trial) for trial in trials]
    met = circumstances.of_findings(counted)
    yield from (f"{text.clean(sentence, 120)}." for sentence in met[:MOST_NAMED])


def _told(trial: Trial) -> tuple[Finding, ...]:
    """What disturbed a trial, without what the confidence says already."""
    return tuple(found for found in trial.causes if found.name not in ("short-window", "generated-data"))
