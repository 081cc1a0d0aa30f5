"""What our own measuring costs: a training loop with clock and telemetry over a bare one.

    python -m benchmarks.overhead PYTHON [--model resnet18] [--minutes 8]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`. The replicate is a fresh process, six a
model (`processes.py`), each with eight rounds: a second of our loop, of the bare one, of the bare one again
as the control, and back. All loops train the same model, whose step takes 100 ms and more on two cores, and
the telemetry's sampler is stopped in the bare ones. glibc keeps freed memory: what it gives back depends on
where arrays lie. A model that was not over after its minutes shows nothing unless five of its processes were.

Exits 1 unless every interval ends at 1.01 or below. The figures come last.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.processes import KEEP_FREED_MEMORY, PROCESSES, Measured, processes, run_module

MODELS = ("resnet18", "lstm")
BLOCK_SECONDS = 1.0
ROUNDS = 8
ALLOWED = (0.0, 1.01)


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 where every model passes, else 1."""
    parser = argparse.ArgumentParser(description="What clock and telemetry cost, over a bare training loop.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--model", choices=MODELS, action="append", help="one alone (default: all)")
    parser.add_argument("--minutes", type=float, default=8.0, help="for each model, at most")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="of each model")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each process")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS, help="of a loop, about")
    given = parser.parse_args(arguments)

    def child(model: str, number: int, left: float) -> Measured | None:
        words = [model, str(given.rounds), str(given.block_seconds), "--host", sys.executable]
        words += ["--backwards"] if number % 2 else []
        return run_module(given.python, "benchmarks.loops", words, left, KEEP_FREED_MEMORY)

    overheads = [
        processes(model, partial(child, model), given.processes, 60 * given.minutes, ALLOWED)
        for model in given.model or MODELS
    ]
    print("\n".join(overhead.line() for overhead in overheads))
    return 0 if all(overhead.word == "pass" for overhead in overheads) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
