"""Where a trial's time goes: waiting for input, computing, and what the host alone does."""

from __future__ import annotations

from dataclasses import dataclass

from report.comparisons.cells import Cell
from report.trials.key import LOADER_ALONE


@dataclass(frozen=True, slots=True)
class TimeBreakdown:
    """Shares of the steady steps' time; they add up to 1.

    Where the device keeps no clock of its own, `compute` is all that did not wait for input, `other` null.
    """

    input_wait: float
    compute: float
    other: float | None

    def parts(self) -> tuple[tuple[str, float], ...]:
        """Each part's name and share, in reading order."""
        parts = [("input wait", self.input_wait), ("compute", self.compute), ("other", self.other or 0.0)]
        return tuple((kind, share) for kind, share in parts if share > 0)


def time_breakdown(cell: Cell) -> TimeBreakdown | None:
    """The means over all valid runs: other = host-bound share − input wait, compute = the device's own time.

    Null where the wait for input was not measured, and of a loader alone, whose work it is.
    """
    waited, host = cell.input_share.mean, cell.host_share.mean
    if waited is None or cell.key.protocol == LOADER_ALONE:
        return None
    waited = min(max(waited, 0.0), 1.0)
    if host is None:
        return TimeBreakdown(waited, 1 - waited, None)
    other = min(max(host - waited, 0.0), 1 - waited)
    return TimeBreakdown(waited, 1 - waited - other, other)
