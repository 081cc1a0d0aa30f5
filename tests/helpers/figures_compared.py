"""Adapters for what stands beside what: groups, speed-ups, sweeps, scaling, and what to expect of a pair."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from report.analysis import Analysis
from report.compare import batch_sweeps as batch_sweep
from report.compare import scaling
from report.compare import side_by_side as compare
from report.compare.batch_sweeps import BatchSweep
from report.compare.cells import Cell, Ratio, cell_ratio, time_breakdown
from report.compare.groups import ComparisonGroup, GroupEntry
from report.compare.key import MEASURED_FIELDS
from report.compare.pairs import Expectation, SpeedRange
from report.compare.pairs import System as Party
from report.compare.scaling import Scaling
from report.compare.side_by_side import TwoSides
from report.compare.spread import UnitSpread, unit_band
from report.text import clean, short_card
from report.trials.key import without
from tests.helpers.figures_read import (
    band,
    figure,
    first_trial,
    key,
    length,
    ratio,
    trial,
    trials_of,
    workloads,
)

METRICS = {
    "protocol_seconds": "seconds",
    "epoch_seconds": "epoch_seconds",
    "samples_per_second": "throughput",
    "step_seconds": "step_seconds",
    "quality": "quality",
    "validation_loss": "valid_loss",
    "training_loss": "train_loss",
    "smoothed_training_loss": "smoothed_train_loss",
    "test_quality": "test_quality",
    "peak_bytes": "peak_bytes",
    "input_wait_share": "input_share",
    "host_share": "host_share",
    "joules_per_sample": "joules",
}
COMPARED = ("protocol_seconds", "samples_per_second")
"""Of all members; the others are of the group's reference alone."""


def sessions_standing(analysis: Analysis) -> list[str]:
    """The leading session, and every one of which a trial stands beside it."""
    return sorted({row.session for row in analysis.shown} | ({analysis.lead} if analysis.lead else set()))


def groups(analysis: Analysis) -> list[Any]:
    """Workload by workload."""
    ordered = [one for name in workloads(analysis) for one in analysis.groups if one.base.workload == name]
    return [_group(group, analysis) for group in ordered]


def _group(group: ComparisonGroup, analysis: Analysis) -> dict[str, Any]:
    return {
        "key": key(group.base),
        "protocol_length": length(group.length),
        "baseline_missing": group.baseline_missing,
        "members": [_member(line, group, analysis) for line in group.entries],
        "failed": [trial(row.path) for row in group.failed],
        "published": [claim.id for claim in group.published],
    }


def _member(line: GroupEntry, group: ComparisonGroup, analysis: Analysis) -> dict[str, Any]:
    cell, parts = line.cell, time_breakdown(line.cell)
    return {
        "trials": trials_of(cell),
        "session": cell.session,
        "machine": cell.machine,
        "machine_label": cell.machine_label,
        "card": cell.card,
        "units": cell.units,
        "precision": cell.key.precision,
        "batch": cell.key.batch_size,
        "protocol_length": None if cell.length == group.length else length(cell.length),
        "blocks": cell.blocks,
        "verdict": cell.verdict,
        "ranked": cell.ranked,
        "reference": line.reference,
        "own": line.own,
        "ratio": ratio(line.scaled),
        "ratio_of_other_units": _other_units(line, group, analysis),
        "time": parts and {"input_wait": parts.input_wait, "compute": parts.compute, "other": parts.other},
        "metrics": _metrics(cell, METRICS if line.reference else COMPARED),
    }


def _metrics(cell: Cell, names: Iterable[str]) -> dict[str, Any]:
    """Those that a trial has."""
    found = {name: figure(cell.figures[METRICS[name]]) for name in names}
    return {name: values for name, values in found.items() if values is not None}


def _other_units(line: GroupEntry, group: ComparisonGroup, analysis: Analysis) -> dict[str, Any] | None:
    """Where another unit of this card may lie; null for the reference's own unit."""
    reference = next((entry.cell for entry in group.entries if entry.reference), None)
    if reference is None or line.scaled is None:
        return None
    own = (reference.machine, reference.card)
    if (line.cell.machine, line.cell.card) == own:
        return None
    return band(unit_band(analysis.spreads.get(line.cell.card, UnitSpread())))


def left_over(analysis: Analysis) -> list[Any]:
    return [{"session": cell.session, "trials": trials_of(cell)} for cell in analysis.left_over]


def precision_speedups(analysis: Analysis) -> list[Any]:
    return [
        {
            "of": [first_trial(gain.of), gain.of.key.precision],
            "over": [first_trial(gain.over), gain.over.key.precision],
            "ratio": ratio(gain.ratio),
        }
        for gain in analysis.speedups
    ]


