"""Claims held against cells: a verdict where like meets like, else the fields that differ."""

from __future__ import annotations

from collections.abc import Sequence

from harness.claims import ClaimSet
from harness.record import Claim, Side
from report.contests import Contest, Speedup, matches
from report.frame import Row
from report.stats import Cell
from report.view import ClaimsView


def same_work(workload: str, protocol: str, side: Side, cells: Sequence[Cell]) -> bool:
    """Whether a published curve belongs behind these cells."""
    return any(
        (workload, protocol, side.model) == (cell.key.workload, cell.key.protocol, cell.key.model)
        and side.batch_size in (None, cell.key.batch_size)
        and side.precision in (None, cell.key.precision)
        for cell in cells
    )


def published_gain(claim: Claim, gains: Sequence[Speedup]) -> bool:
    """Whether a claim is a published speed-up of one of these pairs."""
    if claim.kind != "ratio" or claim.metric != "protocol_seconds" or claim.over is None:
        return False
    over = claim.model_copy(update={"of": claim.over})
    return any(matches(claim, gain.of) and matches(over, gain.over) for gain in gains)


def views(claims: ClaimSet, contests: Sequence[Contest], rows: Sequence[Row]) -> tuple[ClaimsView, ...]:
    return ()
