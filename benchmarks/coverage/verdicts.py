"""Verdicts on published figures: how often each is wrong where the truth lies at its margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from benchmarks.coverage.cases import Case, Draw, Generator, Target
from benchmarks.coverage.samples import BLOCK_CV, CV, in_blocks, lognormal, runs, scaled
from report.stats.equivalence import Verdict, equivalence, order_holds, ratio_holds
from report.text import percent

WRONG = Target(high=5)
MOSTLY = Target(95)
MARGIN = 0.05
Judge = Callable[[Generator], Verdict]


def wrong(name: str, words: Sequence[str], judged: Judge) -> list[Case]:
    """How often each of the words is said where neither is true."""

    def case(word: str) -> Case:
        def draw(rng: Generator) -> Draw:
            verdict = judged(rng)
            return Draw(verdict.word == word, verdict.blocks_assumed is not None)

        return Case(f"{name}: '{word}'", WRONG, draw)

    return [case(word) for word in words]


def right(name: str, word: str, judged: Judge) -> Case:
    """How often the true verdict is said."""
    return Case(f"{name}: '{word}'", MOSTLY, lambda rng: Draw(judged(rng).word == word))


def order(lengths: Sequence[int], block_cv: float = BLOCK_CV) -> Judge:
    """Of two equal cards in two machines."""

    def judged(rng: Generator) -> Verdict:
        return order_holds(*(in_blocks(rng, lengths, block_cv=block_cv) for _ in range(2)), "less")

    return judged


def ratio(lengths: Sequence[int], truth: float, *, paired: bool = False) -> Judge:
    """Of a ratio published as 1, which is `truth`."""

    def judged(rng: Generator) -> Verdict:
        effects = rng.normal(0, 0.01, len(lengths)) if paired else None
        of, over = (in_blocks(rng, lengths, effects=effects) for _ in range(2))
        return ratio_holds(scaled(of, truth), over, 1.0, MARGIN, paired=paired)

    return judged


def absolute(lengths: Sequence[int], truth: float, *, other_unit: float = 0.0) -> Judge:
    """Of a figure published as 1, which is `truth`."""
    return lambda rng: equivalence(scaled(in_blocks(rng, lengths), truth), 1.0, MARGIN, other_unit=other_unit)


def published_spread(published_runs: int, n: int, truth: float) -> Judge:
    """Of a figure that is itself the mean of a few runs, with their standard deviation."""

    def judged(rng: Generator) -> Verdict:
        theirs = lognormal(2 * CV)(rng, published_runs)
        return equivalence(
            runs(truth * lognormal()(rng, n)),
            float(theirs.mean()),
            MARGIN,
            spread=float(theirs.std(ddof=1)),
            runs=published_runs,
        )

    return judged


def rounded(n: int, truth: float) -> Judge:
    """Of a figure of two digits: the source's own value lies anywhere within half of the last one."""

    def judged(rng: Generator) -> Verdict:
        hidden = rng.uniform(1.95, 2.05)
        return equivalence(runs(truth * hidden * lognormal()(rng, n)), 2.0, MARGIN, half_digit=0.05)

    return judged


EDGE = 1 + MARGIN
HERE, FIGURE = ("holds here", "does not hold here"), ("reproduced", "not reproduced")
LENGTHS = {"3 blocks of 4": (4, 4, 4), "1 block of 5": (5,), "3 blocks of 8, 2 and 2": (8, 2, 2)}

CASES = [
    *(
        case
        for name in ("1 block of 5", "3 blocks of 4")
        for block_cv in (0.02, 0.03)
        for case in wrong(
            f"order of equal cards, {name}, block CV {percent(block_cv)}",
            HERE,
            order(LENGTHS[name], block_cv),
        )
    ),
    *(
        case
        for name, lengths in LENGTHS.items()
        for case in (
            *wrong(f"order of equal cards, {name}", HERE, order(lengths)),
            *wrong(f"a ratio at its margin, two machines, {name}", HERE, ratio(lengths, EDGE)),
            *wrong(f"a ratio at its margin, one machine, {name}", HERE, ratio(lengths, EDGE, paired=True)),
            *wrong(f"a figure at its margin, {name}", FIGURE, absolute(lengths, EDGE)),
        )
    ),
    right("a ratio as published, one machine, 3 blocks of 4", HERE[0], ratio((4,) * 3, 1, paired=True)),
    right("a ratio as published, two machines, 3 blocks of 4", HERE[0], ratio((4,) * 3, 1)),
    *(
        case
        for theirs in (2, 3, 5)
        for case in wrong(
            f"a figure at its margin, published with the spread of {theirs} runs, n = 10",
            FIGURE,
            published_spread(theirs, 10, EDGE),
        )
    ),
    *wrong("a figure at its margin, published with two digits, n = 10", FIGURE, rounded(10, EDGE)),
]
