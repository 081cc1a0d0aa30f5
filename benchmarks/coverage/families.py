"""Several comparisons that are read together: all of their intervals are to hold at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.coverage.cases import Case, Draw, Generator, Target
from benchmarks.coverage.lines import line
from benchmarks.coverage.samples import CV, Sample, in_blocks, lognormal, runs, student
from harness.record import PRECISION_ORDER
from report.compare.cells import Cell, Ratio
from report.compare.groups import comparison_groups
from report.compare.precisions import speedups
from report.stats.equivalence import non_inferior

TOGETHER = Target(94)
LOGNORMAL = lognormal()
GAINED = (*(name for name in PRECISION_ORDER if not name.startswith("fp32")), "fp32-default")

Lines = Callable[[Generator], list[Cell]]
Ratios = Callable[[Sequence[Cell]], Iterable[Ratio | None]]


def together(name: str, lines: Lines, ratios: Ratios) -> Case:
    """Whether every ratio's interval holds the truth, which is 1; one without an interval is a caveat."""

    def draw(rng: Generator) -> Draw:
        intervals = [ratio.interval for ratio in ratios(lines(rng)) if ratio is not None]
        held = all(interval is None or interval.includes(1.0) for interval in intervals)
        return Draw(held, any(interval is None for interval in intervals))

    return Case(name, TOGETHER, draw)


def equal(precisions: Sequence[str], n: int, sample: Sample = LOGNORMAL) -> Lines:
    """Equal lines of one machine, n runs in one block each."""
    return lambda rng: [line(runs(sample(rng, n), (n,)), precision=precision) for precision in precisions]


def cards(count: int, lengths: Sequence[int]) -> Lines:
    """Equal cards, each in a machine of its own, in blocks of time."""
    return lambda rng: [line(in_blocks(rng, lengths), place=place) for place in range(count)]


def to_reference(baseline: str | None = None) -> Ratios:
    """Each line of a group over its reference, which is the page's own where no baseline is named."""

    def ratios(cells: Sequence[Cell]) -> list[Ratio | None]:
        (group,) = comparison_groups(cells, cells[0].session, baseline=baseline)
        return [entry.scaled for entry in group.entries if not entry.reference]

    return ratios


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


FASTEST = to_reference()

CASES = [
    *(
        together(
            f"fastest of {lines} equal lines as reference, n = {n}",
            equal(PRECISION_ORDER[:lines], n),
            FASTEST,
        )
        for n in (10, 5)
        for lines in (2, 4, 8)
    ),
    together("fastest of 13 equal cards as reference, 1 blocks of 5", cards(13, (5,)), FASTEST),
    together("fastest of 4 equal cards as reference, 3 blocks of 4", cards(4, (4, 4, 4)), FASTEST),
    *(
        together(
            f"6 equal lines against a named one, n = {n}",
            equal(PRECISION_ORDER[:6], n),
            to_reference(PRECISION_ORDER[0]),
        )
        for n in (5, 10)
    ),
    together(
        "fastest of 8 equal lines, tails of Student's t with 3 degrees, n = 5",
        equal(PRECISION_ORDER[:8], 5, student(3)),
        FASTEST,
    ),
    *(
        together(
            f"speed-ups of {count} precisions over 2 denominators, n = {n}",
            equal(("fp32-ieee", "fp32-tf32", *GAINED[:count]), n),
            lambda cells: [speedup.ratio for speedup in speedups(cells)],
        )
        for count, n in ((3, 5), (6, 5), (6, 10))
    ),
    *(parity(arms, 5) for arms in (1, 3)),
]
