"""Several comparisons that are read together: all of their intervals are to hold at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.coverage.cases import Case, Draw, Generator, Target
from benchmarks.coverage.lines import line
from benchmarks.coverage.samples import CV, in_blocks, lognormal, runs, student
from harness.record import PRECISION_ORDER
from report.compare.cells import Cell, Ratio
from report.compare.groups import comparison_groups
from report.compare.precisions import profile_gains, speedups
from report.stats.equivalence import non_inferior

TOGETHER = Target(94)


def all_hold(ratios: Iterable[Ratio | None], truth: float = 1.0) -> Draw:
    """Whether every ratio's interval holds the truth."""
    intervals = [ratio.interval for ratio in ratios if ratio is not None]
    held = all(interval is None or interval.includes(truth) for interval in intervals)
    return Draw(held, any(interval is None for interval in intervals))


def equal_lines(rng: Generator, precisions: Sequence[str], n: int) -> list[Cell]:
    """Equal lines of one machine, n runs in one block each."""
    return [line(runs(lognormal()(rng, n), (n,)), precision=precision) for precision in precisions]


def against_the_fastest(lines: int, n: int) -> Case:
    """The page's own reference where no baseline is named."""

    def draw(rng: Generator) -> Draw:
        cells = equal_lines(rng, PRECISION_ORDER[:lines], n)
        (group,) = comparison_groups(cells, cells[0].session, baseline=None)
        return all_hold(entry.scaled for entry in group.entries if not entry.reference)

    return Case(f"fastest of {lines} equal lines as reference, n = {n}", TOGETHER, draw)


def cards_against_the_fastest(cards: int, lengths: Sequence[int]) -> Case:
    """Each on a machine of its own, in blocks of time."""

    def draw(rng: Generator) -> Draw:
        cells = [line(in_blocks(rng, lengths), place=place) for place in range(cards)]
        (group,) = comparison_groups(cells, cells[0].session, baseline=None)
        return all_hold(entry.scaled for entry in group.entries if not entry.reference)

    name = f"fastest of {cards} equal cards as reference, {len(lengths)} blocks of {lengths[0]}"
    return Case(name, TOGETHER, draw)


def against_a_named_one(lines: int, n: int) -> Case:
    def draw(rng: Generator) -> Draw:
        cells = equal_lines(rng, PRECISION_ORDER[:lines], n)
        (group,) = comparison_groups(cells, cells[0].session, baseline=PRECISION_ORDER[0])
        return all_hold(entry.scaled for entry in group.entries if not entry.reference)

    return Case(f"{lines} equal lines against a named one, n = {n}", TOGETHER, draw)


def gains(precisions: int, n: int) -> Case:
    """Each precision against fp32-ieee and fp32-tf32."""
    gained = [name for name in PRECISION_ORDER if not name.startswith("fp32")]
    names = ("fp32-ieee", "fp32-tf32", *(*gained, "fp32-default")[:precisions])

    def draw(rng: Generator) -> Draw:
        return all_hold(speedup.ratio for speedup in speedups(equal_lines(rng, names, n)))

    return Case(f"speed-ups of {precisions} precisions over 2 denominators, n = {n}", TOGETHER, draw)


def tuned(works: int, n: int) -> Case:
    """Each work tuned and as it is."""

    def draw(rng: Generator) -> Draw:
        cells = [
            line(runs(lognormal()(rng, n), (n,)), model=f"model {work}", profile=profile)
            for work in range(works)
            for profile in ("tuned", "default")
        ]
        return all_hold(gain.ratio for gain in profile_gains(cells))

    return Case(f"gains of `tuned` of {works} works, n = {n}", TOGETHER, draw)


def heavy(lines: int, n: int) -> Case:
    """As against_the_fastest, with heavier tails than the normal ones."""

    def draw(rng: Generator) -> Draw:
        cells = [
            line(runs(student(3)(rng, n), (n,)), precision=precision) for precision in PRECISION_ORDER[:lines]
        ]
        (group,) = comparison_groups(cells, cells[0].session, baseline=None)
        return all_hold(entry.scaled for entry in group.entries if not entry.reference)

    return Case(
        f"fastest of {lines} equal lines, tails of Student's t with 3 degrees, n = {n}", TOGETHER, draw
    )


def parity(arms: int, n: int) -> Case:
    """Mixed precisions that are one margin worse than fp32, each held against the same fp32 seeds."""

    def draw(rng: Generator) -> Draw:
        margin, spread = 0.01, CV / 2
        fp32 = (0.9 + rng.normal(0, spread, n)).tolist()
        words = [
            non_inferior(
                fp32, (0.9 - margin + rng.normal(0, spread, n)).tolist(), margin, comparisons=arms
            ).word
            for _ in range(arms)
        ]
        return Draw("parity" in words)

    return Case(f"parity of {arms} that are worse by the margin, n = {n}", Target(high=5), draw)


CASES = [
    *(against_the_fastest(lines, 10) for lines in (2, 4, 8)),
    *(against_the_fastest(lines, 5) for lines in (2, 4, 8)),
    cards_against_the_fastest(13, (5,)),
    cards_against_the_fastest(4, (4, 4, 4)),
    *(against_a_named_one(lines, n) for lines, n in ((6, 5), (6, 10))),
    heavy(8, 5),
    *(gains(precisions, 5) for precisions in (3, 6)),
    gains(6, 10),
    tuned(4, 5),
    *(parity(arms, 5) for arms in (1, 3)),
]
