"""Whether a report's time and memory grow in proportion: 10,000 records against 1,000, in one run.

    python -m benchmarks.report_scale

Each size is built in a fresh process from constructed records of 300 steps, ten to a machine, whose stored
summaries are those of their steps. Time is the processor's. Exits 1 where the larger takes more than 12 times
the time of the smaller, 18 s or 550 MB.
"""

from __future__ import annotations

import argparse
import gc
import json
import resource
import subprocess
import sys
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from commands.line import GARBAGE
from harness.record import KernelTime, Machine, Record, Series
from harness.record.store import write_record, write_session
from harness.summary.statistics import judge_trial
from report.analysis import AnalysisRequest, analyse, evidence_in
from report.page.whole_page import write as write_page
from tests.helpers import records_builder as build
from tests.helpers.bundled import session_of

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1_000, 10_000)
PER_MACHINE = 10
STEPS = 300
WALL_SECONDS = 600.0
MOST_TIMES, MOST_SECONDS, MOST_BYTES = 12.0, 18.0, 5.5e8
PRECISIONS = ("fp32-ieee", "amp-fp16")


def make_machine(place: int) -> Machine:
    """Return a constructed machine with one of twenty models of card."""
    made = build.machine(f"Constructed Card {place % 20}", label=str(place), digits=f"{place:012x}")
    card = made.gpus[0].model_copy(update={"unit": f"{place:016x}"})
    return made.model_copy(update={"gpus": (card,)})


def make_record(place: int, order: int, fp32_seconds: float) -> Record:
    """Return one of a machine's trials: two precisions in turn, the steps of the second half as long."""
    on = make_machine(place)
    asked = build.trial(build.LM, PRECISIONS[order % 2], order // 2 + 1, batch_size=20)
    measured = build.measurement(
        build.LM,
        asked,
        fp32_seconds / (1 + order % 2),
        card=on.gpus[0].name,
        complete=False,
        steps=STEPS,
        seed=PER_MACHINE * place + order,
        packages={f"package-{n}": "1.0" for n in range(30)},
    )
    steps = measured.step_us.values()
    watched = {
        "input_us": Series.from_microseconds([value // 30 for value in steps]),
        "kernels": KernelTime(steps=1, busy_seconds=0.9 * sum(steps) / len(steps) / 1e6),
    }
    record = build.record(
        asked,
        measured.model_copy(update=watched),
        on=on,
        session=f"20260131-{place:06x}",
        order=order,
        started_at=build.STARTED + timedelta(minutes=place, seconds=order * WALL_SECONDS),
        wall_seconds=WALL_SECONDS,
    )
    return record.model_copy(update={"summary": judge_trial(record)})


def write_records(root: Path, records: int) -> None:
    """Write sessions of ten records, a machine to each: two precisions, five repeats."""
    for place in range(records // PER_MACHINE):
        made = [make_record(place, order, 0.5 * (1 + place % 20 / 10)) for order in range(PER_MACHINE)]
        session = session_of(made, "f" * 64)
        write_session(root, session)
        for record in made:
            write_record(root, session, record)


def build_once(root: Path) -> None:
    """Build the page of the results under `root` as a verb does, and print what it took."""
    gc.set_threshold(*GARBAGE)
    begun = time.process_time()
    request = AnalysisRequest(build.STARTED + timedelta(days=30))
    built = write_page(analyse(evidence_in(root), request), root / "page")
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "bytes": peak, "page": built.html.stat().st_size}))


def measure_size(records: int) -> dict[str, float]:
    """Return what one size costs, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="gpudyno-scale-") as folder:
        write_records(Path(folder), records)
        command = [sys.executable, "-m", "benchmarks.report_scale", "--once", folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    costs: dict[str, float] = json.loads(printed)
    took = f"{costs['seconds']:.2f} s of processor time, {costs['bytes'] / 1e6:.0f} MB at most"
    print(
        f"{records:>6,} records of {records // PER_MACHINE:,} machines: {took}, page {costs['page']:,} bytes"
    )
    return costs


def main() -> int:
    """Print both sizes and whether they keep to what is allowed; return the exit code."""
    few, many = (measure_size(size) for size in SIZES)
    times = many["seconds"] / few["seconds"]
    print(f"{SIZES[1]:,} against {SIZES[0]:,}: {times:.1f} times the time")
    asked = (
        (times > MOST_TIMES, f"{MOST_TIMES:g} times the time"),
        (many["seconds"] >= MOST_SECONDS, f"{MOST_SECONDS:g} s"),
        (many["bytes"] >= MOST_BYTES, f"{MOST_BYTES / 1e6:g} MB"),
    )
    above = ", ".join(most for fails, most in asked if fails)
    print(f"above {above}" if above else "holds")
    return int(bool(above))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sys.exit(build_once(chosen.once) if chosen.once else main())
