"""How many times as fast one cell trains a work as another, its range, and what may be said by it."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean, median, stdev
from typing import Literal

from report.compare.cells import Cell, is_side_by_side
from report.expected.software_effect import SoftwareEffect
from report.stats.contrast import (
    HOUR_SIDE_BY_SIDE,
    Assumption,
    Order,
    contrast_interval,
    order_shown,
    turning_size,
)
from report.stats.intervals import BETWEEN_SESSIONS, BLOCKS_NEEDED, Interval, Runs, values_in_blocks
from report.stats.own_figure import LOOKS_COUNTED, looked_runs
from report.trials.key import PartialKey, Term, stack_differences

Speed = Literal["throughput", "seconds"]

NINE_IN_TEN = 1.645
"""Standard deviations within which nine in ten of a normal distribution lie."""

BETWEEN_MACHINES = 0.03
"""A deviation of each side between the hours of two machines.

Equal cards whose hours differ by 3 % were ordered wrongly in 56 % of draws with 1 % assumed, in 5 % with 3 %.
"""
UNSETTLED_WINDOW = {"cpu": 0.05}
"""A deviation of each side between two sessions, once a window did not settle, by the kind of device.

In records of processors of two cores the first 5 or 10 s differ from the rest by 4.3 and 6.7 %.
"""
UNSETTLED_WINDOW_OF_CARD = 0.03

SOFTWARE, WINDOW = "software", "window_seconds"
_BUILD = ("image", "lock", "base", "device")
"""Parts of a stack that say how it was built: its versions say what it is."""


@dataclass(frozen=True, slots=True)
class WorkRatio:
    """How many times as fast `of` trains as `over`; `n` counts the processes of each."""

    of: Cell
    over: Cell
    speed: Speed
    """Samples per second; seconds where both ran the whole protocol."""
    estimate: float
    interval: Interval | None
    n: tuple[int, int]
    terms: tuple[Term, ...]
    """In what the sides differ besides the factor."""
    assumed: tuple[Assumption, ...]

    @property
    def order(self) -> Order:
        """Return what may be said of `of`."""
        return order_shown(self.interval, min(self.n))

    @property
    def turning_size(self) -> float | None:
        """Return how large all that is assumed would have to be for the range to reach 1; null if it does."""
        return None if self.interval is None else turning_size(self.interval, self.assumed)

    @property
    def inverse(self) -> WorkRatio:
        """Return `over` against `of`."""
        terms = tuple(replace(term, of=term.over, over=term.of) for term in self.terms)
        ends, estimate = self.interval, 1 / self.estimate
        ends = ends and replace(ends, low=1 / ends.high, estimate=estimate, high=1 / ends.low)
        n = self.n[::-1]
        return WorkRatio(self.over, self.of, self.speed, estimate, ends, n, terms, self.assumed)


def work_ratio(
    of: Cell,
    over: Cell,
    speed: Speed,
    terms: tuple[Term, ...],
    hours: tuple[Assumption | None, Assumption | None] = (None, None),
    *,
    units: Sequence[Assumption] = (),
    comparisons: int = 1,
    twins: bool = False,
) -> WorkRatio:
    """Return the ratio of two cells; `hours` are of their machines, the level holds for all `comparisons`.

    With `units` it is of any units of the two models. Of `twins` each repeat of one side ran next to the same
    repeat of the other, as of two stacks.
    """
    known = [Assumption("software", term.size / NINE_IN_TEN) for term in terms if term.size]
    assumed = (*assumptions(of, over, hours), *known, *units)
    paired = is_side_by_side(of, over)
    # A session of the user's own programs was looked at until it had its answer.
    own = paired and of.trials[0].record.trial.asked.own is not None
    first, second = looked = [speeds(cell, speed, twins=twins or own) for cell in (of, over)]
    if own:
        looks = of.trials[0].looks
        looked, comparisons = looked_runs(first, second, looks), comparisons * (len(looks) or LOOKS_COUNTED)
    interval = contrast_interval(*looked, paired=paired, assumed=assumed, comparisons=comparisons)
    estimate = interval.estimate if interval else geometric_mean(first.values) / geometric_mean(second.values)
    n = len(first.values), len(second.values)
    return WorkRatio(of, over, speed, estimate, interval, n, terms, assumed)


def assumptions(of: Cell, over: Cell, hours: Sequence[Assumption | None]) -> tuple[Assumption, ...]:
    """Return what the range of `of` over `over` has to assume, each once for a side or for both.

    `hours` says how far the hours of each machine lie apart by another work; null where none shows it.
    """
    few = [known for cell, known in zip((of, over), hours, strict=True) if cell.blocks < BLOCKS_NEEDED]
    if is_side_by_side(of, over):
        return (Assumption("hour", HOUR_SIDE_BY_SIDE),) if few else ()
    if of.machine == over.machine:
        between = tuple(Assumption("session", BETWEEN_SESSIONS) for _ in few)
    else:
        between = tuple(known or Assumption("machine", BETWEEN_MACHINES) for known in few)
    if of.settled and over.settled:
        return between
    sizes = (UNSETTLED_WINDOW.get(cell.stack.device, UNSETTLED_WINDOW_OF_CARD) for cell in (of, over))
    return (*between, *(Assumption("window", size) for size in sizes))


def speeds(cell: Cell, speed: Speed, *, twins: bool = False) -> Runs:
    """Return the speed of each run that is not invalid: more is faster."""
    found = []
    for trial in (trial for trial in cell.trials if trial.verdict != "invalid"):
        value = trial.samples_per_second if speed == "throughput" else trial.protocol_seconds
        if value:
            found.append((value, trial.record.trial.repeat if twins else trial.record.block))
    values = (value if speed == "throughput" else 1 / value for value, _ in found)
    return Runs(tuple(values), tuple(block for _, block in found))


def hour_spread(cells: Sequence[Cell]) -> Assumption | None:
    """Return how far a machine's blocks of time lie apart, by its work of the most; null below three."""
    most = max(cells, key=lambda cell: cell.blocks, default=None)
    if most is None or most.blocks < BLOCKS_NEEDED:
        return None
    blocks = values_in_blocks(most.all_runs, True).values()
    return Assumption("machine", stdev(map(fmean, blocks)), len(blocks) - 1) if len(blocks) > 1 else None


