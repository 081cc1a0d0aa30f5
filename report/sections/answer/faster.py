"""Which of two systems, or of several frameworks, is the faster, and by how much."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from report import text
from report.analysis import Analysis
from report.comparisons.expectation import Expectation
from report.sections.answer import headline
from report.sections.answer.lead import subject
from report.sections.names import work
from report.sections.sureness.changes import mix_sentence
from report.sections.workloads.frameworks import section as frameworks
from report.stats.intervals import Ranking

MOST_NAMED = 3


def faster(analysis: Analysis) -> Iterator[str]:
    """The best estimate with both ranges, and on which work the two tie."""
    ranks = frameworks.leading(analysis)
    if ranks is not None and subject(analysis) == "frameworks":
        yield frameworks.brief_times(ranks)
        return
    if not analysis.expectations:
        yield "No second card or machine did this work. `invoke report --bundle FILE` adds others."
        return
    first = analysis.expectations[0]
    fast, slow = text.the(first.fast.name), text.the(first.slow.name)
    if first.units is None or first.model is None:
        yield f"Single runs give no range: {fast} took {text.times(1 / first.best)} of {slow}'s time."
        return
    if first.ranking is Ranking.FIRST_LOOK:
        yield "This is a first look, and no ranking."
    yield (
        f"{_speed(first)} These two units: {headline.between(first.units)} times; "
        f"{headline.other_units(first)}: {headline.between(first.model)} times, both with 95 % confidence."
    )
    if first.ranking is Ranking.RANKED:
        yield _ties(first)
        if subject(analysis) == "costs" and (mix := mix_sentence(first)):
            yield mix
    others = len(analysis.expectations) - 1
    if others:
        yield f"{text.count(others, 'more pair')} of systems stand below."


def _speed(first: Expectation) -> str:
    fast, slow = text.the(first.fast.name), text.the(first.slow.name)
    if first.ranking is Ranking.FIRST_LOOK and first.vague:
        return f"Runs lie too far apart to say how much faster {fast} is than {slow}."
    if first.ranking is Ranking.TIED:
        return f"No difference is shown between {fast} and {slow}. The speed of the first over the second:"
    return f"{text.sentence(fast)} is {text.times(first.best)} times as fast as {slow}."


def _ties(first: Expectation) -> str:
    """On which work the two tie or change places."""
    among = [benchmark.of for benchmark in first.benchmarks]
    tied = [work(benchmark.of, among) for benchmark in first.benchmarks if benchmark.ratio.tied]
    slower = [
        work(benchmark.of, among)
        for benchmark in first.benchmarks
        if benchmark.ratio.estimate < 1 and not benchmark.ratio.tied
    ]
    if not (tied or slower) and len(among) > 1:
        each = "both" if len(among) == 2 else f"all {len(among)}"
        return f"It is faster on {each} kinds of work, with no tie."
    lost = f"It is slower on {some(slower)}" if slower else ""
    even = f"they tie on {some(tied)}" if tied else "they tie on none"
    return f"{lost}; {even}." if lost else f"{text.sentence(even)}."


def some(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """The first of different names, and how many more there are."""
    unique = list(dict.fromkeys(names))
    more = len(unique) - most
    shown = ", ".join(unique[:most])
    return f"{shown} and {more} more" if more > 0 else shown
