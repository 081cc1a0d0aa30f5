"""What becomes of a loss scale over a trial.

Python 3.7 is enough for it.
"""

from __future__ import annotations

from typing import Any


class ScaleLog:
    """The loss scale at each change, and the steps that were dropped."""

    def __init__(self, kind: str, first: float) -> None:
        self.kind = kind
        self.history: list[tuple[int, float]] = [(0, first)]
        self.skipped_steps = 0

    @property
    def scale(self) -> float:
        """The scale now in force."""
        return self.history[-1][1]

    def note(self, step: int, scale: float, *, skipped: bool) -> None:
        """Notes the scale after a step, where it changed."""
        self.skipped_steps += skipped
        if scale != self.scale:
            self.history.append((step, scale))

    def facts(self) -> dict[str, Any]:
        """The loss scale as a record has it."""
        return {
            "kind": self.kind,
            "first": self.history[0][1],
            "last": self.scale,
            "skipped_steps": self.skipped_steps,
            "history": self.history,
        }