def speed_known(cells: Sequence[Cell]) -> Speed:
    """Return what all cells of a work are compared by: seconds where all ran the whole protocol."""
    whole = all(not cell.length.projected and cell.seconds.mean for cell in cells)
    return "seconds" if whole and len({cell.length.epochs for cell in cells}) == 1 else "throughput"


def terms_between(
    of: Cell, over: Cell, free: Collection[str], software: SoftwareEffect | None = None
) -> tuple[Term, ...]:
    """Return in what two cells differ besides what is `free`: work, window, software and settings."""
    found = (
        *PartialKey.of(over.key).differences(PartialKey.of(of.key)),
        *_window_terms(of, over),
        *_stack_terms(of, over, software),
    )
    return tuple(term for term in found if term.field not in free)


def _window_terms(of: Cell, over: Cell) -> Iterator[Term]:
    lengths = [(cell.length.projected, cell.length.limit) for cell in (of, over)]
    if lengths[0] != lengths[1]:
        yield Term(WINDOW, *map(window_seconds, (of, over)))


def window_seconds(cell: Cell) -> float | None:
    """Return the median length of its runs' measured windows."""
    measured = (trial.record.measurement for trial in cell.trials)
    seconds = [measurement.window.seconds for measurement in measured if measurement]
    return median(seconds) if seconds else None


def _stack_terms(of: Cell, over: Cell, software: SoftwareEffect | None) -> Iterator[Term]:
    """Yield all other versions as one term, since their size is known together."""
    versions = {name for cell in (of, over) for name, _ in cell.stack.versions}
    found = [each for each in stack_differences((of.stack, over.stack)) if each[0] not in _BUILD]
    moved = [each for each in found if each[0] in versions]
    if moved:
        here, there = (", ".join(f"{name} {sides[at]}" for name, sides in moved) for at in (0, 1))
        yield Term(SOFTWARE, here, there, math.log1p(software.high) if software else None)
    for name, (here, there) in (each for each in found if each not in moved):
        yield Term(name, here, there)
