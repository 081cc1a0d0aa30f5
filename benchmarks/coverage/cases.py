"""A case of the simulation: what is drawn, what is asked of it, and the row that it gives."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

SEED = 20_240_229
DRAWS = 4_000
"""Of a case: one standard error is 0.3 points at 95 % and 0.8 at 50 %."""
SLOW_DRAWS = 1_000
"""Of a case whose rule takes milliseconds: 0.5 points at 97 %."""

ERRORS = 2.0
"""Standard errors by which a row has to miss its target."""

Generator = np.random.Generator


@dataclass(frozen=True, slots=True)
class Draw:
    """One simulated page: whether the event that a case counts came, and whether a caveat was printed."""

    event: bool
    caveat: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What is asked of the event's share, in percent: bounds, or nothing."""

    low: float | None = None
    high: float | None = None

    @property
    def text(self) -> str:
        if self.low is not None and self.high is not None:
            return f"{self.low:g} to {self.high:g}"
        if self.low is not None:
            return f"≥ {self.low:g}"
        if self.high is not None:
            return f"≤ {self.high:g}"
        return "none"


@dataclass(frozen=True, slots=True)
class Row:
    """What a case gave: shares in percent, `silent` that of draws which err without a caveat."""

    name: str
    target: Target
    draws: int
    found: float
    caveats: float
    silent: float

    @property
    def error(self) -> float:
        """One standard error of the share, in points; never less than that of a single event."""
        share = min(max(self.found / 100, 1 / self.draws), 1 - 1 / self.draws)
        return 100 * math.sqrt(share * (1 - share) / self.draws)

    @property
    def reached(self) -> bool:
        """Whether the share lies no further from its target than two standard errors."""
        return self._within(self.found)

    @property
    def short(self) -> bool:
        """Whether the target is missed by more pages than those that say so themselves."""
        if self.reached:
            return False
        return not self._within(self.silent if self.target.low is None else 100 - self.silent)

    def _within(self, share: float) -> bool:
        slack = ERRORS * self.error
        low, high = self.target.low, self.target.high
        return (low is None or share >= low - slack) and (high is None or share <= high + slack)

    def cells(self) -> tuple[str, str, str, str, str]:
        """The row as the table has it."""
        caveats = "" if self.reached else f"{self.caveats:.0f}"
        return self.name, f"{self.found:.1f}", f"{self.error:.1f}", self.target.text, caveats


@dataclass(frozen=True, slots=True)
class Case:
    """A scenario, the event whose share is asked for, and what draws one page of it."""

    name: str
    target: Target
    draw: Callable[[Generator], Draw]
    draws: int = DRAWS

    def row(self, draws: int | None = None) -> Row:
        """Draws the case's pages; `draws` in place of its own number."""
        count = draws or self.draws
        generator = np.random.default_rng([SEED, zlib.crc32(self.name.encode())])
        pages = [self.draw(generator) for _ in range(count)]
        silent = [page.event != (self.target.low is not None) and not page.caveat for page in pages]
        return Row(
            name=self.name,
            target=self.target,
            draws=len(pages),
            found=_percent([page.event for page in pages]),
            caveats=_percent([page.caveat for page in pages]),
            silent=_percent(silent),
        )


def _percent(flags: list[bool]) -> float:
    return 100 * sum(flags) / len(flags)
