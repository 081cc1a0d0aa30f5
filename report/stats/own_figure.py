"""When a program of one's own was measured for long enough: looks at its runs after each process.

The first look is at the fifth process. As runs are looked at again and again, each look has 97.5 %, and the
range that ends it covers at least `LEVEL`. Two sides that take turns on a device are looked at four times, so
that each look has 98.75 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from harness.record.trial_spec import StackKey
from report.stats.contrast import (
    HOUR_SIDE_BY_SIDE,
    LEAST_PROCESSES,
    Assumption,
    Order,
    contrast_interval,
    order_shown,
)
from report.stats.intervals import LEVEL, Interval, Runs, blocks_interval

LOOKS_COUNTED = 2
"""As so many comparisons the looks count."""
LOOK_LEVEL = 1 - (1 - LEVEL) / LOOKS_COUNTED
LEAST_RUNS = 5
"""Processes of one side before its range is looked at."""
SLICED_LOOKS = (4, 6, 8, 10)
"""After so many restarts a new session looks at two sides that take turns on a device."""

TryState = Literal["nothing", "too-few", "wide", "narrow", "other-units"] | Order


@dataclass(frozen=True, slots=True)
class SideRuns:
    """The speeds of one side by our clock, in samples or steps a second, with the round of each."""

    name: str
    stack: StackKey
    repeats: tuple[int, ...]
    rates: tuple[float, ...]
    unit: str
    printed: tuple[float, ...] = ()
    """The samples a second that it printed in each round; empty where it printed none."""
    printed_unit: str = ""

    @property
    def runs(self) -> Runs:
        """Return the runs of this hour: their spread is what is known of it."""
        return Runs(self.rates)


@dataclass(frozen=True, slots=True)
class TryAnswer:
    """What the runs say until now: each side's speed, and the first over the second."""

    state: TryState
    sides: tuple[tuple[SideRuns, Interval | None], ...]
    ratio: Interval | None = None

    @property
    def is_enough(self) -> bool:
        """Return whether no further process is needed."""
        return self.state in ("narrow", "faster", "slower", "equal")


def answer_of(sides: Sequence[SideRuns], within: float, looks: Sequence[int] = ()) -> TryAnswer:
    """Return what one side's or two sides' runs say; `within` is the half-width that is narrow enough.

    Two sides that took turns are looked at after so many restarts alone, `looks`; without them, after each.
    """
    figures = tuple((side, blocks_interval(side.runs, level=LOOK_LEVEL)) for side in sides)
    if not sides:
        return TryAnswer("nothing", ())
    if len(sides) == 1:
        return TryAnswer(_state_of_one(sides[0], figures[0][1], within), figures)
    first, second = map(_in_samples, sides) if sides[0].name != sides[1].name else sides
    if first.unit != second.unit or (first.unit == "step" and first.name != second.name):
        return TryAnswer("other-units", figures)
    of, over = looked_runs(Runs(first.rates, first.repeats), Runs(second.rates, second.repeats), looks)
    hour = Assumption("hour", HOUR_SIDE_BY_SIDE)
    ratio = contrast_interval(of, over, paired=True, assumed=[hour], comparisons=len(looks) or LOOKS_COUNTED)
    if ratio is None or len(of.values) < LEAST_PROCESSES:
        return TryAnswer("too-few", figures)
    return TryAnswer(order_shown(ratio, len(of.values)), figures, ratio)


def looked_runs(of: Runs, over: Runs, looks: Sequence[int]) -> list[Runs]:
    """Return the runs of repeats that both sides have, up to the last of `looks`; without them all."""
    both = sorted(set(of.blocks) & set(over.blocks))
    seen = both[: max((look for look in looks if look <= len(both)), default=0)] if looks else both
    return [
        Runs(tuple(side.values[side.blocks.index(at)] for at in seen), tuple(seen)) for side in (of, over)
    ]


def _in_samples(side: SideRuns) -> SideRuns:
    """Return another command's speeds in samples: by what a step holds, else as it prints them itself."""
    if side.unit != "step" or not side.printed:
        return side
    return replace(side, rates=side.printed, unit=side.printed_unit)


def _state_of_one(side: SideRuns, found: Interval | None, within: float) -> TryState:
    if found is None or len(side.rates) < LEAST_RUNS:
        return "too-few"
    narrow = found.high / found.estimate - 1 <= within and 1 - found.low / found.estimate <= within
    return "narrow" if narrow else "wide"
