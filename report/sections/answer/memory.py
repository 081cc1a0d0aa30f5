"""How much memory each work takes, on each of the systems that page one compares."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from report import text
from report.analysis import Analysis
from report.comparisons.cells import Cell
from report.trials.key import Key
from report.trials.pairs import grouped_by

MOST_WORKS = 3
"""Works whose memory page one tells, the largest first."""


def memory(analysis: Analysis, among: Sequence[Cell]) -> Iterator[str]:
    """The peak of each work in the precision that takes the most, a sentence for each work."""
    cells = [cell for cell in among if cell.peak_bytes.mean is not None]
    works = grouped_by(cells, lambda cell: (cell.key.workload, cell.key.model, cell.key.protocol)).values()
    largest = sorted(works, key=lambda members: -max(map(_peak, members)))
    yield from (_work(members, analysis, [cell.key for cell in cells]) for members in largest[:MOST_WORKS])
    if len(largest) > MOST_WORKS:
        yield f"{text.count(len(largest) - MOST_WORKS, 'more work')} below need less."


def on(analysis: Analysis, cell: Cell) -> str:
    """' on the RTX 4090' where a page compares several systems; else empty."""
    for each in analysis.expectations[:1]:
        for system in (each.fast, each.slow):
            if (system.machine, system.card) == (cell.machine, cell.card):
                return f" on {text.the(system.name)}"
        return f" on {text.the(text.short_card(cell.card))}"
    return ""


def _work(members: list[Cell], analysis: Analysis, among: list[Key]) -> str:
    """'ResNet-50 takes up to 5.59 GiB of memory on the RTX 4090 (fp32-ieee) and 3.2 GiB on the …'"""
    places = grouped_by(members, lambda cell: on(analysis, cell))
    most = {place: max(cells, key=_peak) for place, cells in places.items()}
    written = {place: f"{text.gibibytes(_peak(cell))}" for place, cell in most.items()}
    key = members[0].key
    named = (key.workload, key.model)
    protocols = {other.protocol for other in among if (other.workload, other.model) == named}
    under = f", protocol {text.clean(key.protocol, 40)}" if len(protocols) > 1 else ""
    opening = f"{text.model_name(key.model)}{under} takes up to"
    precisions = {cell.key.precision for cell in most.values()}
    alike = f" (in {next(iter(precisions))})" if len(precisions) == 1 else ""
    if len(places) > 1 and len(set(written.values())) == 1 and alike:
        each = f"{next(iter(written.values()))} of memory on each of the two"
    else:
        own = {place: "" if alike else f" ({cell.key.precision})" for place, cell in most.items()}
        each = " and ".join(f"{peak}{place}{own[place]}" for place, peak in written.items())
        each = each.replace("GiB", "GiB of memory", 1).replace("MiB", "MiB of memory", 1)
    return f"{opening} {each}{alike}."


def _peak(cell: Cell) -> float:
    return cell.peak_bytes.mean or 0.0
