"""How far each trial got, by stage, with the cause at its end."""

from __future__ import annotations

from dataclasses import dataclass

from report.charts.bars import Bar, Bars, Group
from report.charts.marks import KeyEntry
from report.charts.sheet import Sheet
from report.charts.style import Layout


@dataclass(frozen=True, slots=True)
class Trials:
    """Trials that ended alike: how many stages they reached, what ended them, and how many they are."""

    label: str
    reached: int
    cause: str
    count: str = ""
    note: str = ""
    slot: int = 0


@dataclass(frozen=True, slots=True)
class Stages:
    """Bars over the names of the stages; one that reached the last has no cause, and is solid."""

    trials: tuple[Trials, ...]
    stages: tuple[str, ...]
    axis: str = ""
    key: tuple[KeyEntry, ...] = ()

    def sheet(self, layout: Layout) -> Sheet:
        """As bars are drawn."""
        bars = tuple(
            Bar(
                trials.label,
                "failed" if trials.cause else "own",
                float(trials.reached),
                text=trials.cause,
                small=trials.count,
                note=trials.note,
                slot=trials.slot,
            )
            for trials in self.trials
        )
        ticks = tuple((float(n), name) for n, name in enumerate(self.stages, 1))
        return Bars((Group("", bars),), self.axis, self.key, None, ticks=ticks).sheet(layout)
