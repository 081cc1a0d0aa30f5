"""Whether a report's time and memory grow in proportion: 10,000 records against 1,000, in one run.

    python -m benchmarks.report_scale

Each size is built in a fresh process from constructed records of 300 steps, ten to a machine, whose stored
summaries are those of their steps. Time is the processor's. Exits 1 where the larger takes more than 12 times
the time of the smaller, 20 s or 1 GB.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from commands.line import GARBAGE
from harness.record import SCHEMA, Machine, Record, Series, Session, TrialRequest, TrialSpec
from harness.record.store import write_record, write_session
from harness.summary.statistics import judge_trial
from report.analysis import Question, analyse, evidence_in
from report.page import build

ROOT = Path(__file__).resolve().parents[1]
SIZES = (1_000, 10_000)
PER_MACHINE = 10
STEPS = 300
WALL_SECONDS = 600.0
MOST_TIMES, MOST_SECONDS, MOST_BYTES = 12.0, 20.0, 1e9
STARTED = datetime(2026, 1, 1, tzinfo=UTC)
PRECISIONS = ("fp32-ieee", "amp-fp16")


def machine(place: int) -> Machine:
    """A constructed machine with one of twenty models of card."""
    name, unit = f"Constructed Card {place % 20}", f"{place:016x}"
    return Machine.model_validate(
        {
            "id": f"{place:012x}",
            "label": f"constructed-{place}",
            "system": "Linux",
            "architecture": "x86_64",
            "cpu": {"model": "Constructed CPU", "cores": 8 + place % 3, "threads": 16},
            "memory_bytes": 64 * 2**30,
            "gpus": [{"index": 0, "vendor": "NVIDIA", "name": name, "unit": unit, "driver": "580.00"}],
        }
    )


def measured(trial: TrialSpec, host: Machine, noise: random.Random, step: float) -> dict[str, Any]:
    """Three hundred steps with a scatter of one percent."""
    series = [round(step * 1e6 * noise.gauss(1, 0.01)) for _ in range(STEPS)]
    label, gpu = trial.asked.variant.precision, host.gpus[0]
    length = {"steps_per_epoch": 2983, "epochs": 30, "valid_batches": 6}
    return {
        "measurement": 1,
        "workload": "word_lm",
        "protocol_name": "published/1",
        "workload_sha256": "e" * 64,
        "device": {"kind": "cuda", "name": gpu.name, "unit": gpu.unit},
        "versions": {"torch": "2.13.0"},
        "packages": {f"package-{n}": "1.0" for n in range(30)},
        "precision": {
            "label": label,
            "output_dtypes": {},
            "parameter_dtypes": {},
            "method": "constructed",
        },
        "data": {"name": "constructed", "source": "real", "sha256": "d" * 64},
        "protocol": {**length, "complete": False, "stopped_by": "steps"},
        "sample_unit": "token",
        "samples_per_step": 700,
        "phases": [{"name": "model", "seconds": 1.5}],
        "window": {"seconds": sum(series) / 1e6, "steps": STEPS, "samples": 700 * STEPS},
        "step_us": Series.of(series),
        "input_us": Series.of([value // 30 for value in series]),
        "device_us": Series.of([value * 9 // 10 for value in series]),
        "epochs": [],
        "losses": [(n, 5.0 - n / 100) for n in range(0, STEPS, 10)],
        "memory": {"allocated_peak_bytes": 4 * 2**30},
    }


def session_of(place: int, host: Machine) -> Session:
    """A session that begins a minute after the one before it."""
    return Session(
        session=1,
        id=f"20260101-{place:06x}",
        plan="constructed",
        plan_sha256="f" * 64,
        machine=host.id,
        label=host.label,
        started_at=STARTED + timedelta(minutes=place),
        order_seed=1,
        trials=(),
    )


def record_of(session: Session, host: Machine, order: int, noise: random.Random, step: float) -> Record:
    """One of a session's trials: two precisions in turn, steps of so many seconds in fp32."""
    environment = {"device": "cuda", "lock_sha256": "a" * 64}
    asked = TrialRequest.model_validate(
        {
            **environment,
            "environment": "cuda",
            "workload": "word_lm",
            "protocol": "published/1",
            "variant": {
                "model": "LSTM",
                "precision": PRECISIONS[order % 2],
                "batch_size": 20,
                "data_mode": "cached",
                "sequence_length": 35,
                "limit": {"steps": STEPS},
            },
            "data": "real",
        }
    )
    trial = TrialSpec.of(asked, order // 2 + 1, seed=order, timeout_seconds=600.0)
    record = Record.model_validate(
        {
            "record": SCHEMA,
            "status": "ok",
            "session": session.id,
            "order": order,
            "plan": "constructed",
            "started_at": session.started_at + timedelta(seconds=order * WALL_SECONDS),
            "wall_seconds": WALL_SECONDS,
            "trial": trial,
            "environment": {**environment, "image": "cuda", "engine": "docker", "pinned": True},
            "machine": host,
            "measurement": measured(trial, host, noise, step / (1 + order % 2)),
            "harness": {"version": "0.1.0"},
        }
    )
    return record.model_copy(update={"summary": judge_trial(record)})


def write(root: Path, records: int) -> None:
    """Sessions of ten records, a machine to each: two precisions, five repeats."""
    noise = random.Random(1)
    for place in range(records // PER_MACHINE):
        host = machine(place)
        session = session_of(place, host)
        write_session(root, session)
        for order in range(PER_MACHINE):
            step = 0.5 * (1 + place % 20 / 10)
            write_record(root, session, record_of(session, host, order, noise, step))


def once(root: Path) -> None:
    """Builds the page of what lies under `root` as a verb does, and prints what it took."""
    gc.set_threshold(*GARBAGE)
    begun = time.process_time()
    question = Question(STARTED + timedelta(days=30))
    built = build.write(analyse(evidence_in(root), question), root / "page")
    seconds = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "bytes": peak, "page": built.html.stat().st_size}))


def measure(records: int) -> dict[str, float]:
    """One size, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="gpudyno-scale-") as folder:
        write(Path(folder), records)
        command = [sys.executable, "-m", "benchmarks.report_scale", "--once", folder]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout
    costs: dict[str, float] = json.loads(printed)
    took = f"{costs['seconds']:.2f} s of processor time, {costs['bytes'] / 1e6:.0f} MB at most"
    print(
        f"{records:>6,} records of {records // PER_MACHINE:,} machines: {took}, page {costs['page']:,} bytes"
    )
    return costs


def main() -> int:
    """Prints both sizes and what falls short; returns the exit code."""
    few, many = (measure(size) for size in SIZES)
    times = many["seconds"] / few["seconds"]
    print(f"{SIZES[1]:,} against {SIZES[0]:,}: {times:.1f} times the time")
    shortfalls = [
        shortfall
        for holds, shortfall in (
            (times <= MOST_TIMES, f"more than {MOST_TIMES:g} times the time"),
            (many["seconds"] < MOST_SECONDS, f"{MOST_SECONDS:g} s or more"),
            (many["bytes"] < MOST_BYTES, f"{MOST_BYTES / 1e9:g} GB or more"),
        )
        if not holds
    ]
    print(f"falls short: {', '.join(shortfalls)}" if shortfalls else "holds")
    return 1 if shortfalls else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    sys.exit(once(chosen.once) if chosen.once else main())
