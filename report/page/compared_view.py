"""A comparison as the page shows it: its sides and works by their names, and the place of each side."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.record import Factor
from harness.summary.trial_devices import used_cards
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.comparison import ComparedSide, ComparedWork, Comparison, MeanRatio, MissingFigure, Places
from report.compare.ratio import WorkRatio
from report.page.filters import distinction, setting_words
from report.page.values import NamedSystem, Quantity, Systems, quantity
from report.trials.factors import FACTORS, loader_of
from report.trials.key import Key

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


@dataclass(frozen=True)
class ComparedView:
    """A comparison by the names of its sides and works, those of most sides first."""

    comparison: Comparison
    sides: tuple[NamedSystem, ...]
    works: tuple[ShownWork, ...]
    turned: bool = False
    """Whether each ratio is that of its base over the side, as the headline says it."""

    @property
    def many(self) -> bool:
        """Whether there are more sides than a table has columns, or a picture groups of bars."""
        return len(self.sides) > MOST_COLUMNS

    @property
    def by_rows(self) -> bool:
        """Whether the sides are rows of the table: where they are many, or the data choose which leads."""
        return self.many or (not self.ordered and len(self.sides) > 2)

    @property
    def ordered(self) -> bool:
        """Whether the sides were asked for in an order, and the data choose no leader."""
        return FACTORS[self.comparison.factor].order is not None

    def headline_ratio(self, work: ShownWork, at: int) -> WorkRatio | None:
        """Return a work's ratio of one side and its base, in the headline's direction."""
        ratio = work.ratios[at]
        return ratio.inverse if ratio and self.turned else ratio

    @property
    def ratios(self) -> list[WorkRatio]:
        """Every ratio of its works."""
        return [ratio for work in self.works for ratio in work.ratios if ratio]

    @property
    def cells(self) -> list[Cell]:
        """Every cell of its works."""
        return [cell for work in self.works for cell in work.of.cells if cell]

    @cached_property
    def standings(self) -> list[PlacedSide]:
        """The sides by their times over the fastest's in the works that both did, the fastest first.

        Of sides in an order the first work alone counts, as it does in the headline.
        """
        comparison, sides = self.comparison, range(len(self.sides))
        placed = [at for at in sides if any(at in work.placed for work in comparison.works)]
        timed = [at for at in sides if self.works[0].of.cells[at]] if self.ordered else placed or [*sides]
        base = timed[0]
        speeds = {at: ratio.estimate for at in timed if (ratio := self._ratio(at, base))}
        fastest = max(speeds, key=lambda at: speeds[at], default=base)
        rows = []
        for at in sides:
            ratio = self._ratio(fastest, at) if at != fastest and at in speeds else None
            time = Quantity(1.0, "ratio") if at == fastest else quantity(ratio) if ratio else None
            rows.append(PlacedSide(at, comparison.places[at], time, ratio.n if ratio else (0, 0)))
        return sorted(rows, key=lambda row: (row.time is None, (row.time and row.time.value) or 0.0))

    def _ratio(self, of: int, over: int) -> MeanRatio | WorkRatio | None:
        if self.ordered:
            return self.comparison.ratio(self.works[0].of, of, over)
        return self.comparison.mean_of_works(of, over)


def view_comparison(comparison: Comparison, analysis: Analysis, systems: Systems) -> ComparedView:
    """Return a comparison as the page shows it."""
    works = sorted(comparison.works, key=lambda work: -sum(cell is not None for cell in work.cells))
    firsts = [next(cell for cell in work.cells if cell) for work in works]
    names = named_works(firsts, [work.key for work in works])
    done_on = [systems.of(cell).name for cell in firsts]
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
    copies = {at for at in places if dict(comparison.sides[at].values).get("parallel") == "each"}
    ratios = tuple(comparison.ratio(work, at, base) if at not in copies | {base} else None for at in places)
    reasons = {id(each.side): each for each in comparison.missing if each.work == work}
    missing = tuple(reasons.get(id(side)) for side in comparison.sides)
    return ShownWork(name, short, work, base, ratios, missing)


def view_others(analysis: Analysis, systems: Systems) -> Sequence[ComparedView] | None:
    """Return the comparisons by what else differs; null where nothing does."""
    found = [view_comparison(comparison, analysis, systems) for comparison in analysis.beside]
    by_two = [tuple(work for work in view.works if any(work.ratios)) for view in found]
    return [replace(view, works=works) for view, works in zip(found, by_two, strict=True)] or None


# Names

WAYS = {
    "dp": "DataParallel",
    "ddp": "DistributedDataParallel",
    "fsdp": "FSDP",
    "each": "independent copies",
}
"""How several devices share a step, by the workload's word."""


