"""What a delivered machine must reach, and how often that rule is wrong: for a good card, for a slow one.

A row's statistic is D = log(delivered) − log(figure), of mean throughputs; D ≥ log(1 − margin) passes.
For a good card D = U + E: U is the unit's own level, shared by all rows, and E the noise of the runs,
Student's t with n − 1 degrees of freedom, scaled by s·√(1/n + 1/m), s being the standard deviation of the
logarithms of the n runs behind the figure, m the runs to be made.
A slow card is a good one with log(1 − slow) added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from numpy.typing import NDArray
from scipy import special

from report import text
from report.comparisons.cells import Cell
from report.comparisons.unit_spread import UNITS_TO_MEASURE, UnitSpread, assumed_units, log_spread, units_of
from report.trials.key import Key
from report.trials.trial import Trial

MARGIN = 0.05
"""About half of the way, in logarithms, to a card that is 10 % too slow: the two errors are alike."""

SLOW = 0.10

DECIDES_LITTLE = 0.2
"""From here on a rule that errs as often for the very unit that was measured is said to be of little use."""

_GRID = 2001
Floats = NDArray[numpy.float64]


@dataclass(frozen=True, slots=True)
class Demand:
    """One figure that must be reached: samples per second, the geometric mean of its runs."""

    key: Key
    card: str
    unit: str
    figure: float
    values: tuple[float, ...]
    spread: float
    """Standard deviation of the logarithms of the runs behind the figure."""
    runs: int
    """How many runs are to be made."""
    unproven: bool
    within_one_block: bool

    @property
    def what(self) -> str:
        """The work in a few words."""
        size = f", {self.key.image_size} px" if self.key.image_size else ""
        return text.clean(
            f"{text.model_name(self.key.model)}, {self.key.precision}, batch {self.key.batch_size}{size}, "
            f"{self.key.data_mode} data",
            120,
        )


@dataclass(frozen=True, slots=True)
class Chances:
    """Of the rule being wrong, each over all rows together."""

    good_fails: float
    slow_passes: float


@dataclass(frozen=True, slots=True)
class Clause:
    """The demands of one session, and how often the rule errs for another unit and for this very one."""

    margin: float
    slow: float
    demands: tuple[Demand, ...]
    units: UnitSpread
    another: Chances
    same: Chances


def clause(
    cells: Sequence[Cell], units: UnitSpread | None = None, *, margin: float = MARGIN
) -> Clause | None:
    """The demands that the cells of one session support; null where none has two valid runs."""
    demands = tuple(_demand(cell) for cell in cells if _usable(cell))
    if not demands:
        return None
    spread = units or assumed_units()
    return Clause(
        margin=margin,
        slow=SLOW,
        demands=demands,
        units=spread,
        another=chances(demands, spread, margin=margin, slow=SLOW),
        same=chances(demands, UnitSpread(0.0, math.inf, 1), margin=margin, slow=SLOW),
    )


def _usable(cell: Cell) -> bool:
    return cell.throughput.n >= 2 and cell.verdict != "invalid" and min(cell.throughput.values) > 0


def _demand(cell: Cell) -> Demand:
    logs = numpy.log(numpy.asarray(cell.throughput.values, dtype=numpy.float64))
    return Demand(
        key=cell.key,
        card=cell.card,
        unit=cell.trials[0].sample_unit,
        figure=float(numpy.exp(logs.mean())),
        values=cell.throughput.values,
        spread=log_spread(cell.throughput.values),
        runs=cell.throughput.n,
        unproven=cell.verdict == "unproven",
        within_one_block=cell.blocks < UNITS_TO_MEASURE,
    )


def chances(demands: Sequence[Demand], units: UnitSpread, *, margin: float, slow: float) -> Chances:
    """How often a good card misses a demand, and a slow one none; integrated over the unit's level."""
    levels, weights = _levels(units)
    edge = math.log1p(-margin)
    good = float(weights @ _all_reached(demands, levels, edge))
    slower = float(weights @ _all_reached(demands, levels + math.log1p(-slow), edge))
    return Chances(min(1.0, max(0.0, 1 - good)), min(1.0, max(0.0, slower)))


def _levels(units: UnitSpread) -> tuple[Floats, Floats]:
    """The unit's level on a grid of equal probabilities' middles, so that heavy tails are held as well."""
    if units.scale == 0:
        return numpy.zeros(1), numpy.ones(1)
    middles = (numpy.arange(_GRID) + 0.5) / _GRID
    quantiles = special.stdtrit(units.df, middles) if units.measured else special.ndtri(middles)
    return numpy.asarray(quantiles) * units.scale, numpy.full(_GRID, 1 / _GRID)


def _all_reached(demands: Sequence[Demand], levels: Floats, edge: float) -> Floats:
    """For each level, the chance that every row reaches its demand; the rows' noises are independent."""
    chance = numpy.ones_like(levels)
    for demand in demands:
        n = len(demand.values)
        scale = demand.spread * math.sqrt(1 / n + 1 / demand.runs)
        if scale == 0:
            chance = chance * (levels >= edge)
        else:
            chance = chance * special.stdtr(n - 1, (levels - edge) / scale)
    return chance


def on_page(trials: Sequence[Trial], cells: Sequence[Cell], margin: float) -> tuple[str, ...]:
    """The clause of the leading session's `cells` as the page prints it; empty where they support none."""
    rule = clause(cells, units_of(trials, cells), margin=margin)
    return lines(rule, "invoke accept BUNDLE") if rule else ()


def lines(rule: Clause, command: str) -> tuple[str, ...]:
    """The clause as it is printed: what to run, what to reach, and how often the rule is wrong."""
    margin, slow = text.percent(rule.margin), text.percent(rule.slow)
    sentences = [
        f"Acceptance: on the delivered machine, `{command}` measures again what this page stands on.",
        f"It passes where every mean reaches its figure less a margin of {margin}:",
    ]
    for demand in rule.demands:
        least = demand.figure * (1 - rule.margin)
        sentences.append(
            f"  {demand.what}: {text.number(demand.figure)} {demand.unit}s/s in {len(demand.values)} runs; "
            f"at least {text.number(least)} in {text.count(demand.runs, 'run')}"
        )
    another, same = rule.another, rule.same
    sentences.append(
        f"Another unit of the model ({rule.units.words}): a good card fails with "
        f"{percent(another.good_fails)}, one {slow} too slow passes with {percent(another.slow_passes)}."
    )
    sentences.append(
        f"This very unit: it fails with {percent(same.good_fails)}, and passes {slow} too slow with "
        f"{percent(same.slow_passes)}."
    )
    return (*sentences, *caveats(rule))


def caveats(rule: Clause) -> tuple[str, ...]:
    """What the chances leave out."""
    sentences = []
    if max(rule.same.good_fails, rule.same.slow_passes) > DECIDES_LITTLE:
        sentences.append("These runs scatter too much for this margin: the rule decides little.")
    if any(demand.unproven for demand in rule.demands):
        sentences.append("A first look and no clause for an order: its windows are too short to be proven.")
    if any(demand.within_one_block for demand in rule.demands):
        sentences.append(
            "Measured in fewer than three blocks: what an hour or a day does is not in these chances."
        )
    return tuple(sentences)


def percent(chance: float) -> str:
    """'3 %', and no more certainty than the model has: 'less than 1 %'."""
    if chance < 0.005:
        return "less than 1 %"
    return "more than 99 %" if chance > 0.995 else text.percent(chance)
