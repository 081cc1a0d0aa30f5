"""How our training steps compare with timm's own and with a plain PyTorch loop, in one process.

    PYTHON benchmarks/peers.py [--minutes 3] [--case resnet18] [--profile default] [--pixels 32] [--batch 8]

PYTHON is an interpreter with PyTorch, timm and SciPy, such as an image's or one in `.venvs/`. Between
processes a machine varies by more than what is sought, so both sides train the same model in one, step by
step in the order ours, theirs, theirs, ours. Each four steps give one ratio of seconds, from which a drift
has cancelled, and the interval is that of the trimmed mean of their logarithms (`paired.py`). It goes on
until the interval is ± 0.7 % or the minutes, for each line, are over.

The classifiers and their optimiser are timm's, and its side is the step of timm's training benchmark: one
fixed batch, new labels at each step, backward under autocast. Ours is the workload's step with its clock, on
batches that come round. The language model is the workload's, against a loop written for nothing else. Both
sides have the same flags: in `default` the framework's own, in `tuned` channels_last, a fused optimiser and
torch.compile. A third line a model is `tuned` over `default` of our own, a gain and no comparison with peers.

With --control the first side is the peer's as well. Two equal models of one process need not be equally fast,
since they lie at other addresses and were compiled one after the other: where the control's interval does not
hold 1, a difference as large as its own says nothing of whose step it is.

Exits 1 where an interval of a comparison lies outside 0.98 to 1.02; the figures come last.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "workloads")]

from benchmarks.overhead import HALF_WIDTH, fours, half_width  # noqa: E402
from benchmarks.paired import trimmed_interval  # noqa: E402
from report.stats.intervals import Interval  # noqa: E402

CASES = ("resnet18", "resnet50", "efficientnet_b0", "lstm")
PROFILES = ("default", "tuned")
NEAR = (0.98, 1.02)
LEAST_FOURS = 30

Apart = Literal["a gain", "a control"]
"""No comparison with a peer: our two profiles, or a peer's step with itself. Neither can fail."""

Word = Literal["pass", "fail", "not shown"] | Apart


@dataclass(frozen=True, slots=True)
class PeerRatio:
    """One ratio of seconds: below 1, the first side is the faster."""

    what: str
    interval: Interval | None
    fours: int
    seconds: float
    apart: Apart | None = None

    @property
    def word(self) -> Word:
        """pass where the interval lies inside 0.98 to 1.02, fail where it lies outside."""
        if self.interval is None:
            return "not shown"
        if self.apart:
            return self.apart
        low, high = self.interval.low, self.interval.high
        if NEAR[0] <= low and high <= NEAR[1]:
            return "pass"
        return "fail" if high < NEAR[0] or low > NEAR[1] else "not shown"

    def line(self) -> str:
        """The ratio in a sentence, the verdict last."""
        if self.interval is None:
            return f"{self.what}: too few steps in {self.seconds:.0f} s: {self.word}"
        low, high = self.interval.low, self.interval.high
        return (
            f"{self.what}: {self.interval.estimate:.4f} of the seconds, "
            f"95 % interval {low:.4f} to {high:.4f} "
            f"({self.fours} × ABBA in {self.seconds:.0f} s): {self.word}"
        )


def peer_ratio(what: str, ratios: Iterable[float], seconds: float, apart: Apart | None = None) -> PeerRatio:
    """Takes ratios until their interval is narrow enough, or the seconds are over."""
    began = time.monotonic()
    taken: list[float] = []
    interval = None
    for ratio in ratios:
        taken.append(ratio)
        enough = len(taken) >= LEAST_FOURS
        interval = trimmed_interval(taken) if enough else None
        if time.monotonic() - began >= seconds or (interval and half_width(interval) <= HALF_WIDTH):
            break
    return PeerRatio(what, interval, len(taken), time.monotonic() - began, apart)


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where a comparison fails, else 0."""
    parser = argparse.ArgumentParser(description="Our training steps over timm's and a plain loop's.")
    parser.add_argument("--minutes", type=float, default=3.0, help="for each line, at most")
    parser.add_argument("--case", choices=CASES, action="append", help="one alone (default: all)")
    parser.add_argument("--profile", choices=PROFILES, action="append", help="one alone (default: both)")
    parser.add_argument("--pixels", type=int, default=32, help="of the images")
    parser.add_argument("--batch", type=int, default=8, help="images of a step")
    parser.add_argument("--control", action="store_true", help="the peer's step against itself")
    given = parser.parse_args(arguments)
    from benchmarks.rivals import Size, Whose, pair

    size, seconds = Size(given.pixels, given.batch), 60 * given.minutes
    profiles, ratios = given.profile or PROFILES, []
    for case in given.case or CASES:
        for profile in profiles:
            first: Whose = "theirs" if given.control else "ours"
            with pair(case, size, (profile, first), (profile, "theirs")) as steps:
                what = f"{steps.what}, {profile}: {steps.sides}"
                ratios.append(
                    peer_ratio(what, fours(steps.block), seconds, "a control" if given.control else None)
                )
                print(ratios[-1].line(), flush=True)
        if len(profiles) == len(PROFILES) and not given.control:
            with pair(case, size, ("tuned", "ours"), ("default", "ours")) as steps:
                what = f"{steps.what}: our tuned over our default"
                ratios.append(peer_ratio(what, fours(steps.block), seconds, "a gain"))
    print()
    for ratio in ratios:
        print(ratio.line())
    return 1 if any(ratio.word == "fail" for ratio in ratios) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
