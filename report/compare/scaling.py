"""Several devices compared with a single one, and with virtual ranks on one device."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from harness.record import PRECISION_ORDER
from report.compare.cells import Cell, Ratio, cell_ratio, repeated
from report.trials.key import VIRTUAL_RANKS, Key, grouped_by, without

VIRTUAL, APART = "virtual", "each"
PARALLELISMS = {
    "dp": "DataParallel",
    "ddp": "DistributedDataParallel",
    "fsdp": "FSDP",
    APART: "independent copies",
    VIRTUAL: "batch of several devices on one",
}


@dataclass(frozen=True, slots=True)
class Scaling:
    """One workload on one device and on several; the batch per device is the same.

    All are on one machine where each machine has one device's run too; else on the machines of a session,
    whose nodes are taken for alike.
    """

    key: Key
    cells: tuple[Cell, ...]

    def single(self, precision: str) -> Cell | None:
        """The cell of one device."""
        return next((c for c in self.cells if ranks_of(c) == 1 and c.key.precision == precision), None)

    def with_single(self, precision: str, way: str) -> list[Cell]:
        """One device, and of each number of devices those on the fewest nodes: one point of a line each."""
        single = self.single(precision)
        cells = [c for c in self.cells if c.key.precision == precision and parallelism_of(c) == way]
        ordered = sorted(cells, key=lambda cell: (ranks_of(cell), cell.key.nodes))
        by_number = grouped_by(ordered, ranks_of).values()
        return [*([single] if single else []), *(alike[0] for alike in by_number)]

    def over_single(self, cell: Cell) -> Ratio | None:
        """Its throughput over one device's; the level holds for all of the workload's together."""
        single = self.single(cell.key.precision)
        if single is None or single is cell:
            return None
        return cell_ratio(cell, single, "throughput", comparisons=self._pairs)

    @property
    def _pairs(self) -> int:
        real = [cell for cell in self.cells if parallelism_of(cell) != VIRTUAL]
        pairs = [(c, alone) for c in real if (alone := self.single(c.key.precision)) not in (None, c)]
        return sum(map(repeated, pairs))

    def lines(self) -> list[tuple[str, str]]:
        """The precisions and ways that there are, in reading order."""
        present = {(cell.key.precision, parallelism_of(cell)) for cell in self.cells}
        return [(name, way) for name in PRECISION_ORDER for way in PARALLELISMS if (name, way) in present]


def parallelism_of(cell: Cell) -> str:
    """How the devices share the work, as the workload says; empty for one device."""
    if _virtual_ranks(cell) > 1:
        return VIRTUAL
    measured = cell.trials[0].record.measurement
    return (measured.parallel if measured and cell.key.gpus > 1 else None) or ""


def way_name(cell: Cell) -> str:
    """The same as people write it, by the framework's own words where its record has them."""
    way, measured = parallelism_of(cell), cell.trials[0].record.measurement
    own = measured.framework.ways.get(way) if measured and measured.framework else None
    return own or PARALLELISMS.get(way, "")


def ranks_of(cell: Cell) -> int:
    """Its devices, or the virtual ranks of its one device."""
    return _virtual_ranks(cell) if _virtual_ranks(cell) > 1 else cell.key.gpus


def _virtual_ranks(cell: Cell) -> int:
    value = dict(cell.key.options).get(VIRTUAL_RANKS, 1)
    return value if isinstance(value, int) else 1


def scalings(cells: Sequence[Cell]) -> list[Scaling]:
    """The workloads that ran on several devices, each with its cells of one device."""
    usable = [cell for cell in cells if cell.verdict != "invalid" and cell.throughput.mean is not None]
    return [
        Scaling(_work(members[0]), tuple(members))
        for alike in grouped_by(usable, _place).values()
        for members in _by_machine(alike)
        if any(parallelism_of(cell) for cell in members)
    ]


def _place(cell: Cell) -> Hashable:
    # Steps follow from the batch of all devices together; no speed and no target depends on the end of a run.
    return _work(cell), cell.length.epochs, cell.stack, cell.session, cell.trials[0].device_model


def _work(cell: Cell) -> Key:
    """The key less precision, number of devices, their nodes and how they share; the loss scale stays."""
    return replace(without(cell.key, "gpus", f"options.{VIRTUAL_RANKS}"), precision="")


def _by_machine(cells: Sequence[Cell]) -> list[list[Cell]]:
    """Each machine's alone where all have one device's run; else of equal works that of the most runs."""
    machines = list(grouped_by(cells, lambda cell: cell.machine).values())
    numbers = [set(map(ranks_of, members)) for members in machines]
    if all(1 in ranks for ranks in numbers if max(ranks) > 1):
        return [_most_runs(members) for members in machines]
    return [_most_runs(cells)]


def _most_runs(cells: Sequence[Cell]) -> list[Cell]:
    """One of each work: where it ran in several lengths, or on several machines, that of the most runs."""
    alike = grouped_by(
        cells, lambda cell: (cell.key.precision, parallelism_of(cell), ranks_of(cell), cell.key.nodes)
    )
    return [max(same, key=lambda cell: cell.throughput.n) for same in alike.values()]
