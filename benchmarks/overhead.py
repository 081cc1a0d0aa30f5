"""What our own measuring costs: a training loop with clock and telemetry over a bare one.

    python -m benchmarks.overhead PYTHON [--model resnet18] [--minutes 8] [--results results]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`. The replicate is a fresh process, six a
model (`processes.py`), each with eight rounds: a second of our loop, of the bare one, of the bare one again
as the control, and back. All loops train the same model, whose step takes 100 ms and more on two cores, and
the telemetry's sampler is stopped in the bare ones. glibc keeps freed memory: what it gives back depends on
where arrays lie. A model that was not over after its minutes shows nothing unless five of its processes were.

Exits 1 unless every interval ends at 1.01 or below. The figures come last.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.processes import KEEP_FREED_MEMORY, PROCESSES, ROOT, Measured, processes, run_module

MODELS = ("resnet18", "lstm")
BLOCK_SECONDS = 1.0
ROUNDS = 8
ALLOWED = (0.0, 1.01)


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


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 where every model passes, else 1."""
    parser = argparse.ArgumentParser(description="What clock and telemetry cost, over a bare training loop.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--model", choices=MODELS, action="append", help="one alone (default: all)")
    parser.add_argument("--minutes", type=float, default=8.0, help="for each model, at most")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="of each model")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="of each process")
    parser.add_argument("--block-seconds", type=float, default=BLOCK_SECONDS, help="of a loop, about")
    parser.add_argument("--results", type=Path, default=ROOT / "results")
    given = parser.parse_args(arguments)

    def child(model: str, number: int, left: float) -> Measured | None:
        words = [model, str(given.rounds), str(given.block_seconds), "--host", sys.executable]
        words += ["--backwards"] if number % 2 else []
        return run_module(given.python, "benchmarks.loops", words, left, KEEP_FREED_MEMORY)

    overheads = [
        processes(model, partial(child, model), given.processes, 60 * given.minutes, ALLOWED)
        for model in given.model or MODELS
    ]
    lines = [overhead.line() for overhead in overheads]
    print("\n".join([host_line(given.results), *lines]))
    return 0 if all(overhead.word == "pass" for overhead in overheads) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
