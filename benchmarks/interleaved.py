"""What a process of benchmarks/processes.py does: its sides in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping


def interleaved(
    sides: Mapping[str, Callable[[], float]], rounds: int, *, backwards: bool
) -> dict[str, list[float]]:
    """Seconds of each side in each round; a round runs every side twice, there and back.

    So a steady drift cancels in a round. `backwards` begins with the last side.
    """
    there = list(sides)[:: -1 if backwards else 1]
    seconds: dict[str, list[float]] = {side: [] for side in sides}
    for _ in range(rounds):
        took = dict.fromkeys(sides, 0.0)
        for side in (*there, *reversed(there)):
            took[side] += sides[side]()
        for side in sides:
            seconds[side].append(took[side])
    return seconds
