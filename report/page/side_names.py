"""How the page calls the sides of a comparison, and the works that they did."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.record import Factor
from harness.summary.trial_devices import used_cards
from report import text
from report.analysis import Analysis
from report.compare.cells import Cell
from report.compare.comparison import ComparedSide, Comparison
from report.page.filters import distinction, setting_words
from report.page.values import NamedSystem, Systems
from report.trials.key import Key

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
            systems.of(cell) if cell else _system_without_figure(side)
            for cell, side in zip(cells, sides, strict=True)
        ]
        several = len(set(found)) < len(found)
        return tuple(map(_session_system, found, sides)) if several else tuple(found)
    names = _stack_names(comparison, analysis) if factor == "stack" else None
    name = _NAMES.get(factor, _value_name)
    values = [dict(side.values) for side in sides]
    unnamed = None
    if factor == "loader" and len({each["data_mode"] for each in values}) == 1:
        unnamed = "the default"
    if factor == "batch" and any("virtual_ranks" in each for each in values):
        unnamed = "the batch of 1 device"
    if unnamed:
        names = tuple(name(side) if len(side.values) > 1 else unnamed for side in sides)
    return tuple(
        NamedSystem(side.machine, side.card, names[at] if names else name(side), at, own=side.own)
        for at, side in enumerate(sides)
    )


def _session_system(system: NamedSystem, side: ComparedSide) -> NamedSystem:
    """'EPYC of 20261121-cb7a72': the machine in one of the sessions that were named together."""
    return replace(system, name=f"{system.name} of {dict(side.values)['session']}")


def _system_without_figure(side: ComparedSide) -> NamedSystem:
    """One without a figure."""
    return NamedSystem(side.machine, side.card, text.short_card(side.card), 1, own=side.own)


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
    values = dict(side.values)
    ranks = values.get("virtual_ranks")
    return f"the batch of {ranks} devices" if ranks else f"batch {values.get('batch_size')}"


def _loader_name(side: ComparedSide) -> str:
    values = dict(side.values)
    workers = values.get("workers")
    parts = [str(values["loader"])] if "loader" in values else []
    parts += [text.count(int(workers), "worker")] if workers is not None else []
    return text.clean(", ".join(parts) or f"{values['data_mode']} data", 40)


def _model_side(side: ComparedSide) -> str:
    return text.model_name(str(dict(side.values)["model"]))


def _unit_name(side: ComparedSide) -> str:
    gpu = next((gpu for cell in side.cells for gpu in used_cards(cell.trials[0].record)), None)
    name = f"card {gpu.index} ({gpu.bus})" if gpu and gpu.bus else str(dict(side.values).get("unit"))[:6]
    return f"{text.short_card(side.card)} {name}"


_NAMES: Mapping[Factor, Callable[[ComparedSide], str]] = {
    "gpus": _devices_name,
    "framework": _framework_name,
    "batch": _batch_name,
    "loader": _loader_name,
    "model": _model_side,
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


def named_works(keys: Sequence[Key]) -> list[WorkName]:
    """Return the name of each work, with what distinguishes works of one model."""
    settings = len({setting_words(key) for key in keys}) > 1
    found = []
    for key in keys:
        alike = [other for other in keys if other.precision == key.precision]
        rest = f"{setting_words(key) if settings else ''}{distinction(key, alike)}"
        found.append(WorkName(text.model_name(key.model), key.precision, rest.removeprefix(", ")))
    return found
