"""Which system is faster, pair by pair, and all that did the same work in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from report.analysis import Analysis
from report.compare.cells import Speedup
from report.compare.ranking import Standings
from report.expected.sizes import DifferenceSize, SystemDifference
from report.page.filters import work
from report.page.values import Systems


@dataclass(frozen=True, slots=True)
class PairsView:
    """The works of the first pair of systems, by name, and all systems that did the same."""

    works: tuple[tuple[str, Speedup], ...]
    standings: Standings | None
    sizes: tuple[DifferenceSize, ...]
    """What differs between the first two, where published pairs say what it is worth."""


def view(analysis: Analysis, systems: Systems) -> PairsView | None:
    """All pairs of the leading systems with others; null where no other system did the same work."""
    found, pairs = analysis.standings, analysis.expectations
    if not pairs and found is None:
        return None
    works = [(work(each.of, pairs[0].cells), each) for each in pairs[0].benchmarks] if pairs else []
    sizes = _sizes(pairs[0].benchmarks[0], analysis.request.sizes) if pairs else ()
    return PairsView(tuple(works), found, sizes)


def _sizes(work: Speedup, known: Mapping[SystemDifference, DifferenceSize]) -> tuple[DifferenceSize, ...]:
    """Clocks and displays count where the model of card is the same."""
    sides = [cell.trials[0].record for cell in (work.of, work.over)]
    frameworks = [record.measurement.framework if record.measurement else None for record in sides]
    gpus = [record.machine.gpus[0] if record.machine.gpus else None for record in sides]
    of_sides: dict[SystemDifference, list[object]] = {
        "software": [work.of.stack.versions, work.over.stack.versions],
        "layout": [framework.layout if framework else None for framework in frameworks],
    }
    if work.of.card == work.over.card:
        of_sides["memory clock"] = [gpu.clock_memory_max_mhz if gpu else None for gpu in gpus]
        of_sides["display"] = [gpu.display_attached if gpu else None for gpu in gpus]
    differ = [name for name, (a, b) in of_sides.items() if None not in (a, b) and a != b]
    return tuple(known[name] for name in differ if name in known)
