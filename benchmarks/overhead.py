"""What our own measuring costs: a training loop with clock and telemetry over a bare one, in one process.

    PYTHON benchmarks/overhead.py [--minutes 4] [--results results] [--model resnet18]

PYTHON is an interpreter with PyTorch and SciPy, such as an image's or one in `.venvs/`. Between processes a
machine varies by more than what is sought, so both loops train the same model in one, in blocks of about two
seconds in the order ours, bare, bare, ours; the telemetry's sampler is stopped in the bare ones. Each four
blocks give one ratio of seconds, from which a drift has cancelled, and the interval is that of the trimmed
mean of their logarithms (`paired.py`). It goes on until the interval is ± 0.7 % or the minutes, for each
model, are over.

Exits 1 unless every interval ends at 1.01 or below; the figures come last.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any, Literal

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "workloads")]

from benchmarks.paired import trimmed_interval  # noqa: E402
from report.stats.intervals import Interval  # noqa: E402

MODELS = ("resnet18", "lstm")
BLOCK_SECONDS = 2.0
HALF_WIDTH = 0.007
ALLOWED = 1.01
LEAST_FOURS = 12
"""Of fewer, some intervals are narrow by chance, and it would stop on those."""

Kind = Literal["ours", "bare"]
Word = Literal["pass", "fail", "not shown"]
ORDER: tuple[Kind, ...] = ("ours", "bare", "bare", "ours")


@dataclass(frozen=True, slots=True)
class Overhead:
    """One model's ratio of our loop's seconds to the bare loop's."""

    what: str
    interval: Interval | None
    seconds: float

    @property
    def word(self) -> Word:
        """pass where the interval ends at 1.01 or below, fail where it begins above it."""
        if self.interval is None:
            return "not shown"
        if self.interval.high <= ALLOWED:
            return "pass"
        return "fail" if self.interval.low > ALLOWED else "not shown"

    def line(self) -> str:
        """The ratio in a sentence, the verdict last."""
        if self.interval is None:
            return f"{self.what}: too few blocks in {self.seconds:.0f} s: {self.word}"
        low, high = self.interval.low, self.interval.high
        return (
            f"{self.what}: {self.interval.estimate:.4f} times the bare loop's seconds, 95 % interval "
            f"{low:.4f} to {high:.4f} ({self.interval.n[0]} × ABBA in {self.seconds:.0f} s): {self.word}"
        )


def fours(block: Callable[[Kind], float]) -> Iterator[float]:
    """Ratios of ours to bare, each of four blocks, ABBA; `block` runs one and gives its seconds."""
    while True:
        took: dict[Kind, list[float]] = {"ours": [], "bare": []}
        for kind in ORDER:
            took[kind].append(block(kind))
        yield sum(took["ours"]) / sum(took["bare"])


def interval_of(ratios: Iterable[float], over: Callable[[], bool]) -> Interval | None:
    """The interval of as many ratios as it takes until it is narrow enough, or the time is over."""
    taken: list[float] = []
    for ratio in ratios:
        taken.append(ratio)
        interval = trimmed_interval(taken)
        narrow = interval is not None and half_width(interval) <= HALF_WIDTH
        if (narrow and len(taken) >= LEAST_FOURS) or over():
            return interval if len(taken) >= LEAST_FOURS else None
    return None


def half_width(interval: Interval) -> float:
    """Half of the interval, relative to its estimate."""
    return (interval.high - interval.low) / (2 * interval.estimate)


def waits(records: Sequence[dict[str, Any]]) -> list[float]:
    """Seconds from each record's end to the start of the next of the same session and block."""
    spans: dict[tuple[str, int], list[tuple[datetime, float]]] = {}
    for record in records:
        began = datetime.fromisoformat(record["started_at"])
        spans.setdefault((record["session"], record.get("block", 1)), []).append(
            (began, record["wall_seconds"])
        )
    gaps = []
    for trials in spans.values():
        trials.sort()
        for (began, seconds), (after, _) in pairwise(trials):
            gaps.append((after - began).total_seconds() - seconds)
    return gaps


def host_line(folder: Path) -> str:
    """How long the host waits between two trials, by the records in a folder of results."""
    records = (json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*/*/*.json")))
    gaps = waits([record for record in records if "trial" in record and "started_at" in record])
    if not gaps:
        return f"between trials: no session with two records in {folder.name}/"
    return (
        f"between trials: the host's part is {median(gaps):.2f} s (median of {len(gaps)} in {folder.name}/)"
    )


def measured(model: str, minutes: float, block_seconds: float) -> Overhead:
    """Runs one model's blocks on this process's device."""
    from benchmarks.loops import loops

    began = time.monotonic()
    with loops(model, block_seconds) as pair:
        interval = interval_of(fours(pair.block), lambda: time.monotonic() - began >= 60 * minutes)
        return Overhead(pair.what, interval, time.monotonic() - began)


def main(arguments: list[str]) -> int:
    """Exit code 0 where every model passes, else 1."""
    parser = argparse.ArgumentParser(description="What clock and telemetry cost, over a bare training loop.")
    parser.add_argument("--minutes", type=float, default=4.0, help="for each model, at most")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS, help="of each block, about")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    parser.add_argument("--model", choices=MODELS, action="append", help="one alone (default: all)")
    given = parser.parse_args(arguments)
    overheads = [measured(model, given.minutes, given.block_seconds) for model in given.model or MODELS]
    print(host_line(given.results))
    for overhead in overheads:
        print(overhead.line())
    return 0 if all(overhead.word == "pass" for overhead in overheads) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
