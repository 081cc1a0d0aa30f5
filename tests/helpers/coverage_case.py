"""A case of the table of coverage: what draws a page, and how often its event may come."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Flags = NDArray[np.bool_]
SEED, DRAWS, SLOW_DRAWS = 20_240_229, 4_000, 1_000


class Target(NamedTuple):
    """The bounds in percent that a share is to keep; with a lower one the event is the right answer."""

    words: str
    low: float = 0
    high: float = 100

    def missed(self, found: float, slack: float) -> bool:
        return found < self.low - slack or found > self.high + slack


class Case(NamedTuple):
    """A scenario, the target of its event's share, and what draws of one page the event and any caveat."""

    name: str
    target: Target
    draw: Callable[[np.random.Generator], tuple[bool, bool]] | None = None
    draws: int = DRAWS
    draw_all: Callable[[np.random.Generator, int], tuple[Flags, Flags]] | None = None
    """In place of `draw`: so many pages at once."""

    def share(self, draws: int) -> Share:
        rng = np.random.default_rng([SEED, zlib.crc32(self.name.encode())])
        if self.draw_all is not None:
            events, caveats = self.draw_all(rng, draws)
        else:
            assert self.draw is not None
            events, caveats = np.array([self.draw(rng) for _ in range(draws)], dtype=bool).T
        silent = (events != (self.target.low > 0)) & ~caveats
        at_least = min(max(events.mean(), 1 / draws), 1 - 1 / draws)
        error = math.sqrt(at_least * (1 - at_least) / draws)
        return Share(*(100 * float(each) for each in (events.mean(), caveats.mean(), silent.mean(), error)))

    def row(self) -> tuple[str, ...]:
        share = self.share(self.draws)
        caveats = f"{share.caveats:.0f}" if self.target.missed(share.found, 2 * share.error) else ""
        return self.name, f"{share.found:.1f}", f"{share.error:.1f}", self.target.words, caveats


class Share(NamedTuple):
    """Percentages of pages with the event, with a caveat, and that err without one; the first's error."""

    found: float
    caveats: float
    silent: float
    error: float

    def is_short_of(self, target: Target, errors: float) -> bool:
        """Whether more pages miss the target than have a caveat."""
        with_caveats = 100 - self.silent if target.low else self.silent
        return all(target.missed(share, errors * self.error) for share in (self.found, with_caveats))
