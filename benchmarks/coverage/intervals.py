"""Intervals of one line and of two: skew, outliers, blocks of time, drift, clocks that round."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from benchmarks.coverage.cases import Case, Draw, Generator, Target
from benchmarks.coverage.samples import (
    BLOCK_CV,
    CV,
    Floats,
    Sample,
    autocorrelated,
    contaminated,
    exponential,
    in_blocks,
    lognormal,
    rounded,
    runs,
    student,
)
from report.stats.intervals import FLOOR_RUNS, Interval, Runs, blocks_interval, rare_runs_missed
from report.text import percent

WELL = Target(94, 97.5)
FAIR = Target(92)
SIZES = (3, 5, 10)
WITHIN, TREND = CV / 2, 0.03


def page(interval: Interval | None, truth: float = 1.0, *, doubt: bool = False) -> Draw:
    """Whether an interval holds the truth, and any doubt of its own or the page's; none at all never errs."""
    if interval is None:
        return Draw(True, True)
    return Draw(interval.includes(truth), doubt or bool(interval.notes))


def two(
    name: str,
    of: Sample,
    over: Sample,
    target: Target,
    sizes: Sequence[int] = SIZES,
    *,
    one_block: bool = False,
    rare: bool = False,
) -> list[Case]:
    """A ratio of two sides whose runs are replicates; or of two machines with `one_block` each.

    The page calls a quick look so. Its sentence on rare slow runs counts where a case is about `rare` ones.
    """

    def case(n: int) -> Case:
        lengths = (n,) if one_block else ()
        doubt = n < FLOOR_RUNS or (rare and rare_runs_missed(n) is not None)

        def draw(rng: Generator) -> Draw:
            interval = blocks_interval(runs(of(rng, n), lengths), runs(over(rng, n), lengths))
            return page(interval, doubt=doubt)

        return Case(f"{name}, n = {n}", target, draw)

    return [case(n) for n in sizes]


def unequal(of_cv: float, over_cv: float) -> Case:
    """A ratio of 3 runs over 10 that scatter otherwise; the page calls it a quick look."""

    def draw(rng: Generator) -> Draw:
        interval = blocks_interval(runs(lognormal(of_cv)(rng, 3)), runs(lognormal(over_cv)(rng, 10)))
        return page(interval, doubt=True)

    name = f"3 runs of a CV of {percent(of_cv)} over 10 of {percent(over_cv)}"
    return Case(name, Target(94), draw)


def sides(
    name: str,
    lengths: Sequence[int],
    target: Target,
    *,
    over_lengths: Sequence[int] | None = None,
    paired: bool = False,
    block_cv: float = BLOCK_CV,
    hours: Callable[[Generator], Sequence[Floats]] | None = None,
) -> Case:
    """A ratio of two equal sides in blocks of time; `paired` ones share what a block does.

    `hours` say otherwise what each side's blocks do.
    """
    both = (lengths, lengths if over_lengths is None else over_lengths)

    def draw(rng: Generator) -> Draw:
        effects: Sequence[Floats | None] = hours(rng) if hours else (None, None)
        if paired and not hours:
            shared = rng.normal(0, block_cv, max(map(len, both)))
            effects = [shared[: len(own)] for own in both]
        of, over = (
            in_blocks(rng, own, block_cv=block_cv, effects=done)
            for own, done in zip(both, effects, strict=True)
        )
        return page(blocks_interval(of, over, paired=paired))

    return Case(name, target, draw)


def own(name: str, lengths: Sequence[int], target: Target, *, speaks_of: str) -> Case:
    """A line's own interval; it `speaks_of` the hours that were measured, or of any hour."""

    def draw(rng: Generator) -> Draw:
        effects = rng.normal(0, BLOCK_CV, len(lengths))
        truth = float(np.exp(effects.mean())) if speaks_of == "these hours" else 1.0
        interval = blocks_interval(in_blocks(rng, lengths, effects=effects), paired=len(lengths) < 3)
        return page(interval, truth)

    return Case(name, target, draw)


def session(rng: Generator, n: int, trend: Floats) -> tuple[Runs, Runs]:
    """Two equal sides of n runs, interleaved at random by pairs, on a machine that changes by `trend`."""
    first = rng.random(n) < 0.5
    of_a = np.stack([first, ~first], axis=-1).ravel()
    values = np.exp(trend + rng.normal(0, CV, 2 * n))
    return runs(values[of_a], [n]), runs(values[~of_a], [n])


def drift(n: int, *, fixed: bool = False) -> Case:
    trend = TREND * np.linspace(0, 1, 2 * n)

    def draw(rng: Generator) -> Draw:
        if fixed:
            values = np.exp(trend + rng.normal(0, CV, 2 * n))
            return page(blocks_interval(runs(values[:n], [n]), runs(values[n:], [n]), paired=True))
        return page(blocks_interval(*session(rng, n, trend), paired=True))

    order, target = ("fixed", Target()) if fixed else ("random", FAIR)
    return Case(f"{percent(TREND)} drift within the session, {order} order, n = {n}", target, draw)