def batch_sweeps(analysis: Analysis) -> list[Any]:
    return [_sweep(one) for found in workloads(analysis).values() for one in batch_sweep.batch_sweeps(*found)]


def _sweep(found: BatchSweep) -> dict[str, Any]:
    largest = found.fitting[-1] if found.fitting else None
    return {
        "key": key(without(found.key, "precision", "batch_size", *MEASURED_FIELDS)),
        "precision": found.key.precision,
        "card": _unit(found.cells[0].card, found.cells[0]),
        "members": [[cell.key.batch_size, first_trial(cell), _speed(cell)] for cell in found.cells],
        "out_of_memory_at": found.out_of_memory_batch,
        "fitting": [cell.key.batch_size for cell in found.fitting],
        "largest_fitting": largest and largest.key.batch_size,
        "memory_taken_by_it": batch_sweep.reserved_share(largest) if largest else None,
        "best": found.best and found.best.key.batch_size,
    }


def _unit(card: str, cell: Cell) -> str:
    """A card in its machine. A label that ends in brackets gets no second pair."""
    label = clean(cell.machine_label, 40)
    return f"{short_card(card)}, {label}" if label.endswith(")") else f"{short_card(card)} ({label})"


def _speed(cell: Cell) -> dict[str, Any]:
    found, ends = cell.throughput, cell.throughput.interval
    return {"mean": found.mean, "low": ends and ends.low, "high": ends and ends.high, "n": found.n}


def scaling_families(analysis: Analysis) -> list[Any]:
    return [_family(one) for cells, _ in workloads(analysis).values() for one in scaling.scalings(cells)]


def _family(found: Scaling) -> dict[str, Any]:
    return {
        "key": key(found.key),
        "protocol_length": length(found.cells[0].length),
        "card": _unit(found.cells[0].trials[0].device_model, found.cells[0]),
        "members": [_shared(cell, found.single(cell.key.precision)) for cell in found.cells],
    }


def _shared(cell: Cell, single: Cell | None) -> dict[str, Any]:
    """`over_one` is all devices' throughput over that of one alone; of independent copies, of one copy."""
    over = cell_ratio(cell, single, "throughput") if single and cell is not single else None
    return {
        "devices": cell.key.gpus,
        "way": scaling.parallelism_of(cell),
        "precision": cell.key.precision,
        "first_trial": first_trial(cell),
        "samples_per_second": cell.throughput.mean,
        "over_one": ratio(over),
    }


def expectations(analysis: Analysis) -> dict[str, Any]:
    return {"pairs": [_pair(one) for one in analysis.expectations]}


def _pair(found: Expectation) -> dict[str, Any]:
    return {
        "fast": _party(found.fast),
        "slow": _party(found.slow),
        "best": found.best,
        "these_units": _range(found.units),
        "any_units": _range(found.model),
        "band": band(found.band),
        "comparisons": found.band.comparisons,
        "ranked": found.ranked,
        "tied": found.tied,
        "works": [
            [first_trial(work.of), first_trial(work.over), *_ends(work.ratio)] for work in found.benchmarks
        ],
    }


def _ends(of: Ratio) -> list[float | None]:
    ends = (of.interval.low, of.interval.high) if of.interval else (None, None)
    return [of.estimate, *ends]


def _party(of: Party) -> list[str]:
    return [of.machine, of.card]


def _range(of: SpeedRange | None) -> list[float] | None:
    return None if of is None else [of.low, of.high]


def side_by_side(analysis: Analysis) -> dict[str, Any] | None:
    """The first two machines on record, else the first two sessions; null where there are not two."""
    rows = analysis.on_record
    names = _two([row.machine for row in rows]) or _two([row.session for row in rows])
    return names and _compared(compare.compare(rows, *names))


def _two(names: Sequence[str]) -> tuple[str, str] | None:
    different = list(dict.fromkeys(names))
    return (different[0], different[1]) if len(different) > 1 else None


def _compared(found: TwoSides) -> dict[str, Any]:
    return {
        "first": found.first,
        "second": found.second,
        "pairs": [
            [first_trial(one.first), first_trial(one.second), one.metric, *_ends(one.ratio)]
            for one in found.pairs
        ],
        "apart": len(found.apart),
        "failed": found.failed,
        "stack_differences": len(found.stacks),
        "refused_at_0.95": [
            [one.name, one.what] for one in compare.gate(found, 0.95) if one.name != "undecided"
        ],
    }
