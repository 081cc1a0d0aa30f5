"""How our training steps compare with timm's own and with a plain PyTorch loop.

    python -m benchmarks.peers PYTHON [--case resnet18] [--profile default] [--minutes 8]

PYTHON is an interpreter with PyTorch and timm, such as the one in `.venvs/`. The replicate is a fresh
process, six a line (`processes.py`), each with eight rounds: ours, timm's, timm's again as the control, and
back. A step takes 200 ms and more on two cores, so that what a step costs besides its arithmetic is not
inflated. A line that was not over after its minutes shows nothing unless five of its processes were.

The classifiers and their optimiser are timm's, and its side is the step of timm's training benchmark: one
fixed batch, new labels at each step, backward under autocast. Ours is the workload's step with its clock, on
batches that come round. The language model is the workload's, against a loop written for nothing else. Both
sides have the same flags: in `default` the framework's own, in `tuned` channels_last, a fused optimiser and
torch.compile, whose cache a process before the others fills. In all processes glibc keeps freed memory: what
it gives back depends on where arrays lie, and makes two equal sides differ by some percent on small images.

Exits 1 where an interval lies wholly outside 0.98 to 1.02. An interval across a bound is too wide to say:
"not shown", which is no failure and no pass. The figures come last.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.processes import KEEP_FREED_MEMORY, PROCESSES, Comparison, Measured, processes, run_module

CASES = ("resnet18", "resnet50", "efficientnet_b0", "lstm")
PROFILES = ("default", "tuned")
NEAR = (0.98, 1.02)
ROUNDS = 8


def compared(
    python: Path, case: str, profile: str, count: int, rounds: int, seconds: float, cache: Path
) -> Comparison:
    """One line: a case in a profile."""
    began = time.monotonic()
    variables = {**KEEP_FREED_MEMORY, "TORCHINDUCTOR_CACHE_DIR": str(cache)}

    def child(number: int, left: float, rounds: int = rounds) -> Measured | None:
        order = ["--backwards"] if number % 2 else []
        arguments = [case, profile, str(rounds), *order]
        return run_module(python, "benchmarks.rivals", arguments, left, variables)

    if profile == "tuned":
        child(0, seconds, rounds=0)
    left = seconds - (time.monotonic() - began)
    comparison = processes(f"{case}, {profile}", child, count, left, NEAR)
    return replace(comparison, seconds=time.monotonic() - began)


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where a comparison fails, else 0."""
    parser = argparse.ArgumentParser(description="Our training steps over timm's and a plain loop's.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch and timm")
    parser.add_argument("--case", choices=CASES, action="append", help="one alone (default: all)")
    parser.add_argument("--profile", choices=PROFILES, action="append", help="one alone (default: both)")
    parser.add_argument("--minutes", type=float, default=8.0, help="for each line, at most")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="of each line")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each process")
    given = parser.parse_args(arguments)
    comparisons = []
    with tempfile.TemporaryDirectory() as cache:
        for case in given.case or CASES:
            for profile in given.profile or PROFILES:
                comparisons.append(
                    compared(
                        given.python,
                        case,
                        profile,
                        given.processes,
                        given.rounds,
                        60 * given.minutes,
                        Path(cache),
                    )
                )
                print(f"… {comparisons[-1].line()}", file=sys.stderr, flush=True)
    print("\n".join(comparison.line() for comparison in comparisons))
    return 1 if any(comparison.word == "fail" for comparison in comparisons) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
