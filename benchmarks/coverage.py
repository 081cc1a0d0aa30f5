"""How often the nominal 95 % intervals of gpudyno hold the truth, by simulation: 20,000 draws a case.

    python -m benchmarks.coverage            prints the tables
    python -m benchmarks.coverage --accept   writes them into docs/methodology.md as well

Exits 1 where a case covers less, or more, than is asked of it. The arithmetic is repeated here on arrays, and
is checked against report.stats.intervals on the first draws of every case.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from report.stats.intervals import Runs, blocks_interval

DRAWS = 20_000
CHECKED = 20
FLAG_DRAWS = 2_000
SIZES = (3, 5, 10, 20)
SEED = 20_240_229
CV = 0.01
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"
PAGE = Path(__file__).parents[1] / "docs" / "methodology.md"

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Sample = Callable[[np.random.Generator, tuple[int, int]], Floats]


@dataclass(frozen=True, slots=True)
class Bounds:
    """Bounds of the coverage, in percent; null where nothing is asked and the figure is a warning."""

    low: float | None = None
    high: float | None = None

    def text(self) -> str:
        if self.low is None:
            return "printed"
        return f"≥ {self.low:g}" if self.high is None else f"{self.low:g} to {self.high:g}"

    def met(self, coverage: float) -> bool:
        return (self.low is None or coverage >= self.low) and (self.high is None or coverage <= self.high)


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One line of a table: coverages in percent, and what is asked of each."""

    name: str
    bounds: Bounds
    coverages: tuple[float, ...]
    extra: str = ""

    def short(self) -> list[str]:
        return [f"{self.name}: {value:.1f} %" for value in self.coverages if not self.bounds.met(value)]


def lognormal(spread: float) -> Sample:
    return lambda rng, shape: np.exp(rng.normal(0, spread, shape))


def exponential(spread: float) -> Sample:
    """Mean 1, standard deviation `spread`, skewness 2: a fastest time, and an exponential tail above it."""
    return lambda rng, shape: 1 + spread * (rng.exponential(1, shape) - 1)


def contaminated(share: float, slow: float) -> Sample:
    """A share of the runs is slower by `slow`."""
    return lambda rng, shape: (
        np.exp(rng.normal(0, CV, shape)) * np.where(rng.random(shape) < share, 1 + slow, 1.0)
    )


def true_log_mean(sample: Sample) -> float:
    """Of 4 million draws: its error is a thousandth of a percent at a spread of 1 %."""
    return float(np.log(sample(np.random.default_rng(SEED), (4_000_000, 1))).mean())


def t_critical(df: Floats | float, level: float = 0.95) -> Floats:
    return np.asarray(stats.t.ppf((1 + level) / 2, df))