def way_name(cell: Cell) -> str:
    """Return how its devices share a step, in the framework's own words where it has them; empty for one."""
    measured = cell.trials[0].record.measurement
    if measured is None or not measured.parallel or cell.key.gpus < 2:
        return ""
    own = measured.framework.ways.get(measured.parallel) if measured.framework else None
    return own or WAYS.get(measured.parallel, "")


def named_sides(comparison: Comparison, analysis: Analysis, systems: Systems) -> tuple[NamedSystem, ...]:
    """Each side with its name and colour: a machine's own, else one by its place."""
    factor, sides = comparison.factor, comparison.sides
    if factor == "machine":
        cells = (next((c for w in comparison.works if (c := w.cells[at])), None) for at in range(len(sides)))
        found = [
            systems.of(cell)
            if cell
            else NamedSystem(side.machine, side.card, text.short_card(side.card), 1, side.own)
            for cell, side in zip(cells, sides, strict=True)
        ]
        several = len(set(found)) < len(found)
        return tuple(map(_session_system, found, sides)) if several else tuple(found)
    names = _stack_names(comparison, analysis) if factor == "stack" else None
    name = _NAMES.get(factor, _value_name)
    return tuple(
        NamedSystem(side.machine, side.card, names[at] if names else name(side), at, own=side.own)
        for at, side in enumerate(sides)
    )


def _session_system(system: NamedSystem, side: ComparedSide) -> NamedSystem:
    """'EPYC of 20261121-cb7a72': the machine in one of the sessions that were named together."""
    return replace(system, name=f"{system.name} of {dict(side.values)['session']}")


def _value_name(side: ComparedSide) -> str:
    """'fp16-master', 'B'"""
    return text.clean(", ".join(str(value) for _, value in side.values) or "default", 40)


def _devices_name(side: ComparedSide) -> str:
    """'4 processes' of one processor, '4 devices (DistributedDataParallel)'"""
    cell = side.cells[0] if side.cells else None
    count = int(dict(side.values).get("gpus") or 1)
    if cell is None or cell.trials[0].environment.device == "cpu":
        way = dict(side.values).get("parallel")
        way = "speed of each copy" if way == "each" else way
        return text.count(count, "process", "processes") + (f" ({way})" if way else "")
    way = f"{way_name(cell)}{', speed of one' if dict(side.values).get('parallel') == 'each' else ''}"
    return text.count(count, "device") + (f" ({way})" if count > 1 else "")


def _framework_name(side: ComparedSide) -> str:
    measured = side.cells[0].trials[0].record.measurement if side.cells else None
    used, value = measured.framework if measured else None, dict(side.values).get("framework", "")
    way = way_name(side.cells[0]) if side.cells else ""
    name = text.clean(used.name if used else value, 40)
    # Two workloads may train by one framework.
    return f"{name} ({way})" if way else name


def _batch_name(side: ComparedSide) -> str:
    """'batch 32', 'batch 384 (as if on 12 devices)'"""
    values = dict(side.values)
    ranks, size = values.get("virtual_ranks"), values.get("batch_size")
    return batch_of_devices(int(size or 0), int(ranks)) if ranks else f"batch {size}"


