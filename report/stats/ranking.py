"""Whether one may be called faster than another: one value, which all sentences of a page read."""

from __future__ import annotations

from enum import Enum


class Ranking(Enum):
    """What may be said of two systems or two precisions that did the same work."""

    RANKED = "one is faster"
    TIED = "the range includes 1, so no difference is shown"
    FIRST_LOOK = "the range leaves 1 out, but runs of a side may not be ranked"
    SINGLE = "a side ran once, so there is no range"


def ranking(*, tied: bool | None, ranked: bool) -> Ranking:
    """Of a range that includes 1, leaves it out, or is not known, over runs that may be `ranked` or not."""
    if tied is None:
        return Ranking.SINGLE
    if tied:
        return Ranking.TIED
    return Ranking.RANKED if ranked else Ranking.FIRST_LOOK
