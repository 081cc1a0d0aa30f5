"""What others published of the cards of offers: a speed beside another card's, memory and power."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from report.expected.refusal import Refusal
from report.expected.relative import RelativeSpeed
from report.expected.specs import CardSpecs


@dataclass(frozen=True, slots=True)
class CardsOnPaper:
    """By the names of offers' cards; a speed also by the card that it is over, and by the line of work."""

    specs: Mapping[str, CardSpecs] = field(default_factory=dict)
    unknown: Mapping[str, str] = field(default_factory=dict)
    """What to write instead of a card's name that is in no table."""
    speeds: Mapping[tuple[str, str, str], RelativeSpeed | Refusal] = field(default_factory=dict)
    figures: int = 0
    """How many published figures the speeds are by, and of how many cards."""
    cards: int = 0

    def time_over(self, card: str, over: str, line: str) -> tuple[float, float, float] | None:
        """Return the expected time of a card over another's: low, best, high."""
        first, second = self.specs.get(card), self.specs.get(over)
        if card == over or (first and first is second):
            return (1.0, 1.0, 1.0)
        said = self.speeds.get((card, over, line))
        return (1 / said.high, 1 / said.value, 1 / said.low) if isinstance(said, RelativeSpeed) else None
