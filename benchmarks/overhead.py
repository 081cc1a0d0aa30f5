"""What our measuring costs: our loop over a bare one, and our workloads over the programs that they retell.

    python -m benchmarks.overhead PYTHON [--data FOLDER] [--minutes 20] [--only loop]

PYTHON is an interpreter with PyTorch, such as the one in `.venvs/`; the data folder has WikiText-2, and the
programs' sources where they cannot be fetched. `loop` trains ResNet-18 in our loop with clock and telemetry,
and in a bare one (`loops.py`). `word_lm` is compared with the language model of pytorch/examples at its own
sizes, `convnet` with timm's benchmark.py with ResNet-18, each run as it is and timed by its own
clock. The comparisons share the minutes.

The replicate is a pair of sides in fresh processes, every second pair in the opposite order. It gives one
ratio: the mean of the middle logarithms over its rounds, since a neighbour's burst makes one round many times
as long. The interval is Student's over the replicates' logarithms. As many replicates are made as the minutes
hold; nothing is stopped early because of what it shows. Where the interval is wider than ± 1.5 %, the line
says in how many minutes it would not be.

The ratios come last. Exits 1 where the interval of one is wholly outside its bounds, and 3 where one is not
yet narrow enough.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from harness.data.fetch import DataFolders, default_folder, resolve_datasets
from harness.errors import GpudynoError
from harness.plan import own_file
from harness.record import Limit, Measurement, TrialRequest, TrialSpec, Variant
from harness.record.trial_spec import OwnFile
from harness.run import source_tree
from harness.run.assemble import lay_out_input, read_failure
from report.stats.intervals import Interval, Runs, blocks_interval

ROOT = Path(__file__).resolve().parents[1]
LEAST = 5
"""Replicates that an interval needs."""
CUT = 0.2
"""The share of a replicate's rounds that is left out at each end of their order."""
NARROW = 0.015
KEEP_FREED_MEMORY = {"MALLOC_MMAP_THRESHOLD_": str(2**32), "MALLOC_TRIM_THRESHOLD_": str(2**34)}
"""glibc's settings for all sides: else equal models have 763 or 2,245 page faults a step by chance."""
LEFT_OUT = 2
"""Rounds at the beginning of a program."""
LOOP = "loop"
BOUNDS = {LOOP: (0.0, 1.02), "word_lm": (0.98, 1.02), "convnet": (0.98, 1.02)}
"""The bounds of each comparison's ratio."""


@dataclass(frozen=True, slots=True)
class SideSeconds:
    """The seconds that each side of one replicate took in each round."""

    ours: Sequence[float]
    theirs: Sequence[float]

    @property
    def ratio(self) -> float:
        """Return our seconds over theirs."""
        rounds = min(len(self.ours), len(self.theirs))
        logs = np.log(np.asarray(self.ours[:rounds]) / np.asarray(self.theirs[:rounds]))
        return math.exp(float(stats.trim_mean(logs, CUT)))


@dataclass(frozen=True, slots=True)
class OverheadComparison:
    """The ratios of one comparison's replicates, and the seconds that they took together."""

    name: str
    ratios: tuple[float, ...]
    seconds: float

    @property
    def interval(self) -> Interval | None:
        """Return the interval of the ratio between replicates; None of fewer than five."""
        return blocks_interval(Runs(self.ratios)) if len(self.ratios) >= LEAST else None

    @property
    def exit_code(self) -> int:
        """Return 1 where the ratio is outside its bounds, 3 where its interval is too wide to say, else 0."""
        interval, (low, high) = self.interval, BOUNDS[self.name]
        if interval is None:
            return 3
        if interval.high < low or interval.low > high:
            return 1
        return 3 if half_width(interval) > NARROW else 0

    def line(self) -> str:
        """Return the ratio in a sentence, and what more time would give where it is not narrow enough."""
        took = f"{len(self.ratios)} replicates in {self.seconds / 60:.0f} min"
        interval = self.interval
        if interval is None:
            return f"{self.name}: not shown by {took}; {LEAST} are needed, so give it more --minutes"
        shown = f"{interval.estimate:.3f} ({interval.low:.3f} to {interval.high:.3f})"
        if self.exit_code != 3:
            return f"{self.name}: {shown}, {took}: {'within' if not self.exit_code else 'outside'} its bounds"
        # An interval narrows as the root of the replicates' number.
        minutes = self.seconds / 60 * (half_width(interval) / NARROW) ** 2
        return f"{self.name}: {shown}, {took}: ± {100 * NARROW:g} % would take about {minutes:.0f} min"


