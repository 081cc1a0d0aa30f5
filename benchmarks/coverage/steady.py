"""What a trial's step times are called: steady devices are not to be refused, throttling ones not missed."""

from __future__ import annotations

from benchmarks.coverage.cases import SLOW_DRAWS, Case, Draw, Generator, Target
from benchmarks.coverage.series import (
    Shape,
    bursts,
    correlated,
    drawn,
    heavy,
    normal,
    pink,
    ramp,
    stepped,
    switching,
    ticked,
    until_held,
)
from harness.summary.steady_state import steady_state

REFUSED = ("unproven", "none")
STATIONARY = ("flat", "recurrent")
SELDOM, MOSTLY = Target(high=3), Target(97)


def called(
    name: str, shape: Shape, seconds: float, kinds: tuple[str, ...], target: Target, *, most: float = 0
) -> Case:
    """How often the step times are of one of these kinds; up to `most` seconds where the level did not hold.

    What is called unproven is never ranked: that is a caveat.
    """

    def draw(rng: Generator) -> Draw:
        series = until_held(rng, shape, seconds, most) if most else drawn(rng, shape, seconds)
        kind = steady_state(series).kind
        return Draw(kind in kinds, kind == "unproven")

    words = " or ".join(f"'{kind}'" for kind in kinds)
    window = f"{seconds:.0f} to {most:.0f} s" if most else f"{seconds:.0f} s"
    return Case(f"{name}, {window}: {words}", target, draw, SLOW_DRAWS)


def stationary(name: str, shape: Shape) -> list[Case]:
    """A device whose level comes back is never invalid, and proven where its trial may go on."""
    return [
        *(called(name, shape, seconds, ("none",), SELDOM) for seconds in (75, 300)),
        called(name, shape, 75, REFUSED, SELDOM, most=300),
    ]


TOGGLING = switching(0.03, (5, 5))
NEIGHBOUR = switching(0.5, (20, 2))

CASES = [
    *stationary("clocks that toggle by 3 %, 5 s each", TOGGLING),
    *stationary("clocks that toggle by 1 %, 5 s each", switching(0.01, (5, 5))),
    *stationary("clocks that toggle by 3 %, 15 s each", switching(0.03, (15, 15))),
    *stationary("a neighbour, 2 s on and 20 s off, × 1.5", NEIGHBOUR),
    *stationary("1/f noise, CV 2 %", pink(0.02)),
    called("AR(0.9) steps, CV 2 %", correlated(0.9, 0.02), 75, STATIONARY, MOSTLY),
    called("AR(0.9) steps, CV 2 %", correlated(0.9, 0.02), 300, STATIONARY, MOSTLY),
    called("normal steps, CV 1 %", normal(), 75, STATIONARY, MOSTLY),
    called("tails of Student's t with 3 degrees", heavy(), 75, STATIONARY, MOSTLY),
    called("1 step in 200 ten times as long", bursts(0.005, 10), 75, STATIONARY, MOSTLY),
    called("a clock of ticks of 16 % of a step", ticked(0.16), 75, STATIONARY, MOSTLY),
    *(called("a ramp of 3 %", ramp(0.03), seconds, ("slowdown",), MOSTLY) for seconds in (75, 300)),
    called("5 % slower from half of the window on", stepped(0.05, 0.5), 300, ("slowdown",), MOSTLY),
    called("2 % faster from a fifth of the window on", stepped(-0.02, 0.2), 120, ("warm-up",), MOSTLY),
    called("10 % faster shortly before the end", stepped(-0.1, 0.95), 300, (*STATIONARY, "warm-up"), SELDOM),
]
