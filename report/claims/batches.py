"""How many times as large a batch fits in one precision as in another, between its bounds."""

from __future__ import annotations

from harness.record import Claim
from report.claims.judged import Judged, Measured, not_compared
from report.claims.matching import matches
from report.claims.obstacles import obstacles
from report.compare.key import Difference
from report.stats.equivalence import range_holds


def judge_batches(claim: Claim, measured: Measured) -> Judged:
    """The claim held against batches that were tried up to the first that does not fit.

    The largest that fits is known between two tries, so the ratio lies between two bounds and has no spread.
    """
    assert claim.over is not None and claim.value is not None
    # The batches that a study names are what fitted its own card.
    claims = [
        claim.model_copy(update={"of": side.model_copy(update={"batch_size": None})})
        for side in (claim.of, claim.over)
    ]
    found = [
        [sweep for sweep in measured.sweeps if all(matches(one, cell) for cell in sweep.cells)]
        for one in claims
    ]
    of, over = (sweeps[0] if sweeps else None for sweeps in found)
    if of is None or over is None:
        return not_compared(claim, Difference("batch_sweep", False, True))
    reasons = [
        reason
        for one, sweep in zip(claims, (of, over), strict=True)
        for reason in obstacles(one, sweep.cells[0], measured.cards, measured.everything)
    ]
    if reasons:
        return not_compared(claim, *reasons)
    fits, fits_over = of.largest, over.largest
    if fits is None or of.wall is None or fits_over is None or over.wall is None:
        return not_compared(claim, Difference("largest_batch", None, None))
    low, high = fits_over.key.batch_size / of.wall, over.wall / fits.key.batch_size
    verdict = range_holds(low, high, claim.value, claim.margin, claim.half_digit)
    return Judged(claim, verdict, (fits, fits_over), fits_over.key.batch_size / fits.key.batch_size)