def half_width(interval: Interval) -> float:
    """Return how far an interval reaches from its estimate, as a share of that."""
    return max(interval.high / interval.estimate, interval.estimate / interval.low) - 1


def compare_sides(
    name: str, replicate: Callable[[int, float], SideSeconds | None], seconds: float
) -> OverheadComparison:
    """Make replicates one after the other; none once the seconds are over.

    `replicate` takes its number and the seconds that it may take, and gives None where it took longer.
    """
    began, ratios = time.monotonic(), []
    for number in count():
        left = seconds - (time.monotonic() - began)
        measured = replicate(number, left) if left > 0 else None
        if measured is None:
            break
        ratios.append(measured.ratio)
        print(f"… {name} {number + 1}: {measured.ratio:.3f}", file=sys.stderr, flush=True)
    return OverheadComparison(name, tuple(ratios), time.monotonic() - began)


def run_loops(python: Path, words: Iterable[str], number: int, left: float) -> SideSeconds | None:
    """Run our loop and the bare one in turn in a fresh process."""
    order = ["--backwards"] if number % 2 else []
    argv = [python.absolute(), "-B", "-m", "benchmarks.loops", "--host", sys.executable, *order, *words]
    paths = os.pathsep.join((str(ROOT), str(ROOT / "workloads")))
    environ = {**os.environ, **KEEP_FREED_MEMORY, "PYTHONPATH": paths}
    try:
        done = subprocess.run(
            argv, cwd=ROOT, env=environ, capture_output=True, text=True, timeout=left, check=False
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        raise SystemExit(f"benchmarks.loops failed:\n{done.stderr[-2000:]}")
    return SideSeconds(**json.loads(done.stdout.splitlines()[-1]))


@dataclass(frozen=True, slots=True)
class RetoldProgram:
    """A workload and the program that it retells, both asked for in one shape."""

    workload: str
    protocol: str
    program: str
    """The name of the program's file, which is its protocol's."""
    shape: Mapping[str, Any]
    steps: int
    """The steps of a round, as the program prints them: timm's prints five lines, whatever its steps."""
    rounds: int
    """The rounds of each process, after those left out."""
    data_sets: tuple[str, ...] = ()
    steps_option: str | None = None
    """The option that sets how many steps the program has; else its limit ends it."""

    @property
    def file(self) -> str:
        return f"workloads/programs/{self.program}.toml"


LSTM = {"model": "LSTM", "batch_size": 20, "sequence_length": 35, "data_mode": "host"}
RESNET = {"model": "resnet18", "batch_size": 16, "image_size": 96, "data_mode": "cached"}
PROGRAMS = (
    RetoldProgram("word_lm", "published/1", "word-language-model", LSTM, 10, 8, ("wikitext-2",)),
    RetoldProgram("convnet", "synthetic/1", "timm-benchmark", RESNET, 20, 3, steps_option="steps"),
)


def make_trial(pair: RetoldProgram, workload: str, seconds: float) -> TrialSpec:
    """Return the trial of one process of one side."""
    steps = pair.steps * (pair.rounds + LEFT_OUT)
    limit = Limit(steps=steps + 1, valid_batches=0 if pair.data_sets else None)
    file, shape, protocol = None, dict(pair.shape), pair.protocol
    if workload == "program":
        protocol = f"{pair.program}/1"
        sha256 = own_file.own_file_sha256(workload, pair.file, ROOT, "benchmarks")
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
    return TrialSpec.from_request(asked, 1, seed=1111, timeout_seconds=seconds)


def run_side(
    python: Path, data: Path, pair: RetoldProgram, seconds: float, workload: str
) -> Sequence[float] | None:
    """Run one side in a fresh process: the seconds of its rounds, None where it took longer than it may."""
    spec = make_trial(pair, workload, seconds)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in ("in", "out", "cache"):
            (work / name).mkdir()
        lay_out_input(work, spec, own_file.own_file_text(ROOT, spec.asked.file) if spec.asked.file else "")
        own = {f"GPUDYNO_{name.upper()}": str(work / name) for name in ("in", "out", "cache")}
        environ = {**os.environ, **KEEP_FREED_MEMORY, **own, "GPUDYNO_DATA": str(data), "PYTHONPATH": ""}
        argv = [python.absolute(), "-B", ROOT / "workloads" / f"{workload}.py"]
        done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
        measured = work / "out" / "measurement.json"
        if not measured.is_file():
            failure = read_failure(work / "out")
            print(f"{workload}: {failure.message if failure else done.stderr[-300:]}", file=sys.stderr)
            return None
        series = Measurement.parse(measured.read_bytes(), measured.name).step_us
    together = pair.steps // series.steps_per_value
    values = series.values()
    sums = [sum(values[at : at + together]) / 1e6 for at in range(0, len(values) - together + 1, together)]
    return sums[LEFT_OUT : LEFT_OUT + pair.rounds]


def run_retold(python: Path, data: Path, pair: RetoldProgram, number: int, left: float) -> SideSeconds | None:
    """Run ours and theirs in two fresh processes, one after the other."""
    took: dict[str, Sequence[float]] = {}
    for workload in (pair.workload, "program")[:: -1 if number % 2 else 1]:
        seconds = run_side(python, data, pair, left / 2, workload)
        if seconds is None:
            return None
        took[workload] = seconds
    return SideSeconds(took[pair.workload], took["program"])


def link_data(own: Path | None, pair: RetoldProgram, folder: Path) -> Path:
    """Return a folder with what a pair trains on and the program's source; raises as their fetching does."""
    program = own_file.read_program((ROOT / pair.file).read_bytes(), pair.file)
    folders = DataFolders(own, default_folder())
    found = source_tree.resolve_source(program, folders)
    for resolved in (found, *resolve_datasets(list(pair.data_sets), folders=folders).values()):
        assert resolved.folder is not None
        (folder / resolved.folder.name).symlink_to(resolved.folder.resolve())
    return folder


def main(arguments: Sequence[str]) -> int:
    """Return the exit code: the worst of the comparisons'."""
    parser = argparse.ArgumentParser(description="What our measuring costs, over a bare loop and programs.")
    parser.add_argument("python", type=Path, help="an interpreter with PyTorch")
    parser.add_argument("--data", type=Path, help="a folder with wikitext-2 (default: what was fetched)")
    parser.add_argument("--minutes", type=float, default=20.0, help="for all comparisons together")
    parser.add_argument("--only", choices=BOUNDS, help="one comparison")
    given = parser.parse_args(arguments)
    names = [given.only] if given.only else list(BOUNDS)
    seconds = 60 * given.minutes / len(names)
    with ExitStack() as folders:
        replicates = {LOOP: partial(run_loops, given.python, ())} if LOOP in names else {}
        for pair in PROGRAMS:
            if pair.workload in names:
                folder = Path(folders.enter_context(tempfile.TemporaryDirectory()))
                try:
                    data = link_data(given.data, pair, folder)
                except GpudynoError as error:
                    raise SystemExit(f"{pair.workload}: {error}") from None
                replicates[pair.workload] = partial(run_retold, given.python, data, pair)
        print(f"{', '.join(names)}: this takes {given.minutes:g} minutes", file=sys.stderr, flush=True)
        found = [compare_sides(name, replicate, seconds) for name, replicate in replicates.items()]
    print("\n".join(comparison.line() for comparison in found))
    codes = {comparison.exit_code for comparison in found}
    return 1 if 1 in codes else max(codes)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
