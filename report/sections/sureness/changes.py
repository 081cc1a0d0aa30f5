"""What would change the answer: other units, other shares, more runs, a loader that keeps up."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, stdev

from report import text
from report.comparisons.cells import Cell, side_by_side
from report.comparisons.expectation import Expectation
from report.sections import names
from report.stats.intervals import ASSUMED_BLOCK_SPREAD, BLOCKS_NEEDED, HEADLINE_RUNS, Ranking, runs_needed


def would_change(expectations: Sequence[Expectation]) -> tuple[str, ...]:
    """What would change the answer: other units, other shares, more runs, a loader that keeps up."""
    if not expectations or expectations[0].units is None or expectations[0].model is None:
        return ()
    first = expectations[0]
    if first.ranking is Ranking.FIRST_LOOK:
        longer = "Longer tests: these are too short, or their data is generated, so nothing is ranked yet."
        return tuple(sentence for sentence in (longer, _waiting(first)) if sentence)
    mix = mix_sentence(first) if first.ranking is Ranking.RANKED else ""
    sentences = [_units(first), mix, _runs(first), _waiting(first)]
    return tuple(sentence for sentence in sentences if sentence)


def _units(expectation: Expectation) -> str:
    assert expectation.units is not None and expectation.model is not None
    if not expectation.model.includes(1.0):
        known = expectation.band.label.removeprefix("unit-to-unit, ")
        least = f"{text.times(expectation.model.low)} times as fast as"
        return f"Units of one model differ in speed ({known}). Even {_slow_and_fast(expectation, least)}."
    if expectation.units.includes(1.0):
        return "These two units cannot be told apart, so other units may turn it either way."
    return (
        f"Other units may turn it: these two differ, but two others of their models need not "
        f"({expectation.band.label})."
    )


def _slow_and_fast(expectation: Expectation, than: str) -> str:
    """'a slow unit of the A would be 1.2 times as fast as a fast one of the B'"""
    fast, slow = (text.the(system.name) for system in (expectation.fast, expectation.slow))
    if expectation.fast.card != expectation.slow.card:
        return f"a slow unit of {fast} would be {than} a fast one of {slow}"
    fast, slow = ("this one" if name == text.THIS else name for name in (fast, slow))
    return f"a slow machine like {fast} would be {than} a fast one like {slow}"


def mix_sentence(expectation: Expectation) -> str:
    """Where works disagree: the share of the slower side's time from which on the answer turns."""
    gains = [(1 / work.ratio.estimate, work) for work in expectation.benchmarks]
    worst, best = max(gains, key=lambda pair: pair[0]), min(gains, key=lambda pair: pair[0])
    if len(gains) < 2:
        return "Only one kind of work was compared; another may give another answer."
    if worst[0] <= 1:
        return f"No mix of these kinds of work makes {text.the(expectation.slow.name)} the faster."
    if best[0] >= 1:
        return ""
    share = (1 - best[0]) / (worst[0] - best[0])
    among = [work.of for work in expectation.benchmarks]
    of, over = (names.work(each[1].of, among) for each in (worst, best))
    return f"With more than {share:.0%} of {of} beside {over} it turns."


def _runs(expectation: Expectation) -> str:
    """How many runs would make these two units' interval leave 1; their spread is what the runs showed."""
    assert expectation.units is not None
    blocks = min(min(work.of.blocks, work.over.blocks) for work in expectation.benchmarks)
    fewest = min(min(work.ratio.n) for work in expectation.benchmarks)
    if not expectation.units.includes(1.0):
        if blocks < 3:
            return "A machine's hours and days differ: three blocks an hour apart would show by how much."
        return ""
    width = abs(expectation.best - 1)
    spread = max(_cv(cell) for cell in expectation.cells)
    if width < 0.002 or not spread:
        return f"More than {fewest} runs a side would narrow the interval."
    apart = blocks < BLOCKS_NEEDED and not all(side_by_side(w.of, w.over) for w in expectation.benchmarks)
    needed = runs_needed(spread, width, block_spread=ASSUMED_BLOCK_SPREAD if apart else 0.0)
    if needed is None:
        return "Runs alone would not tell it: three blocks an hour apart on each machine might."
    if needed <= HEADLINE_RUNS:
        needed = max(needed, fewest + 1)
        return f"About {needed} runs a side would tell a difference of this size in four of five cases."
    return f"A difference of this size needs about {needed} runs a side to be told in four of five cases."


def _cv(cell: Cell) -> float:
    values = cell.seconds.values or cell.throughput.values
    return stdev(values) / fmean(values) if len(values) > 1 else 0.0


def _waiting(expectation: Expectation) -> str:
    waits = [(work.of.input_share.mean or 0.0, work) for work in expectation.benchmarks]
    share, work = max(waits, key=lambda pair: pair[0], default=(0.0, None))
    if work is None or share <= 0.1:
        return ""
    what = names.work(work.of, [other.of for other in expectation.benchmarks])
    return (
        f"A loader that keeps up: {expectation.fast.name} waited for input {share:.0%} of the time on {what}."
    )
