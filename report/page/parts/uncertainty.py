"""How sure the page is: what was learned, and what to keep in mind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from report.analysis import Analysis
from report.compare.cells import Cell, fewest_runs
from report.compare.precisions import Parity, early_gates, parities
from report.page.filters import of_each_key, work_name
from report.stats.intervals import Doubt, outlying_run, rare_runs_missed
from report.trials.key import grouped_by


@dataclass(frozen=True, slots=True)
class UncertaintyView:
    """All that speaks against the figures."""

    caveats: tuple[Doubt, ...]
    learning: tuple[tuple[str, Parity, str], ...]
    """By the name of a work whether a precision ends as well as fp32, and its first steps.

    These follow, depart, or are unknown.
    """


def view(analysis: Analysis) -> UncertaintyView | None:
    """Return how sure the page's cells are; null where nothing speaks against them."""
    found = UncertaintyView(
        caveats=tuple(_caveats(analysis, analysis.page_cells)),
        learning=tuple(_learned_as_well(analysis)),
    )
    problems = analysis.evidence.results.problems
    return found if found.caveats or found.learning or problems else None


def _learned_as_well(analysis: Analysis) -> Iterator[tuple[str, Parity, str]]:
    """Compare what each half-precision cell of this machine learned with full precision, where known."""
    gates = {trial.path: gate for trial, gate in early_gates(analysis.shown)}
    own = [parity for parity in parities(analysis.page_cells) if parity.of in analysis.own_cells]
    among = [parity.of for parity in own]
    for parity in own:
        words = {gates.get(trial.path, "unknown") for trial in parity.of.trials}
        first = next(word for word in ("departs", "follows", "unknown") if word in words)
        if first != "unknown" or parity.unjudged is None:
            yield work_name(parity.of, among), parity, first


def _caveats(analysis: Analysis, cells: Sequence[Cell]) -> Iterator[Doubt]:
    of_models = grouped_by(cells, lambda cell: cell.card).values()
    if any(0 < len({unit for cell in same for unit in cell.units}) < 3 for same in of_models):
        yield Doubt("few-units")
    if rare := rare_runs_missed(fewest_runs(cells)):
        yield rare
    odd = [cell for cell in cells if outlying_run(cell.seconds.values)]
    if odd:
        yield Doubt("odd-run", {"works": _work_names(odd, cells)})
    ratios = analysis.comparison.ratios if analysis.comparison else ()
    unequal = [
        ratio.of
        for ratio in ratios
        if ratio.interval and any(note.name == "unequal-spread" for note in ratio.interval.notes)
    ]
    if unequal:
        yield Doubt("unequal-spread", {"works": _work_names(unequal, cells)})


def _work_names(some: Sequence[Cell], among: Sequence[Cell]) -> tuple[str, ...]:
    keys = of_each_key(among)
    return tuple(dict.fromkeys(work_name(cell, keys) for cell in of_each_key(some)))
