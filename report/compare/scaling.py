"""How several devices share a step, or one device takes the part of several."""

from __future__ import annotations

from report.compare.cells import Cell
from report.trials.key import VIRTUAL_RANKS

VIRTUAL, APART = "virtual", "each"
PARALLELISMS = {
    "dp": "DataParallel",
    "ddp": "DistributedDataParallel",
    "fsdp": "FSDP",
    APART: "independent copies",
    VIRTUAL: "batch of several devices on one",
}


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
