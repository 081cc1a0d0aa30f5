"""One metric of a line: which of its runs count, and their mean and interval."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from report.stats.intervals import Interval, Runs, blocks_interval
from report.trials.trial import PROVEN, most_proven

VERDICTS = (*PROVEN, "unproven", "invalid")


class Run(NamedTuple):
    """One run's value, the block of time that it belongs to, and its verdict."""

    value: float
    block: int
    verdict: str


@dataclass(frozen=True, slots=True)
class Figure:
    """The runs of one metric: every value is kept, the mean and interval use the values that count."""

    values: tuple[float, ...]
    blocks: tuple[int, ...] = ()
    """The block of time that each value belongs to; empty where blocks play no part."""
    mean: float | None = None
    """The mean of the blocks' means."""
    interval: Interval | None = None
    unproven: Runs | None = None
    """The unproven runs, where they take no part in the mean."""

    @property
    def n(self) -> int:
        return len(self.values)

    @property
    def relative_width(self) -> float:
        """Return the width of its interval over its mean; 0 without one."""
        ends = self.interval
        return (ends.high - ends.low) / ends.estimate if ends and ends.estimate else 0.0

    @property
    def runs(self) -> Runs:
        """Return the runs that count."""
        return Runs(self.values, self.blocks)

    @property
    def with_unproven(self) -> Runs:
        """Return the runs that count, and the unproven ones."""
        if self.unproven is None:
            return self.runs
        return Runs(self.values + self.unproven.values, self.blocks + self.unproven.blocks)


def figure_of_runs(runs: Sequence[Run], without: Collection[str], *, in_blocks: bool) -> Figure:
    """Return the figure of all values; runs with a verdict in `without` are not in its mean.

    `in_blocks` says that another hour of the machine may change the values.
    """
    if not runs:
        return Figure(())
    counted = _runs_with(runs, [verdict for verdict in VERDICTS if verdict not in without], in_blocks)
    interval = _mean_interval(counted)
    return Figure(
        values=counted.values,
        blocks=counted.blocks,
        mean=interval.estimate if interval else counted.mean,
        interval=interval,
        unproven=_runs_with(runs, ["unproven"], in_blocks) if "unproven" in without else None,
    )


def verdicts_left_out(verdicts: Sequence[str], rates: Sequence[Run]) -> frozenset[str]:
    """Return the verdicts whose trials take no part: invalid, and unproven next to three or more proven ones.

    Whether a speed settled goes with how high it is. So unproven trials stay in where the mean of the `rates`
    would be another without them: where with them it is outside the interval of the proven ones.
    """
    unproven, proven = verdicts.count("unproven"), sum(verdict in PROVEN for verdict in verdicts)
    if not unproven or not most_proven(proven, unproven):
        return frozenset({"invalid"})
    interval = _mean_interval(_runs_with(rates, PROVEN, True))
    together = _runs_with(rates, (*PROVEN, "unproven"), True).mean
    if interval is not None and together is not None and not interval.includes(together):
        return frozenset({"invalid"})
    return frozenset({"invalid", "unproven"})


def _runs_with(runs: Sequence[Run], verdicts: Collection[str], in_blocks: bool) -> Runs:
    chosen = [run for run in runs if run.verdict in verdicts]
    blocks = tuple(run.block for run in chosen) if in_blocks else ()
    return Runs(tuple(run.value for run in chosen), blocks)


def _mean_interval(runs: Runs) -> Interval | None:
    """The interval of the mean; what cannot be below zero is not said to be."""
    interval = blocks_interval(runs, paired=True, logs=False)
    if interval is None or interval.low >= 0 or min(runs.values) < 0:
        return interval
    return replace(interval, low=0.0)
