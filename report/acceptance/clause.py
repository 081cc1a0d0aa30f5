"""What a delivered machine must reach: each figure less a margin, and how often that rule is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.record.finding import label
from report import text
from report.acceptance.chances import Chances, Noise, chances
from report.acceptance.disturbance import chance_of_again, disturbed, fault
from report.comparisons.cells import Cell
from report.comparisons.units.spread import UnitSpread, cv_words
from report.stats.intervals import ASSUMED_BLOCK_SPREAD, BLOCKS_NEEDED, Interval, Runs, blocks_interval
from report.trials.key import Key

MARGIN = 0.05
"""About half of the way, in logarithms, to a card that is 10 % too slow: the two errors are alike."""

SLOW = 0.10

DECIDES_LITTLE = 0.2
"""From here on a rule that errs as often for the very unit that was measured is said to be of little use."""
FIRST_LOOK = "This is a first look and no clause for an order: its tests are too short."


@dataclass(frozen=True, slots=True)
class Demand:
    """One figure that must be reached: samples per second, the geometric mean of its runs."""

    key: Key
    card: str
    unit: str
    measured: Runs
    figure: Interval
    planned: int
    """How many runs the plan makes of it."""
    unproven: bool

    @property
    def runs(self) -> int:
        """How many runs are to be made: as many as the figure stands on."""
        return len(self.measured.values)

    @property
    def noise(self) -> Noise:
        return Noise.of(self.measured, self.figure)

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
class Clause:
    """The demands of one session, and how often the rule errs for another unit and for this very one.

    A chance is null where the order's runs leave it open.
    """

    margin: float
    slow: float
    demands: tuple[Demand, ...]
    units: UnitSpread
    another: tuple[tuple[float, Chances | None], ...]
    """By the coefficient of variation that units may have."""
    same: Chances | None
    disturbed: int
    """How many of the order's own runs their surroundings disturbed."""
    faults: tuple[str, ...] = ()
    """What made runs of the order invalid by their own machine."""

    @property
    def again(self) -> float:
        """How often a delivery is measured again, by how many of the order's runs were disturbed."""
        planned = sum(demand.planned for demand in self.demands)
        works = [(demand.planned, demand.runs) for demand in self.demands]
        return chance_of_again(works, self.disturbed / planned)


def clause(
    cells: Sequence[Cell], units: UnitSpread | None = None, *, margin: float = MARGIN
) -> Clause | None:
    """The demands that the cells of one session support; null where none has two valid runs."""
    usable = [cell for cell in cells if cell.verdict != "invalid"]
    demands = tuple(demand for cell in usable if (demand := _demand(cell)))
    if not demands:
        return None
    spread, noises = units or UnitSpread(), [demand.noise for demand in demands]
    trials = [trial for cell in usable for trial in cell.trials]
    return Clause(
        margin=margin,
        slow=SLOW,
        demands=demands,
        units=spread,
        another=tuple((cv, chances(noises, cv, margin=margin, slow=SLOW)) for cv in spread.cvs()),
        same=chances(noises, 0.0, margin=margin, slow=SLOW),
        disturbed=sum(disturbed(trial) for trial in trials),
        faults=tuple(dict.fromkeys(label(found) for trial in trials if (found := fault(trial)))),
    )


def _demand(cell: Cell) -> Demand | None:
    measured = cell.throughput.runs
    figure = blocks_interval(measured) if len(measured.values) >= 2 else None
    if figure is None:
        return None
    return Demand(
        key=cell.key,
        card=cell.card,
        unit=cell.trials[0].sample_unit,
        measured=measured,
        figure=figure,
        planned=len(cell.trials),
        unproven=cell.verdict == "unproven",
    )