def alike(blocks: int, machines: int) -> Callable[[Generator], Sequence[Floats]]:
    """Hours that take after the hour before them, by half."""
    level = autocorrelated(0.5, BLOCK_CV)
    return lambda rng: [np.log(level(rng, blocks)) for _ in range(machines)] * (2 // machines)


def warming(rng: Generator) -> Sequence[Floats]:
    """A day's heat: each machine slows by 2 % from the first of five blocks to the last."""
    return [0.02 * np.linspace(-0.5, 0.5, 5)] * 2


CASES = [
    *(
        case
        for ratio in (1, 2, 5)
        for case in two(f"log-normal, SD ratio {ratio}", lognormal(), lognormal(ratio * CV), WELL)
    ),
    *(unequal(*cvs) for cvs in ((0.01, 0.01), (0.02, 0.01), (0.01, 0.02), (0.01, 0.05))),
    *two("exponential skew in both arms", exponential(), exponential(), FAIR),
    *two("exponential skew in one arm", exponential(), lognormal(), FAIR),
    *two("skew in one arm, the other 10 times quieter", exponential(), lognormal(CV / 10), FAIR),
    *two("tails of Student's t with 3 degrees in both arms", student(3), student(3), FAIR),
    *two("tails of Student's t with 3 degrees in one arm", student(3), lognormal(), FAIR),
    *two("a clock of ticks of up to 0.5 %, run CV 0.5 %", *(rounded(0.005, WITHIN),) * 2, FAIR),
    *two("a clock of ticks of up to 1 %, run CV 0.5 %", *(rounded(0.01, WITHIN),) * 2, FAIR),
    *(
        case
        for slow in (0.05, 0.1, 0.2, 0.5)
        for case in two(
            f"1 run in 10 of one arm {percent(slow)} slow",
            contaminated(0.1, slow),
            lognormal(),
            FAIR,
            (5, 10),
            rare=True,
        )
    ),
    *two("1 run in 50 of one arm 50 % slow", contaminated(0.02, 0.5), lognormal(), FAIR, (5, 10), rare=True),
    *two(
        "autocorrelated runs, 0.5, two machines, 1 block",
        autocorrelated(0.5),
        autocorrelated(0.5),
        FAIR,
        (5, 10),
        one_block=True,
    ),
    sides("two machines, 1 block of 10, block CV 1 %", (10,), FAIR),
    sides("two machines, 2 blocks of 5", (5, 5), FAIR),
    sides("two machines, 3 blocks of 4", (4, 4, 4), FAIR),
    sides("two machines, 5 blocks of 2", (2,) * 5, FAIR),
    sides("two machines, 3 blocks of 8, 2 and 2", (8, 2, 2), FAIR),
    sides("two machines, 3 blocks of 4 against 2 of 5", (4, 4, 4), FAIR, over_lengths=(5, 5)),
    sides("two machines, 1 block of 5, block CV 2 %", (5,), FAIR, block_cv=0.02),
    sides("two machines, 1 block of 5, block CV 3 %", (5,), FAIR, block_cv=0.03),
    sides("two machines, 3 blocks of 4, block CV 2 %", (4, 4, 4), FAIR, block_cv=0.02),
    sides("two machines, 3 blocks of 4, block CV 3 %", (4, 4, 4), FAIR, block_cv=0.03),
    sides("one machine, 1 block of 5", (5,), FAIR, paired=True),
    sides("one machine, 3 blocks of 4", (4, 4, 4), FAIR, paired=True),
    sides("one machine, 3 blocks of 8, 2 and 2", (8, 2, 2), FAIR, paired=True),
    sides("one machine, 5 blocks against the first 3", (2,) * 5, FAIR, over_lengths=(2,) * 3, paired=True),
    own("a line's own interval, 3 blocks of 4, any hour", (4, 4, 4), FAIR, speaks_of="any hour"),
    own("a line's own interval, 1 block of 5, this hour", (5,), FAIR, speaks_of="these hours"),
    own("a line's own interval, 2 blocks of 5, these hours", (5, 5), FAIR, speaks_of="these hours"),
    *(drift(n) for n in SIZES),
    drift(10, fixed=True),
    sides("hours that warm up by 2 %, one machine", (4,) * 5, FAIR, paired=True, hours=warming),
    sides("hours that warm up by 2 %, two machines", (4,) * 5, FAIR, hours=warming),
    sides("hours alike by half, one machine, 4 blocks of 3", (3,) * 4, FAIR, paired=True, hours=alike(4, 1)),
    sides("hours alike by half, two machines, 4 blocks of 3", (3,) * 4, Target(), hours=alike(4, 2)),
]
