"""A comparison as the page shows it: its sides and works by their names, and the place of each side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.comparison import ComparedWork, Comparison, MissingFigure, Places
from report.compare.ratio import WorkRatio
from report.page.side_names import WorkName, named_sides, named_works
from report.page.values import NamedSystem, Quantity, Systems, quantity
from report.trials.factors import FACTORS

MOST_COLUMNS = 4
"""More sides are rows of the table, and dots of one strip."""


def speed_of_all_runs(cell: Cell | None) -> float:
    """Return the mean speed of all runs that are not invalid; 0 without one."""
    return (cell.all_runs.mean or 0.0) if cell else 0.0


@dataclass(frozen=True, slots=True)
class ShownWork:
    """One work: how many times as fast each side is as the first that did it, and why others have nothing."""

    name: WorkName
    short: str
    """Its name in a sentence, without a precision that all works have."""
    of: ComparedWork
    base: int
    """The place of the side that the ratios are over."""
    ratios: tuple[WorkRatio | None, ...]
    missing: tuple[MissingFigure | None, ...]

    @property
    def fastest(self) -> int:
        """The place of the side with the highest speed."""
        return max(range(len(self.of.cells)), key=lambda at: speed_of_all_runs(self.of.cells[at]))


@dataclass(frozen=True, slots=True)
class PlacedSide:
    """A side by its place among the sides, with its time over the fastest's and the places of its ranges."""

    side: int
    places: Places | None
    time: Quantity | None
    runs: tuple[int, int]
    """The fewest processes of a work, of the fastest and of the side."""


@dataclass(frozen=True, slots=True)
class ComparedView:
    """A comparison by the names of its sides and works, those of most sides first."""

    comparison: Comparison
    sides: tuple[NamedSystem, ...]
    works: tuple[ShownWork, ...]

    @property
    def by_rows(self) -> bool:
        """Whether the sides are rows of the table."""
        return len(self.sides) > MOST_COLUMNS

    @property
    def ordered(self) -> bool:
        """Whether the sides were asked for in an order, and the data choose no leader."""
        return FACTORS[self.comparison.factor].order is not None

    @property
    def compared(self) -> tuple[ShownWork, ...]:
        """The works that two sides did at least."""
        return tuple(work for work in self.works if any(work.ratios))

    @property
    def ratios(self) -> list[WorkRatio]:
        """Every ratio of its works."""
        return [ratio for work in self.works for ratio in work.ratios if ratio]

    @property
    def cells(self) -> list[Cell]:
        """Every cell of its works."""
        return [cell for work in self.works for cell in work.of.cells if cell]

    @property
    def standings(self) -> list[PlacedSide]:
        """The sides by their times over the fastest's in the works that both did, the fastest first."""
        comparison, sides = self.comparison, range(len(self.sides))
        ordered = [at for at in sides if any(at in work.placed for work in comparison.works)] or [*sides]
        base = ordered[0]
        speeds = {at: ratio.estimate for at in ordered if (ratio := comparison.mean_of_works(at, base))}
        fastest = max(speeds, key=lambda at: speeds[at], default=base)
        rows = []
        for at in sides:
            ratio = comparison.mean_of_works(fastest, at) if at != fastest and at in speeds else None
            time = Quantity(1.0, "ratio") if at == fastest else quantity(ratio) if ratio else None
            rows.append(PlacedSide(at, comparison.places[at], time, ratio.n if ratio else (0, 0)))
        return sorted(rows, key=lambda row: (row.time is None, (row.time and row.time.value) or 0.0))


def view_comparison(comparison: Comparison, analysis: Analysis, systems: Systems) -> ComparedView:
    """Return a comparison as the page shows it."""
    works = sorted(comparison.works, key=lambda work: -sum(cell is not None for cell in work.cells))
    names = named_works([work.key for work in works])
    done_on = [next(systems.of(cell).name for cell in work.cells if cell) for work in works]
    if comparison.factor != "machine" and len(set(done_on)) > 1:
        names = [name.on(system) for name, system in zip(names, done_on, strict=True)]
    alike = len({work.key.precision for work in works}) == 1
    shown = [_shown_work(work, name, comparison, alike) for work, name in zip(works, names, strict=True)]
    return ComparedView(comparison, named_sides(comparison, analysis, systems), tuple(shown))


def _shown_work(work: ComparedWork, name: WorkName, comparison: Comparison, alike: bool) -> ShownWork:
    """Return one work by its name; `alike` says that all works have one precision."""
    in_precision = f"in {name.precision}" if name.precision and not alike else ""
    short = " ".join(filter(None, (name.model, in_precision, name.apart and f"({name.apart})")))
    base = next(at for at, cell in enumerate(work.cells) if cell)
    places = range(len(comparison.sides))
    ratios = tuple(comparison.ratio(work, at, base) if at != base else None for at in places)
    reasons = {id(each.side): each for each in comparison.missing if each.work == work}
    missing = tuple(reasons.get(id(side)) for side in comparison.sides)
    return ShownWork(name, short, work, base, ratios, missing)


def view_others(analysis: Analysis, systems: Systems) -> Sequence[ComparedView] | None:
    """Return the comparisons by what else differs; null where nothing does."""
    found = (view_comparison(comparison, analysis, systems) for comparison in analysis.beside)
    return [replace(view, works=view.compared) for view in found] or None
