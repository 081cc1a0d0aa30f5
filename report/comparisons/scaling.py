"""Several devices of one machine beside a single one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from report import text
from report.comparisons.cells import Cell, Ratio, cell_ratio, repeated
from report.comparisons.groups import PRECISIONS
from report.trials.key import Key
from report.trials.pairs import LOSS_SCALE, grouped_by, same_but

PARALLELISMS = {
    "dp": "DataParallel",
    "ddp": "DistributedDataParallel",
    "fsdp": "FSDP",
    "each": "independent copies",
}
STRICT = "fp32-ieee"

_place = same_but(
    "gpus",
    "precision",
    within=(LOSS_SCALE, "length", "stack", "session", "machine", lambda cell: cell.trials[0].device_name),
)


@dataclass(frozen=True, slots=True)
class Scaling:
    """One workload on one machine, on one device and on several; the batch per device is the same."""

    key: Key
    unit: str
    cells: tuple[Cell, ...]

    def single(self, precision: str) -> Cell | None:
        """The cell of one device."""
        return next((c for c in self.cells if c.key.gpus == 1 and c.key.precision == precision), None)

    def shared(self, precision: str, way: str) -> list[Cell]:
        """Several devices, by their number."""
        cells = [c for c in self.cells if c.key.precision == precision and parallelism_of(c) == way]
        return sorted(cells, key=lambda cell: cell.key.gpus)

    def over_single(self, cell: Cell) -> Ratio | None:
        """Its throughput over one device's; the level holds for all of the workload's together."""
        single = self.single(cell.key.precision)
        if single is None or single is cell:
            return None
        pairs = [(c, alone) for c in self.cells if (alone := self.single(c.key.precision)) not in (None, c)]
        return cell_ratio(cell, single, "throughput", comparisons=sum(map(repeated, pairs)))

    def step_seconds_lost(self, cell: Cell) -> float | None:
        """What its step takes longer than that of one device alone, whose batch is the same."""
        single = self.single(cell.key.precision)
        whole, alone = step_seconds(cell), step_seconds(single) if single else None
        return None if whole is None or alone is None else whole - alone

    def lines(self) -> list[tuple[str, str]]:
        """The precisions and ways that there are, in reading order."""
        present = {(cell.key.precision, parallelism_of(cell)) for cell in self.cells}
        return [(name, way) for name in PRECISIONS for way in PARALLELISMS if (name, way) in present]


def parallelism_of(cell: Cell) -> str:
    """How the devices share the work, as the workload says; empty for one device."""
    measured = cell.trials[0].record.measurement
    return (measured.parallel if measured and cell.key.gpus > 1 else None) or ""


def step_seconds(cell: Cell) -> float | None:
    """The mean step by the throughput of all devices together."""
    measured, rate = cell.trials[0].record.measurement, cell.throughput.mean
    return measured.samples_per_step / rate if measured and rate else None


def scalings(cells: Sequence[Cell]) -> list[Scaling]:
    """The workloads that ran on several devices, each with its cells of one device."""
    usable = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean is not None]
    return [
        Scaling(
            place.key,
            text.unit_name(members[0].trials[0].device_name, members[0].machine_label),
            tuple(members),
        )
        for place, members in grouped_by(usable, _place).items()
        if any(parallelism_of(cell) for cell in members)
    ]