def batch_of_devices(size: int, devices: int) -> str:
    """Return the name of a batch that so many devices would share, each with `size` of it."""
    name = f"batch {text.grouped_digits(size * devices)}"
    return f"{name} (as if on {devices} devices)" if devices > 1 else name


def _loader_name(side: ComparedSide) -> str:
    """'6 processes', 'data from the host'"""
    values = dict(side.values)
    label = loader_of(side.cells[0].trials[0]) if side.cells else ""
    kind, _, count = label.rpartition(", ")[2].partition(": ")
    if count.isdecimal() and kind in _LOADS_BY:
        return text.count(int(count), _LOADS_BY[kind], kind)
    named = [f"{name} {value}" for name, value in side.values if name != "data_mode"]
    mode = str(values.get("data_mode"))
    return text.clean(", ".join(named), 40) or _DATA.get(mode) or text.clean(f"{mode} data", 40)


_DATA = {"device": "data on the device", "host": "data from the host"}
_LOADS_BY = {"processes": "process", "threads": "thread"}


def _unit_name(side: ComparedSide) -> str:
    gpu = next((gpu for cell in side.cells for gpu in used_cards(cell.trials[0].record)), None)
    name = f"card {gpu.index} ({gpu.bus})" if gpu and gpu.bus else str(dict(side.values).get("unit"))[:6]
    return f"{text.short_card(side.card)} {name}"


_NAMES: Mapping[Factor, Callable[[ComparedSide], str]] = {
    "gpus": _devices_name,
    "framework": _framework_name,
    "batch": _batch_name,
    "loader": _loader_name,
    "model": lambda side: text.model_name(str(dict(side.values)["model"])),
    "unit": _unit_name,
}


def _stack_names(comparison: Comparison, analysis: Analysis) -> tuple[str, ...]:
    """'torch 2.13.0' and 'torch 2.12.1' where packages alone were asked for, else images."""
    session = analysis.leading_session
    asked = session.against.asked if session and session.against else ()
    pins = [word.partition("==")[0] for word in asked if "==" in word and not word.startswith("env:")]
    second = ", ".join(word.removeprefix("env:").replace("==", " ").replace(":", " ") for word in asked)
    packages = packages_of(comparison.sides[0].cells)
    first = ", ".join(f"{name} {packages[name]}" for name in pins if name in packages)
    if len(pins) < len(asked) or not first:
        first = f"image {dict(comparison.sides[0].values).get('environment')}"
    return text.clean(first, 60), text.clean(second, 60)


def packages_of(cells: Sequence[Cell]) -> Mapping[str, str]:
    """The packages that a side's first measured trial found; empty where it has none."""
    measured = (trial.record.measurement for cell in cells for trial in cell.trials)
    return next((each.packages for each in measured if each and each.packages), {})


@dataclass(frozen=True, slots=True)
class WorkName:
    """A work's model, its precision, and what else distinguishes it from the others."""

    model: str
    precision: str
    apart: str

    def __str__(self) -> str:
        """'ResNet-18, fp32-ieee, tuned'"""
        return ", ".join(filter(None, (self.model, self.rest)))

    def on(self, system: str) -> WorkName:
        """Return the name of the work that this system did."""
        return replace(self, apart=", ".join(filter(None, (self.apart, system))))

    @property
    def rest(self) -> str:
        """All but the model."""
        return ", ".join(filter(None, (self.precision, self.apart)))


def named_works(cells: Sequence[Cell], keys: Sequence[Key] = ()) -> list[WorkName]:
    """Return the name of each cell's work, with what distinguishes works of one model.

    `keys` stand for the cells' own where a factor is left out of them.
    """
    keys = keys or [cell.key for cell in cells]
    settings = len({setting_words(key) for key in keys}) > 1
    found = []
    for cell, key in zip(cells, keys, strict=True):
        alike = [other for other in keys if other.precision == key.precision]
        words = setting_words(key, cell.stack.device) if settings else ""
        rest = f"{words}{distinction(key, alike)}"
        found.append(WorkName(text.model_name(key.model), key.precision, rest.removeprefix(", ")))
    return found
