"""The recorder beside a trial: one sampling process on the host, which ends with the trial."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from harness.engine.container import DeviceRequest
from harness.errors import RecordError
from harness.files import Files
from harness.probe.system import sees_processes
from harness.record import Record, finding
from harness.record.events import FILE as EVENTS
from harness.record.events import read_segments
from harness.telemetry import reader, sampler

FILE = "telemetry.jsonl"
_PID = "telemetry.pid"
_STOP = "telemetry.stop"
_END_SECONDS = 3.0
_CLONE = Path(__file__).resolve().parents[2]
"""Where `python -m` finds the sampler."""

_children: dict[int, subprocess.Popen[bytes]] = {}
"""Samplers that this very process started and has to reap."""


def start_sampling(work: Path, device: DeviceRequest, pids: Sequence[int | None]) -> None:
    """Start sampling into a trial's work folder. Where the trial's process is unknown, it is not watched.

    Of two trials that take turns on a device both are named: neither is foreign to the other.
    """
    known = [str(pid) for pid in pids if pid is not None]
    if len(known) < len(pids):
        return
    argv = [sys.executable, "-m", sampler.__name__, str(work / FILE), "--kind", device.kind]
    argv += ["--cards", ",".join(device.marks), "--pids", ",".join(known), "--parent", known[0]]
    argv += ["--stop-file", str(work / _STOP)]
    if not sees_processes(Files()):
        argv.append("--inside")
    process = subprocess.Popen(
        argv,
        cwd=_CLONE,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _children[process.pid] = process
    (work / _PID).write_text(str(process.pid))


def stop_sampling(work: Path) -> None:
    """End the sampling and wait for its last line; an ended one is left as it is."""
    path = work / _PID
    if not path.is_file():
        return
    (work / _STOP).touch()
    try:
        process = psutil.Process(int(path.read_text()))
        if str(work / FILE) in process.cmdline():
            process.wait(_END_SECONDS)
    except psutil.TimeoutExpired:
        process.kill()
    except (psutil.Error, OSError, ValueError):
        # It has ended, or is not ours to look at.
        pass
    path.unlink(missing_ok=True)
    for pid in [pid for pid, child in _children.items() if child.poll() is not None]:
        del _children[pid]


def add_telemetry(record: Record, work: Path) -> Record:
    """Return the record with what was sampled; a warning in its place where that cannot be read."""
    path = work / FILE
    if not path.is_file():
        return record
    # Of several nodes the first alone is watched, and the samples are of all.
    items = record.measurement.window.samples if record.measurement and record.nodes == 1 else None
    try:
        telemetry = reader.read_telemetry(path, read_segments(work / "out" / EVENTS), items)
    except RecordError as error:
        return record.model_copy(
            update={"warnings": (*record.warnings, finding("telemetry", why=str(error)[:400]))}
        )
    warnings = record.warnings
    if record.nodes > 1:
        warnings = (*warnings, finding("telemetry", nodes=record.nodes))
    if telemetry is not None and telemetry.source != "none" and not telemetry.cards:
        why = telemetry.energy.unknown_because or "no reason given"
        warnings = (*warnings, finding("telemetry", unwatched_because=why[:300]))
    return record.model_copy(update={"telemetry": telemetry, "warnings": warnings})