def brief(rule: Clause, command: str, where: str) -> tuple[str, str]:
    """The clause in two parts: the rule, and how often it errs or why that is not known.

    `where` says what was measured: 'here', or 'on the RTX 4090'.
    """
    share = f"{(1 - rule.margin) * 100:.3g} %"
    opening = (
        f"Pack this report with `invoke bundle`; on the machine that came `{command}` repeats its tests. "
        f"Each speed has to be at least {share} of the one measured {where}."
    )
    if any(demand.unproven for demand in rule.demands):
        return opening, FIRST_LOOK
    stated = None if rule.faults else rule.another[len(rule.another) // 2][1]
    if stated is None and not rule.faults:
        return opening, "There are too few tests to say how often it would reject a sound machine."
    errs = _errs(stated, text.percent(rule.slow))
    return opening, f"{errs[0].upper()}{errs[1:]}"


def lines(rule: Clause, command: str) -> tuple[str, ...]:
    """The clause as it is printed: what to run, what to reach, and how often the rule is wrong."""
    share = f"{(1 - rule.margin) * 100:.3g} %"
    sentences = [
        f"On the delivered machine, `{command}` repeats the tests of this page.",
        f"It is accepted if each measured speed is at least {share} of the one ordered:",
    ]
    for demand in rule.demands:
        figure, runs = demand.figure.estimate, text.count(demand.runs, "run")
        least = text.number(figure * (1 - rule.margin))
        sentences.append(
            f"  {demand.what}: ordered {text.number(figure)} {demand.unit}s/s; accepted from {least}, "
            f"the mean of {runs}"
        )
    return (*sentences, *_on_invalid(rule), *_on_chances(rule), *caveats(rule))


def _on_invalid(rule: Clause) -> tuple[str, ...]:
    sentences = [
        "A run that something else disturbed does not count. A test that loses more than a quarter of its "
        "runs is repeated.",
        "A run that the machine itself spoils fails the delivery: throttling, memory errors, wrong results.",
    ]
    if rule.disturbed:
        planned = text.count(sum(demand.planned for demand in rule.demands), "run")
        were = "was" if rule.disturbed == 1 else "were"
        sentences.append(
            f"Of the order's {planned} {rule.disturbed} {were} disturbed, "
            f"so {_of_100(rule.again)} of 100 deliveries will have to repeat a test."
        )
    return tuple(sentences)


def _on_chances(rule: Clause) -> tuple[str, ...]:
    slow = text.percent(rule.slow)
    if rule.faults:
        return (
            f"No chance is stated: runs of the order were spoiled by their own machine ({rule.faults[0]}).",
        )
    known = any(stated for _, stated in rule.another)
    sentences = [f"How often this rule errs, by how much units of one model differ ({_known(rule)}):"]
    for cv, stated in rule.another if known else ((None, None),):
        who = f"  by {cv_words(cv)}" if cv else "  another unit of the model"
        sentences.append(f"{who}: {_errs(stated, slow)}")
    return (*sentences, f"  this very unit: {_errs(rule.same, slow)}")


def _errs(stated: Chances | None, slow: str) -> str:
    if stated is None:
        return "no chance is stated, since these runs do not tell how much they scatter."
    rejected, accepted = _of_100(stated.good_fails), _of_100(stated.slow_passes)
    return (
        f"of 100 sound deliveries {rejected} would be rejected; of 100 that are {slow} too slow, {accepted} "
        "would slip through."
    )


def _known(rule: Clause) -> str:
    if rule.units.measured:
        return f"standard deviation, {rule.units.words}, and the ends of its 90 % interval"
    return f"standard deviation, {'given by the buyer' if rule.units.given else 'assumed'}"


def caveats(rule: Clause) -> tuple[str, ...]:
    """What the chances stand on, and leave out."""
    sentences = []
    if rule.same and max(rule.same.good_fails, rule.same.slow_passes) > DECIDES_LITTLE:
        sentences.append("These runs scatter too much for this margin, so the rule decides little.")
    if any(demand.unproven for demand in rule.demands):
        sentences.append(FIRST_LOOK)
    if any(len(set(demand.measured.blocks)) < BLOCKS_NEEDED for demand in rule.demands):
        spread = text.percent(ASSUMED_BLOCK_SPREAD)
        sentences.append(
            f"All was measured in fewer than three sittings. It is assumed that sittings differ by ±{spread}."
        )
    return tuple(sentences)


def _of_100(chance: float) -> str:
    """'3', and no more certainty than the model has: 'fewer than 1'."""
    if chance < 0.005:
        return "fewer than 1"
    return "more than 99" if chance > 0.995 else f"{chance * 100:.0f}"
