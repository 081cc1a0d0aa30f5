"""Does our language model take as long a step as the program that it retells?

    python -m benchmarks.programs PYTHON [--data FOLDER] [--minutes 20]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`; the data folder has WikiText-2, and the
program's source where it cannot be fetched. Ours is the workload `word_lm`, theirs the word-level language
model of pytorch/examples, run as it is; both by their own clocks, at the example's own sizes. A replicate is
three fresh processes: ours, theirs, and theirs again as the control; every second one goes the other way
round. A round is ten steps, as theirs prints them, and the first ones are left out. In all processes glibc
keeps freed memory, as in overhead.py.

The ratio comes last. Exits 1 where its interval lies wholly outside 0.98 to 1.02.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.processes import KEEP_FREED_MEMORY, PROCESSES, ROOT, Measured, processes
from harness.data.fetch import DataFolders, default_folder, resolve
from harness.plan import own_file
from harness.record import Limit, Measurement, TrialRequest, TrialSpec, Variant
from harness.record.trial import OwnFile
from harness.run import source_tree

NEAR = (0.98, 1.02)
STEPS = 10
LEFT_OUT = 2
"""Rounds at the beginning."""
FILE = "workloads/programs/word-language-model.toml"
PROTOCOLS = {"word_lm": "published/1", "program": "word-language-model/1"}


def trial(workload: str, rounds: int, seconds: float) -> TrialSpec:
    """So many rounds of one side."""
    limit = Limit(steps=STEPS * (rounds + LEFT_OUT) + 1, valid_batches=None if workload == "program" else 0)
    file = None
    if workload == "program":
        sha256 = own_file.sha256(workload, FILE, None, ROOT, "benchmarks")
        file = OwnFile(name=FILE, sha256=sha256 or "")
    variant = Variant(
        model="LSTM",
        precision="program" if file else "fp32-default",
        batch_size=20,
        sequence_length=35,
        data_mode="host",
        limit=limit,
    )
    asked = TrialRequest(
        workload=workload,
        protocol=PROTOCOLS[workload],
        variant=variant,
        data="real",
        device="cpu",
        environment="cpu",
        file=file,
    )
    return TrialSpec.of(asked, 1, seed=1111, timeout_seconds=seconds)


def side(python: Path, data: Path, rounds: int, seconds: float, workload: str) -> list[float] | None:
    """The seconds of each round of one fresh process; null where it took longer than the seconds."""
    spec = trial(workload, rounds, seconds)
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
    together = STEPS // series.steps_per_value
    values = series.values()
    sums = [sum(values[at : at + together]) / 1e6 for at in range(0, len(values) - together + 1, together)]
    return sums[LEFT_OUT : LEFT_OUT + rounds]


def replicate(python: Path, data: Path, rounds: int, number: int, left: float) -> Measured | None:
    """Three fresh processes, one after the other."""
    sides = [("first", "word_lm"), ("second", "program"), ("control", "program")]
    seconds: dict[str, list[float]] = {}
    for name, workload in sides if number % 2 == 0 else reversed(sides):
        took = side(python, data, rounds, left / len(sides), workload)
        if took is None:
            return None
        seconds[name] = took
    least = min(map(len, seconds.values()))
    same = {name: took[:least] for name, took in seconds.items()}
    measured = Measured("word_lm over pytorch/examples", STEPS, same)
    print(f"… {number + 1}: {measured.ratio('first', 'second'):.3f}", file=sys.stderr, flush=True)
    return measured


def data_in(own: Path | None, folder: Path) -> Path:
    """A folder with WikiText-2 and the program's source; raises as their fetching does."""
    program = own_file.read_program((ROOT / FILE).read_bytes(), FILE)
    folders = DataFolders(own, default_folder())
    found = source_tree.resolve(program, folders)
    for resolved in (found, *resolve(["wikitext-2"], folders=folders).values()):
        assert resolved.folder is not None and resolved.subfolder is not None
        (folder / resolved.subfolder).symlink_to((resolved.folder / resolved.subfolder).resolve())
    return folder


def main(arguments: Sequence[str]) -> int:
    """Exit code 1 where the ratio's interval lies outside, else 0."""
    parser = argparse.ArgumentParser(description="Our language model's step over the original's.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--data", type=Path, help="a folder with wikitext-2 (default: what was fetched)")
    parser.add_argument("--minutes", type=float, default=20.0, help="at most")
    parser.add_argument("--processes", type=int, default=PROCESSES, help="replicates of three processes")
    parser.add_argument("--rounds", type=int, default=20, help="of ten steps, in each process")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        data = data_in(given.data, Path(folder))
        child = partial(replicate, given.python, data, given.rounds)
        comparison = processes("language model", child, given.processes, 60 * given.minutes, NEAR)
    print(comparison.line())
    return 1 if comparison.word == "fail" else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
