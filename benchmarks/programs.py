"""Does a workload of ours take as long a step as the program that it retells?

    python -m benchmarks.programs PYTHON [--data FOLDER] [--minutes 20] [--pair word_lm]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`; the data folder has WikiText-2, and the
programs' sources where they cannot be fetched. `word_lm` stands beside the word-level language model of
pytorch/examples at its own sizes, `convnet` beside timm's benchmark.py with ResNet-18, each run as it is and
timed by its own clock. A replicate is three fresh processes: ours, theirs, and theirs again as the control;
every second one goes the other way round. A round is as many steps as theirs print together, and the first
ones are left out. In all processes glibc keeps freed memory, as in overhead.py.

The ratios come last. Exits 1 where the interval of one lies wholly outside 0.98 to 1.02.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.processes import KEEP_FREED_MEMORY, PROCESSES, ROOT, Measured, processes
from harness.data.fetch import DataFolders, default_folder, resolve
from harness.plan import own_file
from harness.record import Limit, Measurement, TrialRequest, TrialSpec, Variant
from harness.record.trial import OwnFile
from harness.run import source_tree

NEAR = (0.98, 1.02)
LEFT_OUT = 2
"""Rounds at the beginning."""


@dataclass(frozen=True, slots=True)
class Pair:
    """A workload and the program that it retells, both asked for in one shape."""

    workload: str
    protocol: str
    program: str
    """Its file's name, as its protocol has it."""
    shape: Mapping[str, Any]
    steps: int
    """Of a round, as the program prints them: timm's prints five lines, however many steps it has."""
    rounds: int
    """Of each process, after those left out."""
    data_sets: tuple[str, ...] = ()
    steps_option: str | None = None
    """By which the program is told how many steps it has; else its limit ends it."""

    @property
    def file(self) -> str:
        return f"workloads/programs/{self.program}.toml"


PAIRS = {
    pair.workload: pair
    for pair in (
        Pair(
            "word_lm",
            "published/1",
            "word-language-model",
            {"model": "LSTM", "batch_size": 20, "sequence_length": 35, "data_mode": "host"},
            steps=10,
            rounds=8,
            data_sets=("wikitext-2",),
        ),
        Pair(
            "convnet",
            "synthetic/1",
            "timm-benchmark",
            {"model": "resnet18", "batch_size": 16, "image_size": 96, "data_mode": "cached"},
            steps=20,
            rounds=5 - LEFT_OUT,
            steps_option="steps",
        ),
    )
}


def trial(pair: Pair, workload: str, seconds: float) -> TrialSpec:
    """One process of one side."""
    steps = pair.steps * (pair.rounds + LEFT_OUT)
    limit = Limit(steps=steps + 1, valid_batches=0 if pair.data_sets else None)
    file, shape, protocol = None, dict(pair.shape), pair.protocol
    if workload == "program":
        protocol = f"{pair.program}/1"
        sha256 = own_file.sha256(workload, pair.file, None, ROOT, "benchmarks")
        file = OwnFile(name=pair.file, sha256=sha256 or "")
        limit = limit.model_copy(update={"valid_batches": None})
        if pair.steps_option:
            shape["options"] = {pair.steps_option: steps}
            limit = Limit()
    elif workload == "convnet":
        shape["model"] = f"timm/{shape['model']}"
    asked = TrialRequest(
        workload=workload,
        protocol=protocol,
        variant=Variant(precision="program" if file else "fp32-default", limit=limit, **shape),
        data="real" if pair.data_sets else "synthetic",
        device="cpu",
        environment="cpu",
        file=file,
    )
    return TrialSpec.of(asked, 1, seed=1111, timeout_seconds=seconds)


def side(python: Path, data: Path, pair: Pair, seconds: float, workload: str) -> list[float] | None:
    """The seconds of each round of one fresh process; null where it took longer than the seconds."""
    spec = trial(pair, workload, seconds)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in ("in", "out", "cache"):
            (work / name).mkdir()
        (work / "in" / "trial.json").write_text(spec.canonical(), encoding="utf-8")
        if spec.asked.file:
            program = own_file.content(ROOT, spec.asked.file)
            (work / "in" / "program.json").write_text(program, encoding="utf-8")
        own = {f"GPUDYNO_{name.upper()}": str(work / name) for name in ("in", "out", "cache")}
        environ = {**os.environ, **KEEP_FREED_MEMORY, **own, "GPUDYNO_DATA": str(data), "PYTHONPATH": ""}
        argv = [python.absolute(), "-B", ROOT / "workloads" / f"{workload}.py"]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        found = work / "out" / "measurement.json"
        if not found.is_file():
            failure = work / "out" / "failure.json"
            said = json.loads(failure.read_text())["message"] if failure.is_file() else done.stderr[-300:]
            print(f"{workload}: {said}", file=sys.stderr)
            return None
        series = Measurement.parse(found.read_bytes(), found.name).step_us
    together = pair.steps // series.steps_per_value
    values = series.values()
    sums = [sum(values[at : at + together]) / 1e6 for at in range(0, len(values) - together + 1, together)]
    return sums[LEFT_OUT : LEFT_OUT + pair.rounds]


def replicate(python: Path, data: Path, pair: Pair, number: int, left: float) -> Measured | None:
    """Three fresh processes, one after the other."""
    sides = [("first", pair.workload), ("second", "program"), ("control", "program")]
    seconds: dict[str, list[float]] = {}
    for name, workload in sides if number % 2 == 0 else reversed(sides):
        took = side(python, data, pair, left / len(sides), workload)
        if took is None:
            return None
        seconds[name] = took
    least = min(map(len, seconds.values()))
    same = {name: took[:least] for name, took in seconds.items()}
    measured = Measured(f"{pair.workload} over {pair.program}", pair.steps, same)
    print(f"… {number + 1}: {measured.ratio('first', 'second'):.3f}", file=sys.stderr, flush=True)
    return measured


def data_in(own: Path | None, pair: Pair, folder: Path) -> Path:
    """A folder with what a pair trains on and the program's source; raises as their fetching does."""
    program = own_file.read_program((ROOT / pair.file).read_bytes(), pair.file)
    folders = DataFolders(own, default_folder())
    found = source_tree.resolve(program, folders)
    for resolved in (found, *resolve(list(pair.data_sets), folders=folders).values()):
        assert resolved.folder is not None and resolved.subfolder is not None
        (folder / resolved.subfolder).symlink_to((resolved.folder / resolved.subfolder).resolve())
    return folder


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where a ratio's interval lies outside, else 0."""
    parser = argparse.ArgumentParser(description="Our workloads' steps over the original programs'.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--data", type=Path, help="a folder with wikitext-2 (default: what was fetched)")
    parser.add_argument("--minutes", type=float, default=20.0, help="of each pair, at most")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="replicates of three processes")
    parser.add_argument("--pair", choices=PAIRS, help="one of them alone")
    given = parser.parse_args(arguments)
    found = []
    for pair in [PAIRS[given.pair]] if given.pair else PAIRS.values():
        with tempfile.TemporaryDirectory() as folder:
            data = data_in(given.data, pair, Path(folder))
            child = partial(replicate, given.python, data, pair)
            found.append(processes(pair.workload, child, given.processes, 60 * given.minutes, NEAR))
    print("\n".join(comparison.line() for comparison in found))
    return int(any(comparison.word == "fail" for comparison in found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