def welch(a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """Difference of means along the last axis, its standard error, and Welch's degrees of freedom."""
    u, v = a.var(-1, ddof=1) / a.shape[-1], b.var(-1, ddof=1) / b.shape[-1]
    df = (u + v) ** 2 / (u**2 / (a.shape[-1] - 1) + v**2 / (b.shape[-1] - 1))
    return a.mean(-1) - b.mean(-1), np.sqrt(u + v), df


def same(ours: tuple[float, float], product: object) -> None:
    """The arrays' arithmetic and the product's must agree, or the simulation speaks of something else."""
    low, high = getattr(product, "low", None), getattr(product, "high", None)
    if low is None or high is None or not np.allclose(ours, (low, high), rtol=1e-9):
        raise SystemExit(f"the simulated interval {ours} is not the product's {(low, high)}")


def plain(values: Floats) -> Runs:
    """Runs in whose spread blocks play no part."""
    return Runs(tuple(values.ravel().tolist()))


def log_welch_coverage(a: Floats, b: Floats, truth: float) -> float:
    delta, error, df = welch(np.log(a), np.log(b))
    reach = t_critical(df) * error
    for draw in range(CHECKED):
        ours = (float(np.exp((delta - reach)[draw])), float(np.exp((delta + reach)[draw])))
        same(ours, blocks_interval(plain(a[draw]), plain(b[draw])))
    return percent(np.abs(delta - truth) <= reach)


def percent(covered: Flags) -> float:
    return 100 * float(covered.mean())


def two_samples(name: str, first: Sample, second: Sample, bounds: Bounds) -> CoverageRow:
    rng = np.random.default_rng(SEED)
    truth = true_log_mean(first) - true_log_mean(second)
    shapes = [(DRAWS, n) for n in SIZES]
    coverages = (log_welch_coverage(first(rng, shape), second(rng, shape), truth) for shape in shapes)
    return CoverageRow(name, bounds, tuple(coverages))


def harsh(name: str, first: Sample, second: Sample) -> CoverageRow:
    """A case beyond what is asked: its coverage, and how often the interval carries a doubt at n = 5."""
    row = two_samples(name, first, second, Bounds())
    rng = np.random.default_rng(SEED)
    pairs = zip(first(rng, (FLAG_DRAWS, 5)), second(rng, (FLAG_DRAWS, 5)), strict=True)
    intervals = [blocks_interval(plain(a), plain(b)) for a, b in pairs]
    doubtful_share = sum(bool(interval and interval.notes) for interval in intervals) / FLAG_DRAWS
    return CoverageRow(name, row.bounds, row.coverages, f"{doubtful_share:.1%}")


def simple_rows() -> list[CoverageRow]:
    normal = Bounds(94, 97.5)
    rows = [
        two_samples(f"log-normal, SD ratio {ratio}", lognormal(CV), lognormal(ratio * CV), normal)
        for ratio in (1, 2, 5)
    ]
    skew, plain = exponential(CV), lognormal(CV)
    rows.append(two_samples("exponential skew in both arms", skew, skew, Bounds(92)))
    rows.append(two_samples("exponential skew in one arm", skew, plain, Bounds(92)))
    slow = contaminated(0.1, 0.05)
    rows.append(two_samples("10 % of one arm's runs 5 % slow", slow, plain, Bounds(92)))
    return rows


def harsh_rows() -> list[CoverageRow]:
    plain = lognormal(CV)
    return [
        harsh("10 % of one arm's runs 50 % slow", contaminated(0.1, 0.5), plain),
        harsh("2 % of one arm's runs 50 % slow", contaminated(0.02, 0.5), plain),
        harsh("exponential skew in one arm, the other 10 times quieter", exponential(CV), lognormal(CV / 10)),
        harsh("none of it: log-normal, SD ratio 1", plain, plain),
    ]


def session(rng: np.random.Generator, n: int, order: str) -> tuple[Floats, Floats]:
    """Two equal arms of n runs in one session whose machine slows by 3 % from its start to its end."""
    places = np.arange(2 * n) / (2 * n - 1)
    drift = np.broadcast_to(0.03 * places, (DRAWS, 2 * n))
    if order == "fixed":
        of_a = np.broadcast_to(np.arange(2 * n) < n, drift.shape)
    else:
        first = rng.random((DRAWS, n)) < 0.5
        of_a = np.stack([first, ~first], axis=-1).reshape(DRAWS, 2 * n)
    logs = drift + rng.normal(0, CV, drift.shape)
    return np.exp(logs[of_a].reshape(DRAWS, n)), np.exp(logs[~of_a].reshape(DRAWS, n))


def drift_rows() -> list[CoverageRow]:
    rows = []
    for order, bounds in (("fixed", Bounds()), ("interleaved", Bounds(92))):
        rng = np.random.default_rng(SEED)
        coverages = tuple(log_welch_coverage(*session(rng, n, order), 0.0) for n in SIZES)
        rows.append(CoverageRow(f"3 % drift within the session, {order} order", bounds, coverages))
    return rows


def in_blocks(rng: np.random.Generator, blocks: int, runs: int, effect: Floats | None = None) -> Floats:
    """Logarithms, (draws, blocks, runs): block SD 1 %, run SD 0.5 %."""
    shared = rng.normal(0, 0.01, (DRAWS, blocks, 1)) if effect is None else effect
    return shared + rng.normal(0, 0.005, (DRAWS, blocks, runs))


def as_runs(values: Floats) -> Runs:
    blocks, runs = values.shape
    numbers = tuple(block for block in range(blocks) for _ in range(runs))
    return Runs(tuple(values.ravel().tolist()), numbers)


def block_row(name: str, a: Floats, b: Floats, method: str, bounds: Bounds) -> CoverageRow:
    """`method` takes the runs pooled, the block means as replicates, or the differences within blocks."""
    if method == "pooled":
        delta, error, df = welch(a.reshape(DRAWS, -1), b.reshape(DRAWS, -1))
    elif method == "means":
        delta, error, df = welch(a.mean(-1), b.mean(-1))
    else:
        each = a.mean(-1) - b.mean(-1)
        delta, error = each.mean(-1), each.std(-1, ddof=1) / np.sqrt(each.shape[-1])
        df = np.full(DRAWS, each.shape[-1] - 1.0)
    reach = t_critical(df) * error
    for draw in range(CHECKED):
        ours = (float(np.exp((delta - reach)[draw])), float(np.exp((delta + reach)[draw])))
        runs = plain if method == "pooled" else as_runs
        same(ours, blocks_interval(runs(np.exp(a[draw])), runs(np.exp(b[draw])), paired=method == "within"))
    return CoverageRow(name, bounds, (percent(np.abs(delta) <= reach),), f"±{100 * np.median(reach):.1f} %")


def block_rows() -> list[CoverageRow]:
    rng = np.random.default_rng(SEED)
    shared = rng.normal(0, 0.01, (DRAWS, 3, 1))
    machines = "two machines"
    return [
        block_row(
            f"{machines}, 2 blocks of 5 runs, pooled",
            in_blocks(rng, 2, 5),
            in_blocks(rng, 2, 5),
            "pooled",
            Bounds(),
        ),
        block_row(
            f"{machines}, 3 blocks of 4 runs, pooled",
            in_blocks(rng, 3, 4),
            in_blocks(rng, 3, 4),
            "pooled",
            Bounds(),
        ),
        block_row(
            f"{machines}, 3 blocks of 4 runs, block means",
            in_blocks(rng, 3, 4),
            in_blocks(rng, 3, 4),
            "means",
            Bounds(92),
        ),
        block_row(
            "one machine, 3 blocks of 4 runs, differences within blocks",
            in_blocks(rng, 3, 4, shared),
            in_blocks(rng, 3, 4, shared),
            "within",
            Bounds(92),
        ),
    ]


def family(rng: np.random.Generator, groups: int, n: int) -> list[Floats]:
    """Logarithms of equal groups whose spreads grow from 1 % to 3 %."""
    return [rng.normal(0, CV * (1 + 2 * g / (groups - 1)), (DRAWS, n)) for g in range(groups)]


def bonferroni_coverage(groups: list[Floats]) -> float:
    level = 1 - 0.05 / (len(groups) - 1)
    all_hold = np.ones(DRAWS, dtype=bool)
    for number in range(1, len(groups)):
        delta, error, df = welch(groups[number], groups[0])
        reach = t_critical(df, level) * error
        all_hold &= np.abs(delta) <= reach
        for draw in range(CHECKED):
            sides = [plain(np.exp(values[draw])) for values in (groups[number], groups[0])]
            product = blocks_interval(*sides, comparisons=len(groups) - 1)
            same((float(np.exp((delta - reach)[draw])), float(np.exp((delta + reach)[draw]))), product)
    return percent(all_hold)


def family_row() -> CoverageRow:
    rng = np.random.default_rng(SEED)
    coverages = tuple(bonferroni_coverage(family(rng, 6, n)) for n in SIZES)
    return CoverageRow("5 groups against a reference, Bonferroni, all 5 at once", Bounds(94), coverages)


def table(rows: list[CoverageRow], columns: tuple[str, ...], extra: str = "") -> str:
    heads = ["case", "asked, %", *columns, *([extra] if extra else [])]
    lines = [heads, ["---"] * len(heads)]
    for row in rows:
        cells = [f"{coverage:.1f}" for coverage in row.coverages]
        lines.append([row.name, row.bounds.text(), *cells, *([row.extra] if extra else [])])
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(arguments: list[str]) -> int:
    sizes = tuple(f"n = {n}" for n in SIZES)
    plain, blocks, beyond = [*simple_rows(), *drift_rows(), family_row()], block_rows(), harsh_rows()
    text = "\n\n".join(
        [
            f"Coverage of the nominal 95 % intervals, percent of {DRAWS:,} simulated draws a figure:",
            table(plain, sizes),
            "Blocks (block SD 1 %, run SD 0.5 %):",
            table(blocks, ("coverage, %",), "median half-width"),
            "Harsher than what is asked, and how often the interval itself carries a doubt at n = 5:",
            table(beyond, sizes, "in doubt, n = 5"),
        ]
    )
    print(text)
    shortfalls = [line for row in (*plain, *blocks) for line in row.short()]
    for line in shortfalls:
        print(f"short of what is asked: {line}")
    if "--accept" in arguments:
        page = PAGE.read_text(encoding="utf-8")
        before, _, rest = page.partition(BEGIN)
        _, _, after = rest.partition(END)
        PAGE.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")
    return 1 if shortfalls else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
